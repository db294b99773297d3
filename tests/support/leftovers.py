"""What a server may have left behind: processes, descriptors, control groups, mounted directories."""

import os
import pathlib


def descendants(pid: int) -> list:
    todo, found = [pid], []
    while todo:
        parent = todo.pop()
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as file:
                    children = [int(child) for child in file.read().split()]
                todo += children
                found += children
        except OSError:
            pass  # it has ended meanwhile
    return found


def descriptors(pid: int) -> list:
    """What a process has open, as /proc names it, without the numbers of sockets and pipes."""
    found = []
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{entry}").partition(":[")[0])
        except OSError:
            pass
    return sorted(found)


def strays(directory) -> list:
    """Processes, whoever their parent is, that were started for something below a directory or have
    something from there mounted: "pid: command line"."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            process = pathlib.Path("/proc", entry)
            command = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(directory) in command or str(directory) in process.joinpath("mountinfo").read_text():
                found.append(f"{entry}: {command}")
        except OSError:
            pass
    return found


def groups_of(pid: int) -> list:
    """The control groups of a server's sandboxes."""
    found = []
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(directory).startswith(f"pykeep-{pid}-"):
            found += [os.path.join(directory, name) for name in names]
            names.clear()
    return found
