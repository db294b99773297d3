"""client.Kernel by way of a relay, so that the kernel's tests can run through one."""

import time

import client
from guest import Guest

# Asked at import, since Kernel takes client.Kernel's place.
_Base = client.Kernel


class _Process:
    """What the tests do with client.Kernel's `process`."""

    def __init__(self, guest):
        self._guest = guest

    @property
    def returncode(self):
        end = self._guest.state()["kernel"]["exit"]
        return end and (end["code"] if end["signal"] is None else -end["signal"])

    def poll(self):
        return self.returncode

    def wait(self, timeout):
        deadline = time.monotonic() + timeout
        while self.returncode is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.returncode

    def kill(self):
        self._guest.signal("kill")


class Kernel(_Base):
    def __init__(self, python=client.PYTHON, environment=None, command=None):
        # `command` is the relay's to choose.
        self.guest = Guest(python, environment)
        self.guest.start()
        self.workspace = self.guest.workspace
        self.process = _Process(self.guest)
        self._answer = None
        self._next = 0
        self.background = []
        self.ready = self.wait_for_frame(90)
        assert self.ready["ev"] == "ready", self.ready

    @property
    def pid(self):
        return self.guest.pid("kernel")

    def send(self, header):
        self._answer = self.guest.exchange(header)

    def interrupt(self):
        self.guest.signal("interrupt")

    def close(self):
        self.guest.close()

    def _record(self, deadline):
        """The next one, but for those that only the relay and its server talk about."""
        while True:
            if self._answer is None:
                self._answer = self.guest.exchange(limit=60)
            try:
                record = self._answer.next(max(0.1, deadline - time.monotonic()))
            except TimeoutError:
                raise TimeoutError(f"no end: {self.guest.state()}") from None
            self.guest.after = record["seq"]
            if record["is"] == "exit":
                raise client.KernelDied(self.process.wait(1), None)
            if record["is"] == "end":
                self._answer = None
                if record["why"] == "done":
                    time.sleep(0.01)
            elif record["is"] in ("stdout", "stderr", "frame"):
                return record

    def _drain(self, timeout, pieces):
        """Waits for text."""
        try:
            record = self._record(time.monotonic() + timeout)
        except TimeoutError:
            return
        client.add(pieces, (record["is"][3:], record.payload))

    def _frame(self, deadline, pieces):
        while True:
            try:
                record = self._record(deadline)
            except client.KernelDied as death:
                raise client.KernelDied(death.args[0], pieces) from None
            if record["is"] == "frame":
                return record["header"], record.payload
            client.add(pieces, (record["is"][3:], record.payload))
