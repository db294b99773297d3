"""Runs in a guest: what is done with a session's files from outside (sandbox/files.hpp).

    python3 -I workspace.py '{"op": "stat", "path": BASE64, …}'

prints one line of JSON: {"error": ERRNO}, or what the operation has to say. Paths are relative to the
workspace; no symbolic link in them is followed.

Whoever asks may not learn what became of it, and ask again; PandaStack may run a command twice, also at once. So
each operation may be done again: it does, or says, the same.
"""

import base64
import collections
import contextlib
import errno
import fcntl
import json
import os
import stat
import sys
import time

WORKSPACE = os.environ.get("PYKEEP_WORKSPACE", "/workspace")
OWN = b".pykeep"  # parts of uploads, and files that are being read; never listed
KEPT_SECONDS = 3600  # without use


class Workspace:
    def __init__(self):
        self._root = os.open(WORKSPACE, os.O_RDONLY | os.O_DIRECTORY)

    def directory(self, path, make=False):
        """A descriptor of the directory that `path`, a list of names, leads to."""
        at = os.dup(self._root)
        for name in path:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            except NotADirectoryError:
                is_link = stat.S_ISLNK(os.lstat(name, dir_fd=at).st_mode)
                raise OSError(errno.ELOOP if is_link else errno.ENOTDIR, "") from None
            finally:
                os.close(at)
            at = below
        return at

    def place(self, path, make=False):
        """Where a file is, or is to be: its directory, and its name there."""
        if not path:
            raise OSError(errno.EISDIR, "")
        return self.directory(path[:-1], make), path[-1]

    def info(self, path, status):
        return {
            "path": encode(b"/".join(path)),
            "mode": "dlf?"[0 if is_dir(status) else 1 if is_link(status) else 2 if is_file(status) else 3],
            "size": status.st_size if is_file(status) else 0,
            "modified": int(status.st_mtime),
            "version": f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}",
        }

    def stat(self, given):
        path = names(given)
        if not path:
            return self.info(path, os.fstat(self._root))
        at, name = self.place(path)
        return self.info(path, os.lstat(name, dir_fd=at))

    def list(self, given):
        first, cap = names(given), given["cap"]
        entries, complete = [], True
        pending = collections.deque([(first, given["depth"])])
        while pending:
            path, left = pending.popleft()
            try:
                at = self.directory(path)
            except OSError:
                if path == first:
                    raise
                continue
            with contextlib.closing(os.scandir(at)) as found:
                here = sorted(os.fsencode(entry.name) for entry in found)
            for name in here:
                if not path and name == OWN:
                    continue
                if len(entries) == cap:
                    complete = False
                    break
                with contextlib.suppress(OSError):
                    status = os.lstat(name, dir_fd=at)
                    entries.append(self.info([*path, name], status))
                    if is_dir(status) and left > 1:
                        pending.append(([*path, name], left - 1))
            os.close(at)
        return {"entries": entries, "complete": complete}

    def open_file(self, path):
        at, name = self.place(path)
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        status = os.fstat(fd)
        if is_dir(status):
            raise OSError(errno.EISDIR, "")
        if not is_file(status):
            raise OSError(errno.ENODEV, "")
        return fd, at, name, status

    def read(self, given):
        fd, _, _, status = self.open_file(names(given))
        data = os.pread(fd, given["size"], given["offset"]) if given["offset"] < status.st_size else b""
        return {"bytes": encode(data)}

    def open(self, given):
        """Gives the file a name of ours, by which it stays as it is until that is too old."""
        path = names(given)
        _, at, name, _ = self.open_file(path)
        own, alias = self.own(), given["as"].encode()
        with contextlib.suppress(FileExistsError):
            os.link(name, alias, src_dir_fd=at, dst_dir_fd=own, follow_symlinks=False)
        return self.info(path, os.lstat(alias, dir_fd=own))

    def own(self):
        at = self.directory([OWN], make=True)
        now = time.time()
        for name in os.listdir(at):
            with contextlib.suppress(OSError):
                if now - os.lstat(name, dir_fd=at).st_ctime > KEPT_SECONDS:
                    os.unlink(name, dir_fd=at)
        return at

    def check(self, given):
        """Whether a file can be put there: raises if not. Makes a place for its parts."""
        at, name = self.target(given, make=False)
        self.own()
        return {}

    def target(self, given, make):
        path = names(given)
        existing = path[:-1]
        try:
            at, name = self.place(path, make)
        except FileNotFoundError:
            return None, existing  # its directories are made when it comes
        with contextlib.suppress(FileNotFoundError):
            if is_dir(os.lstat(name, dir_fd=at)):
                raise OSError(errno.EISDIR, "")
        return at, name

    def finish(self, given):
        """Joins the parts and puts them in the file's place, in one step."""
        own = self.own()
        fcntl.flock(own, fcntl.LOCK_EX)
        parts = [part.encode() for part in given["parts"]]
        at, name = self.target(given, make=True)
        placed = parts[0] + b".placed"  # the first part is there, or has become the file
        try:
            self.join(own, parts, given)
            os.close(os.open(placed, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=own))
            os.rename(parts[0], name, src_dir_fd=own, dst_dir_fd=at)
        except FileNotFoundError:
            os.lstat(placed, dir_fd=own)  # it is in place already, or this raises, too
        return self.info(names(given), os.lstat(name, dir_fd=at))

    def join(self, own, parts, given):
        with open(os.open(parts[0], os.O_RDWR | os.O_NOFOLLOW, dir_fd=own), "r+b") as whole:
            for number, part in enumerate(parts[1:], 1):
                try:
                    more = open(os.open(part, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=own), "rb")
                except FileNotFoundError:
                    continue  # joined before; the size tells
                with more:
                    start = number * given["part_size"]
                    if whole.seek(0, os.SEEK_END) < start:
                        raise OSError(errno.EIO, "")
                    whole.truncate(start)  # without what was joined of it
                    whole.seek(start)
                    while data := more.read(1 << 20):
                        whole.write(data)
                    whole.flush()
                os.unlink(part, dir_fd=own)
            if whole.seek(0, os.SEEK_END) != given["size"]:
                raise OSError(errno.EIO, "")
            os.fsync(whole.fileno())

    def drop(self, given):
        own = self.own()
        for part in given["parts"]:
            with contextlib.suppress(OSError):
                os.unlink(part.encode(), dir_fd=own)
        return {}

    def used(self, given):
        total = 0
        for _, _, files, at in os.fwalk(".", dir_fd=self._root, follow_symlinks=False):
            for name in [".", *files]:
                with contextlib.suppress(OSError):
                    total += os.lstat(name, dir_fd=at).st_blocks * 512
            if total > given["enough"]:
                break
        return {"used": total}


def is_dir(status):
    return stat.S_ISDIR(status.st_mode)


def is_link(status):
    return stat.S_ISLNK(status.st_mode)


def is_file(status):
    return stat.S_ISREG(status.st_mode)


def encode(data):
    return base64.b64encode(data).decode()


def names(given):
    path = base64.b64decode(given["path"])
    return [] if path == b"." else path.split(b"/")


def main():
    given = json.loads(sys.argv[1])
    try:
        answer = getattr(Workspace(), given["op"])(given)
    except OSError as error:
        answer = {"error": error.errno or errno.EIO}
    print(json.dumps(answer, separators=(",", ":")))


main()
