"""A kernel that is frozen, killed and thawed again and again answers as one that never was.

Every cell below is run in two of pykeep's own kernels. One of them lives through; the other is
frozen, ended and thawed after every tenth cell (PYKEEP_IMAGE_ROUNDS=n: n times as many cells).
"""

import os

import frozen

SETUP = """
import asyncio, collections, gc, hashlib, io, itertools, multiprocessing, os, queue, random, sqlite3
import subprocess, threading, time
import numpy as np, pandas as pd
import matplotlib; matplotlib.use('agg')
import matplotlib.pyplot as plt
from concurrent.futures import ThreadPoolExecutor
random.seed(7); np.random.seed(7); rng = np.random.default_rng(7)
frame = pd.DataFrame({'a': np.arange(1000.0), 'b': [chr(65 + i % 26) for i in range(1000)]})
db = sqlite3.connect(':memory:', check_same_thread=False); db.execute('create table t (n integer, s text)')
def count():
    total = 0
    while True:
        total += (yield total) or 1
counter = count(); next(counter)
work, done = queue.Queue(), queue.Queue()
def worker():
    while True:
        done.put(work.get() ** 2)
thread = threading.Thread(target=worker, daemon=True, name='worker'); thread.start()
pool = ThreadPoolExecutor(3)
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
async def later(x):
    await asyncio.sleep(0.01)
    return x * 2
matrix = rng.random((300, 300))
grown, local, lock, ring = bytearray(), threading.local(), threading.RLock(), []
def plot(n):
    figure, axes = plt.subplots(); axes.plot(np.arange(n)); file = io.BytesIO()
    figure.savefig(file, format='png'); plt.close(figure)
    return hashlib.sha256(file.getvalue()).hexdigest()
def refused(call):
    try: return call()
    except OSError as error: return type(error).__name__
shared = __import__('mmap').mmap(-1, 8192)
log = open('/workspace/LOG', 'a+')
"""

CELLS = [
    "frame.groupby('b').a.sum().head(3)",
    "frame['c'] = frame.a * {n}; frame.describe().to_string()",
    "db.execute('insert into t values (?, ?)', ({n}, 'x' * {n})).lastrowid",
    "db.execute('select count(*), sum(n), max(length(s)) from t').fetchall()",
    "counter.send({n})",
    "work.put({n}), done.get(timeout=5)",
    "sorted(pool.map(lambda x: x * x, range({n} % 9)))",
    "asyncio.run_coroutine_threadsafe(later({n}), loop).result(5)",
    "asyncio.run(later({n})) if False else await later({n})",
    "matrix = matrix @ matrix; matrix /= np.abs(matrix).max(); round(float(matrix.sum()), 6)",
    "np.linalg.svd(matrix[:50, :50], compute_uv=False)[:3].round(6)",
    "random.random(), float(np.random.rand()), float(rng.random())",
    "random.sample(range(1000), 3), frame.sample(2, random_state={n}).index.tolist()",
    "subprocess.run(['echo', 'cell {n}'], capture_output=True, text=True).stdout",
    "os.waitpid(os.fork() or os._exit({n} % 7), 0)[1]",
    "with multiprocessing.get_context('fork').Pool(2) as p: answer = p.map(abs, [-{n}, 2])\nanswer",
    "refused(lambda: __import__('socket').create_connection(('127.0.0.1', 9), 1))",
    "plot({n})",
    "grown.extend(b'{n}' * 50000), len(grown), hashlib.md5(grown).hexdigest()",
    "ring.append([ring]); del ring[:-3]; len(ring)",
    "local.x = getattr(local, 'x', 0) + {n}; local.x",
    "with lock: held = {n}\nheld",
    "shared[0] = (shared[0] + {n}) % 256; shared[0]",
    "log.write('{n} '), log.flush(), log.tell()",
    "thread.is_alive(), thread.name, thread.native_id, lock.acquire(), lock.release()",
    "1 / ({n} % 2)",
    "raise KeyError('{n}')",
    "[c for c in itertools.islice(collections.OrderedDict.fromkeys('hello{n}'), 5)]",
    "os.getpid(), os.getcwd(), sorted(os.environ)[:3]",
    "pd.Series(range({n})).rolling(3).mean().sum()",
    "exec('def f{n}(x): return x + {n}'); f{n}(1)",
    "_ if False else len(In) > 0, type(Out).__name__",
    "big = np.zeros(3_000_000); big[{n}] = 1; float(big.sum())",
    "time.monotonic() > 0 and round(time.time() - time.time_ns() / 1e9, 1) == 0",
    "frame.to_csv().count('\\n'), pd.read_csv(io.StringIO(frame.to_csv())).shape",
    "%timeit -n1 -r1 -q 1\nNone",
    "!echo {n}",
    "sum(pool.submit(np.dot, matrix, matrix[0]).result()).round(6)",
    "max(threading.stack_size(), 0), gc.isenabled()",
    "f'{{held}} {{len(grown)}} {{counter.send(1)}}'",
]


def test_two_hundred_cells(place):
    rounds = 5 * int(os.environ.get("PYKEEP_IMAGE_ROUNDS", "1"))
    cells = [
        cell.replace("{n}", str(n)).replace("{{", "{").replace("}}", "}")
        for n in range(1, rounds + 1)
        for cell in CELLS
    ]
    with frozen.boot_kernel(place) as through:
        frozen_one = frozen.boot_kernel(place)
        assert not through.run(SETUP.replace("LOG", "one"))["error"]
        assert not frozen_one.run(SETUP.replace("LOG", "other"))["error"]
        for number, cell in enumerate(cells):
            answers = through.run(cell), frozen_one.run(cell)
            assert answers[0] == answers[1], f"cell {number}: {cell}"
            if number % 10 == 9:
                image, so_far = place.image(), frozen_one.cells
                frozen_one.freeze(image, "end")
                frozen_one.kill()
                frozen_one = frozen.thaw_kernel(place, image, cells=so_far)
                image.unlink()
        frozen_one.kill()
