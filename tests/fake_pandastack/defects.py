"""The switches: how the fake differs from a server that has no bad day (README.md lists them)."""

import asyncio
import fnmatch
import json
import random

from go_json import Failure

# Lasting: name -> value at the start.
LASTING = {
    "june": False,
    "no_postgres": False,
    "unscoped": False,
    "require_auth": False,
    "paused_409": True,
    "cascade_delete": True,
    "unicode_hang": True,
    "fd1_corruption": True,
    "no_ipython": False,
    "no_proxy": False,
    "no_compute": False,
    "object_store": False,
    "rate_limit": False,
    "delay_ms": 0,
    "proxy_flush_ms": 0,
    "slow_upload": 0,
    "slow_snapshot": 0,
    "random": None,
}

# So many times: name=N, or {"times": N, "value": what, "only": "POST /v1/sandboxes/{id}/exec"}. `only` is a
# pattern (*, ?) for method and route; without "times" it is once.
COUNTED = {
    "storm_429",
    "unavailable_503",
    "unreachable_before",
    "unreachable_after",
    "drop_before",
    "drop_after",
    "wrong_content_type",
    "panic",
    "warmup_errors",
    "lost_lease",
    "duplicated_exec",
    "kill_kernel",
    "no_memory",
    "wake_fails",
    "failed_child",
}
# The number given is a threshold, not a count: it happens once, unless "times" says more.
THRESHOLDS = {
    "cut_upload_bytes",
    "cut_answer_bytes",
    "cut_proxy_bytes",
    "cut_proxy_seconds",
    "cut_stream_bytes",
    "cut_stream_seconds",
}

# What random=SEED,RATE draws from, when it names no others; in the manner of a bad network, not of a server
# that loses sandboxes. Name -> the value that a draw has.
RANDOM = {
    "storm_429": lambda draw: 1,
    "unavailable_503": lambda draw: 1,
    "unreachable_before": lambda draw: 1,
    "unreachable_after": lambda draw: 1,
    "drop_before": lambda draw: 1,
    "drop_after": lambda draw: 1,
    "wrong_content_type": lambda draw: 1,
    "warmup_errors": lambda draw: 1,
    "lost_lease": lambda draw: 1,
    "cut_upload_bytes": lambda draw: draw.randrange(1, 20_000),
    "cut_answer_bytes": lambda draw: draw.randrange(0, 200),
    "cut_proxy_bytes": lambda draw: draw.randrange(1, 3000),
    "cut_proxy_seconds": lambda draw: draw.random() / 5,
    "cut_stream_bytes": lambda draw: draw.randrange(1, 3000),
    "cut_stream_seconds": lambda draw: draw.random() / 5,
    "delay_ms": lambda draw: draw.randrange(1, 300),
    "agent_restart": lambda draw: 1,
    "duplicated_exec": lambda draw: 1,
    "kill_kernel": lambda draw: 1,
    "expired": lambda draw: 1,
}
NOT_BY_ITSELF = {"agent_restart", "duplicated_exec", "kill_kernel", "expired"}  # only when named


class Unknown(Exception):
    """No such switch, or not such a value."""


class Dropped(ConnectionError):
    """The connection was cut on purpose; nothing more is to be sent."""


def drop(request):
    if request.transport is not None:
        request.transport.abort()
    raise Dropped


class Defects:
    def __init__(self, counters):
        self.counters = counters
        self.lasting = dict(LASTING)
        self.counted = {}  # name -> {"times", "value", "only"}
        self.draw, self.rate, self.drawn = None, 0.0, ()
        self.request = None

    # ---- setting ----

    def set(self, name, value=True):
        if name == "random":
            self.set_random(value)
        elif name in LASTING:
            self.lasting[name] = value
        elif name in COUNTED or name in THRESHOLDS:
            self.set_counted(name, value)
        else:
            raise Unknown(f"no defect {name!r}; see tests/fake_pandastack/README.md")

    def set_counted(self, name, value):
        if value is None or value is False or (value == 0 and name in COUNTED):
            self.counted.pop(name, None)
            return
        entry = {"times": 1, "value": 0, "only": "*"}
        if isinstance(value, dict):
            entry |= value
        elif name in THRESHOLDS:
            entry["value"] = value
        else:
            entry["times"] = int(value)
        if not isinstance(entry["times"], int) or not isinstance(entry["only"], str):
            raise Unknown(f"{name}: times is a number, only is a pattern")
        self.counted[name] = entry

    def set_random(self, value):
        """SEED,RATE[,NAME...], as text or as a list; nothing ends it."""
        words = [str(word) for word in value] if isinstance(value, list) else str(value or "").split(",")
        self.lasting["random"] = value or None
        self.rate = 0.0
        if value:
            self.draw, self.rate = random.Random(int(words[0])), float(words[1])
            self.drawn = tuple(words[2:]) or tuple(name for name in RANDOM if name not in NOT_BY_ITSELF)
            for name in self.drawn:
                if name not in RANDOM:
                    raise Unknown(f"random cannot draw {name!r}")

    def set_text(self, text):
        """As the command line has it: name, name=value; values are JSON or else text."""
        name, equals, value = text.partition("=")
        try:
            self.set(name, json.loads(value) if equals else True)
        except ValueError:
            self.set(name, value)

    def reset(self):
        self.__init__(self.counters)

    def as_json(self):
        return self.lasting | self.counted

    # ---- asking ----

    def get(self, name):
        return self.lasting[name]

    def roll(self, request):
        """Whether this request has a random fault; called once for each."""
        if self.rate and self.draw.random() < self.rate:
            name = self.draw.choice(self.drawn)
            request["drawn"] = (name, RANDOM[name](self.draw))

    def strikes(self, name, request=None):
        """The value if it happens now, else None; this uses one of its times up."""
        drawn = self.drew(name, request)
        if drawn is not None:
            return drawn
        entry = self.counted.get(name)
        if not entry or entry["times"] <= 0:
            return None
        if request is not None and not fnmatch.fnmatchcase(request["route"], entry["only"]):
            return None
        entry["times"] -= 1
        if entry["times"] == 0:
            del self.counted[name]
        self.counters.faults[name] += 1
        return entry["value"]

    def drew(self, name, request):
        """The same for what random= drew for this request."""
        name_drawn, value = (request.get("drawn") if request is not None else None) or (None, None)
        if name_drawn != name:
            return None
        del request["drawn"]
        self.counters.faults[name] += 1
        return value

    def take(self, name, request=None):
        return self.strikes(name, request) is not None

    def take_all(self, name):
        """How many times are left of it, used up at once."""
        entry = self.counted.pop(name, None)
        return entry["times"] if entry else 0

    async def slow_upload(self, size):
        """`slow_upload`: bytes a second."""
        if self.lasting["slow_upload"]:
            await asyncio.sleep(size / self.lasting["slow_upload"])

    def cut_upload(self, request, size):
        if request.get("upload_cut") is None:
            request["upload_cut"] = self.strikes("cut_upload_bytes", request)
            if request["upload_cut"] is None:
                request["upload_cut"] = -1
        if 0 <= request["upload_cut"] < size:
            drop(request)

    def before(self, request):
        """What keeps a request from being done at all."""
        if self.take("drop_before", request):
            drop(request)
        if self.take("storm_429", request):
            raise too_many(request["workspace"])
        if self.take("unavailable_503", request):
            raise no_capacity()
        if self.take("unreachable_before", request):
            raise Failure(502, "agent unreachable")
        if self.drew("lost_lease", request) is not None:
            raise Failure(404, "not found")
        if self.take("panic", request):
            raise RuntimeError("a panic, as asked for")


def too_many(workspace):
    message = "rate limit: 50 req/burst, 25/sec sustained per workspace"
    return Failure(429, message, {"workspace": workspace}, {"Retry-After": "1"})


def no_capacity():
    detail = (
        "No compute node could be assigned right now. This is usually transient — retry in a few seconds."
    )
    return Failure(503, "no compute capacity available", {"detail": detail}, {"Retry-After": "5"})
