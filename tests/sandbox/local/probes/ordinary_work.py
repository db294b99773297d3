"""What ordinary programs do works: processes, threads, semaphores, sqlite, asyncio, temporary files."""

import asyncio
import multiprocessing
import os
import sqlite3
import subprocess
import tempfile
import threading
import time

if __name__ == "__main__":
    assert subprocess.run(["/bin/sh", "-c", "echo hi"], capture_output=True, text=True).stdout == "hi\n"
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    lock = multiprocessing.Lock()
    lock.acquire()
    lock.release()
    threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(10)]
    [t.start() for t in threads]
    [t.join() for t in threads]

    async def work():
        p = await asyncio.create_subprocess_exec("/bin/echo", "x", stdout=asyncio.subprocess.PIPE)
        return await p.stdout.read()

    assert asyncio.run(work()) == b"x\n"
    db = sqlite3.connect("/workspace/t.db")
    db.execute("create table t (x)")
    db.commit()
    db.close()
    with tempfile.TemporaryFile() as f:
        f.write(b"x")
    assert os.getcwd() == "/workspace" and os.path.expanduser("~") == "/tmp/home"
    import pwd
    import socket

    assert pwd.getpwuid(os.getuid()).pw_name == "user" and socket.gethostname() == "pykeep"
    assert len(os.urandom(8)) == 8 and os.cpu_count()
    print("OK")
