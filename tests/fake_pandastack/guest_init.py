"""Process 1 of a guest: starts programs, hands out connections, and buries the dead.

Runs inside (python3 -I -S, standard library only); argv[1] is the number of a SOCK_SEQPACKET socket to
guest.py. Each message is a JSON object, with descriptors beside it:

    {"id", "run": argv, "env", "cwd"} + stdin, stdout, stderr   -> {"id", "pid"}, later {"ended": pid, "status"}
    {"id", "thaw": argv, "pid"} + log, image                    -> the same, as process number `pid`
    {"id", "connect": port}                                     -> {"id"} + a connected socket, or {"id", "error"}
    {"id", "listening": true}                                   -> {"id", "ports"}
    {"kill": pid, "signal"}                                     to a program and what it started in its session

When the socket ends, so does the guest: this is process 1.
"""

import json
import os
import select
import signal
import socket
import sys

MAX_MESSAGE = 1 << 20


def program(words, descriptors, env, cwd):
    """In the child: never returns."""
    try:
        os.setsid()
        os.chdir(cwd)
        # Above the numbers that they get, so that none of them is overwritten before it is moved.
        high = [os.open("/dev/null", os.O_RDWR) if fd is None else fd for fd in descriptors]
        import fcntl

        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in high]
        os.closerange(0, 100)
        for number, fd in enumerate(high):
            os.dup2(fd, number)
        os.closerange(len(high), 300)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.execve(words[0], words, env)
    except BaseException as error:
        os.write(2, f"{words[0]}: {error}\n".encode())
    os._exit(127)


class Init:
    def __init__(self, link):
        self.link = link
        self.children = set()

    def send(self, message, descriptors=()):
        socket.send_fds(self.link, [json.dumps(message).encode()], list(descriptors))

    def start(self, words, descriptors, env, cwd):
        pid = os.fork()
        if pid == 0:
            program(words, descriptors, env, cwd)
        self.children.add(pid)
        return pid

    def run(self, message, descriptors):
        pid = self.start(message["run"], descriptors, message["env"], message["cwd"])
        self.send({"id": message["id"], "pid": pid})

    def thaw(self, message, descriptors):
        """Nothing else may start meanwhile: the loader makes its threads with the numbers that follow."""
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(message["pid"] - 1))
        dead, other = socket.socketpair()
        other.close()
        # 3 is what the process had as its link, if that was a socket: its peer is gone.
        words = [*message["thaw"], "4"]
        pid = self.start(words, [None, None, descriptors[0], dead.fileno(), descriptors[1]], {}, "/")
        dead.close()
        self.send({"id": message["id"], "pid": pid})

    def connect(self, message, _):
        made = socket.socket()
        try:
            made.connect(("127.0.0.1", message["connect"]))
            self.send({"id": message["id"]}, [made.fileno()])
        except OSError as error:
            self.send({"id": message["id"], "error": os.strerror(error.errno).lower()})
        made.close()

    def listening(self, message, _):
        ports = set()
        for name in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(name) as file:
                for line in file.readlines()[1:]:
                    words = line.split()
                    if words[3] == "0A":
                        ports.add(int(words[1].rsplit(":", 1)[1], 16))
        self.send({"id": message["id"], "ports": sorted(ports)})

    def kill(self, message, _):
        try:
            os.killpg(message["kill"], message["signal"])
        except OSError:
            pass

    def handle(self):
        data, descriptors, _, _ = socket.recv_fds(self.link, MAX_MESSAGE, 8)
        if not data:
            os._exit(0)
        message = json.loads(data)
        for name in ("run", "thaw", "connect", "listening", "kill"):
            if name in message:
                getattr(self, name)(message, descriptors)
        for fd in descriptors:
            os.close(fd)

    def bury(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.children:
                self.children.discard(pid)
                self.send({"ended": pid, "status": status})

    def serve(self):
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write)
        while True:
            ready, _, _ = select.select([self.link, read], [], [])
            if read in ready:
                os.read(read, 4096)
                self.bury()
            if self.link in ready:
                self.handle()


def main():
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    init = Init(link)
    init.send({"ready": True})
    init.serve()


main()
