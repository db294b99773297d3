"""The kernel as a process: started or taken over, signalled, and how it ended."""

import json
import os
import signal
import subprocess
import time

_MAIN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "pykeep_kernel/main.py")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ROUNDS = 5  # through /proc: what is being killed may be forking
TAKE_OVER_SECONDS = 5.0  # a kernel that was carried here under another pid connects well within


def write_json(path, value):
    """Complete from its first moment, and only root's."""
    aside = f"{path}.{os.getpid()}"
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file)
    os.rename(aside, path)


def read_json(path):
    try:
        with open(path) as file:
            value = json.load(file)
        return value if isinstance(value, dict) else {}
    except (OSError, ValueError):
        return {}


def started(pid):
    """When a process began, which with its pid names it for good; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def oom_kills():
    try:
        with open("/proc/vmstat", "rb") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(b"oom_kill "))
    except (OSError, StopIteration, ValueError):
        return 0


class Kernel:
    def __init__(self, run, python, workspace, link):
        self._record = os.path.join(run, "kernel.json")
        self._run = run
        self._python = python
        self._workspace = workspace
        self._link = link
        self._child = None
        self.pid = None
        self.pidfd = None  # readable once the process has ended
        self.exit = None  # {"code", "signal"} once it is known to have ended
        self._expected_until = None

    # ---- beginning

    def find(self):
        """Takes over the kernel of an earlier relay, or starts one, or waits for one to connect."""
        record = read_json(self._record)
        if not record:
            self.start()
        elif record.get("started") is not None and started(record.get("pid")) == record["started"]:
            self._hold(record["pid"])
        else:
            self._expected_until = time.monotonic() + TAKE_OVER_SECONDS

    @property
    def expected_until(self):
        """Until when a kernel may come by itself; then start() is due."""
        return self._expected_until if self.pid is None else None

    def is_kernel(self, pid):
        """Whether this process may speak as the kernel."""
        return self.pid in (None, pid)

    def took_over(self, pid):
        if self.pid is None:
            self._hold(pid)
            write_json(self._record, {"pid": pid, "started": started(pid)})

    def _hold(self, pid):
        self.pid = pid
        try:
            self.pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self.exit = {"code": None, "signal": None}

    def start(self):
        streams = [os.open(pipe.path, os.O_RDWR | os.O_CLOEXEC) for pipe in self._link.pipes]
        try:
            self._child = subprocess.Popen(
                [self._python, "-I", _MAIN],
                stdin=subprocess.DEVNULL,
                stdout=streams[0],
                stderr=streams[1],
                cwd=self._workspace,
                env=self._environment(),
                start_new_session=True,
                umask=0o022,
            )
        finally:
            for stream in streams:
                os.close(stream)
        set_oom_score(self._child.pid, 0)
        self._hold(self._child.pid)
        self._link.sent = 0
        write_json(self._record, {"pid": self.pid, "started": started(self.pid)})

    def _environment(self):
        processors = str(len(os.sched_getaffinity(0)))
        environment = {
            "PATH": os.environ.get("PATH") or _PATH,
            "HOME": os.environ.get("HOME") or "/root",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "OMP_NUM_THREADS": processors,
        }
        for name, value in read_json(os.path.join(self._run, "environment.json")).items():
            if isinstance(value, str) and "\0" not in name + value and "=" not in name:
                environment[name] = value
        environment["PYKEEP_LINK"] = self._link.path
        environment["PYKEEP_WORKSPACE"] = self._workspace
        return environment

    # ---- signals

    def interrupt(self):
        self._signal(signal.SIGINT)

    def kill(self):
        self._signal(signal.SIGKILL)
        self.kill_children()

    def _signal(self, number):
        if self.pidfd is not None and self.exit is None:
            try:
                signal.pidfd_send_signal(self.pidfd, number)
            except ProcessLookupError:
                pass

    def kill_children(self):
        for _ in range(_ROUNDS):
            others = self._others()
            for pid in others:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not others:
                break

    def _others(self):
        """What lives and descends from the kernel, is in its session or has its environment."""
        mark = f"PYKEEP_LINK={self._link.path}\0".encode()
        children = {}
        found = set()
        alive = set()
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
                with open(f"/proc/{pid}/environ", "rb") as file:
                    marked = mark in file.read()  # in the middle of an exec there is none
            except OSError:
                continue
            if state in (b"Z", b"X"):
                continue
            alive.add(pid)
            children.setdefault(int(parent), []).append(pid)
            if marked or int(session) == self.pid:
                found.add(pid)
        pending = [self.pid, *found]
        while pending:
            pending = [child for pid in pending for child in children.get(pid, ()) if child not in found]
            found.update(pending)
        return (found & alive) - {self.pid, os.getpid()}

    # ---- the end

    def ended(self):
        """The pidfd is readable: what it left is killed, and `exit` is known."""
        os.close(self.pidfd)
        self.pidfd = None
        self.exit = {"code": None, "signal": None}
        if self._child is not None:
            status = self._child.wait()
            self.exit = {"code": status, "signal": None}
            if status < 0:
                self.exit = {"code": None, "signal": -status}
        self.kill_children()
        try:
            os.unlink(self._record)
        except FileNotFoundError:
            pass


def set_oom_score(pid, score):
    """The relay is small and should be the last that the guest's memory costs its life."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write(str(score))
    except OSError:
        pass
