"""The two that are compared, pykeep over stdio and ipykernel over ZeroMQ, and what is read of processes."""

import json
import os
import subprocess
import sys

from jupyter_client import KernelManager
from leftovers import descendants

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Wire:
    """The least client: one line out, one line in, no threads, so that what is measured is the server."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
        self._ident = 0

    def request(self, method, params) -> dict:
        self._ident += 1
        message = {"jsonrpc": "2.0", "id": self._ident, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self._ident, answer
        return answer["result"]

    def initialize(self):
        return self.request("initialize", INITIALIZE)

    def run(self, code) -> str:
        result = self.request("tools/call", {"name": "run_python", "arguments": {"code": code}})
        text = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
        assert not result.get("isError"), text
        return text

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Ipykernel:
    """ipykernel as Jupyter's own client starts it and talks to it, in the Python that runs this."""

    def __init__(self):
        self.manager = KernelManager()
        self.manager.kernel_spec.argv = [
            sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}",
        ]  # fmt: skip
        self.manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = self.manager.blocking_client()
        self.client.start_channels()

    @property
    def pid(self) -> int:
        return self.manager.provisioner.pid

    def run(self, code, timeout=300) -> str:
        """Runs a cell and takes all that it outputs, until the kernel is idle again."""
        pieces = []

        def take(message):
            content = message["content"]
            pieces.append(content.get("text") or content.get("data", {}).get("text/plain", ""))

        reply = self.client.execute_interactive(code, output_hook=take, timeout=timeout)
        assert reply["content"]["status"] == "ok" or "KeyboardInterrupt" in reply["content"]["ename"]
        return "".join(pieces)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def resident(pid) -> int:
    return _field(f"/proc/{pid}/status", "VmRSS:")


def proportional(pid) -> int:
    """Memory with what is shared divided among those that share it."""
    return _field(f"/proc/{pid}/smaps_rollup", "Pss:")


def forget_peak(pid) -> None:
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")


def peak(pid) -> int:
    """The largest resident set since forget_peak()."""
    return _field(f"/proc/{pid}/status", "VmHWM:")


def kernels_below(pid) -> list:
    """The kernels of a server: Python, or our loader that became Python."""

    def is_kernel(child):
        try:
            program = os.readlink(f"/proc/{child}/exe")
        except OSError:
            return False
        return "python" in program or program.endswith("/loader")

    return [child for child in descendants(pid) if is_kernel(child)]


def kernel_below(pid) -> int:
    return kernels_below(pid)[-1]


def private(pid) -> int:
    """Memory that is the process's alone."""
    keys = ("Private_Clean:", "Private_Dirty:", "Private_Hugetlb:")
    return sum(_field(f"/proc/{pid}/smaps_rollup", key) for key in keys)


def _field(path, key) -> int:
    with open(path) as file:
        for line in file:
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    raise KeyError(key)
