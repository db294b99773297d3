"""The relay in a guest (docs/guest-relay.md): what happens to it, its kernel and its memory, and who means it ill."""

import json
import time
from pathlib import Path
from signal import SIGSTOP

import guest
import pytest

# ---- memory


def test_what_nobody_reads_makes_the_cell_wait(vm):
    size = 48 << 20
    stalled = vm.exchange(vm.execute(f"import sys\nfor i in range({size >> 20}): print(end='y' * (1 << 20))"))
    guest.wait_until(lambda: vm.state()["kept"] > 15 << 20)
    time.sleep(0.2)
    assert vm.state()["kept"] < 18 << 20 and vm.state()["busy"]
    stalled.close()
    taken = 0
    while True:
        records = vm.records()
        taken += len(guest.text(records))
        if records[-1]["why"] == "done":
            break
        assert records[-1]["why"] == "acknowledge"
    assert taken == size
    vm.records()
    assert vm.state()["kept"] == 0
    peak = next(line for line in Path(f"/proc/{vm.pid('relay')}/status").open() if "VmHWM" in line)
    assert int(peak.split()[1]) < 90 << 10


def test_between_cells_only_the_end_of_what_is_printed_is_kept(vm):
    vm.run_cell(
        "import os, threading, time\n"
        "def chatter():\n"
        f"    {guest.waits_for('cell-ended')}"
        "    for i in range(100_000): print(f'{i:9}')\n"
        "    print('last', flush=True); open('chatted', 'w')\n"
        "thread = threading.Thread(target=chatter); thread.start()"
    )
    (vm.workspace / "cell-ended").touch()
    guest.wait_until((vm.workspace / "chatted").exists)
    assert vm.state()["kept"] < 70 << 10
    records = vm.records(vm.execute("thread.join(); print('mine')"))
    kinds = guest.events(records)
    assert kinds[0] == "dropped" and kinds.index("sent") < kinds.index("started")
    at = next(i for i, record in enumerate(records) if record["is"] == "sent")
    late = guest.text(records[:at])
    assert records[0]["bytes"] + len(late) == 100_000 * 10 + 5 and late.endswith(b"last\n")
    assert guest.text(records[at:]) == b"mine\n"


def test_many_small_records_are_acknowledged_as_well(vm):
    """What a record costs the relay is more than what it brings."""
    vm.run_cell('import os; small = b\'\\x0c\\0\\0\\0\\0\\0\\0\\0{"ev":"odd"}\'')
    records = vm.run_cell("for i in range(65): data = small * 1000; assert os.write(3, data) == len(data)")
    assert guest.events(records).count("odd") == 65_000


def test_the_largest_payload(vm):
    code = (
        "import os, struct\n"
        'header = b\'{"ev":"display","e":1}\'\n'
        "payload = bytes(range(256)) * (1 << 17)\n"
        "data = memoryview(struct.pack('<II', len(header), len(payload)) + header + payload)\n"
        "while data: data = data[os.write(3, data):]"
    )
    records = vm.run_cell(code)
    large = next(record for record in records if record.payload)
    assert large["header"] == {"ev": "display", "e": 1}
    assert large.payload == bytes(range(256)) * (1 << 17)


def test_an_idle_relay_does_not_wake_up(vm):
    def switches():
        lines = Path(f"/proc/{vm.pid('relay')}/status").read_text().splitlines()
        return next(line for line in lines if line.startswith("voluntary"))

    def sleeps(seconds):
        before = switches()
        time.sleep(seconds)
        return switches() == before

    vm.run_cell("1")
    guest.wait_until(lambda: sleeps(0.3))  # it has seen the end of our connections
    assert sleeps(0.5)


# ---- ends


@pytest.mark.parametrize(
    "code, end",
    [("os._exit(4)", {"code": 4, "signal": None}), ("os.kill(os.getpid(), 9)", {"code": None, "signal": 9})],
)
def test_a_kernel_that_ended(own, code, end):
    left = "import os, subprocess\nprint(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"
    records = own.run_cell(left + code)
    # Text may come before a frame that was sent before it.
    assert guest.events(records) in (
        ["sent", "started", "stdout", "exit", "end"],
        ["sent", "stdout", "started", "exit", "end"],
    )
    assert {name: records[-2][name] for name in end} == end and records[-2]["oom_kills"] == 0
    assert records[-1]["why"] == "exit"
    guest.wait_until(lambda: not guest.alive(int(guest.text(records))))
    with pytest.raises(guest.Refused) as refusal:
        own.exchange(own.execute("1"))
    assert refusal.value.reason == "exited"
    before = own.epoch
    report = own.start()
    assert report["epoch"] != before and report["sent"] == 0
    assert guest.events(own.records()) == ["ready", "end"]


def test_a_relay_that_was_killed_while_a_cell_runs(own):
    own.run_cell("kept = 1")
    running = own.exchange(
        own.execute(
            f"import os, time\nprint('begun')\n{guest.waits_for('killed')}"
            "for i in range(8): time.sleep(0.1); print(i)\nkept += 1"
        )
    )
    while running.next()["is"] != "stdout":
        pass
    own.signal_relay()
    (own.workspace / "killed").touch()
    with pytest.raises(guest.Cut):
        running.all()
    before, number = own.epoch, own.sent
    report = own.start()
    assert report["epoch"].split("-")[0] != before.split("-")[0]
    with pytest.raises(guest.Refused) as refusal:
        own.exchange(epoch=before)
    assert refusal.value.reason == "epoch"
    rest = own.records()
    assert rest[-1]["why"] == "done" and guest.text(rest).endswith(b"7\n")
    assert own.state()["sent"] == number  # it was delivered: it is not sent again
    assert own.value("kept") == "2"


def test_a_question_that_waits_is_asked_again(own):
    own.exchange(own.execute("input('? ')", can_ask=True))
    guest.wait_until(lambda: own.state()["last"] >= own.after + 3)
    own.signal_relay()
    own.start()
    asked = own.exchange()
    record = asked.next()
    assert record["header"]["ev"] == "input_request"
    own.adopt(own.state())
    assert "'yes'" in str(own.records({"op": "reply", "id": own.cell, "value": "yes"}))


def test_a_busy_kernel_without_a_relay_is_taken_over_before_it_speaks(own):
    running = own.exchange(own.execute(f"import os, time\n{guest.waits_for('go')}kept = 5"))
    assert guest.events([running.next(), running.next()]) == ["sent", "started"]
    own.signal_relay()
    report = own.start()
    assert report["kernel"] == {**report["kernel"], "alive": True, "connected": False}
    assert report["sent"] is None and report["busy"]
    with pytest.raises(guest.Refused) as refusal:
        own.exchange(own.execute("1"))
    assert refusal.value.reason == "not_connected"
    (own.workspace / "go").touch()
    assert own.records()[-1]["why"] == "done"
    own.adopt(own.state())
    assert own.value("kept") == "5"


def test_a_relay_that_hangs_is_replaced(own):
    own.run_cell("kept = 6")
    hung = own.pid("relay")
    own.signal_relay(SIGSTOP)
    own.start()
    assert not guest.alive(hung)
    own.records()
    own.adopt(own.state())
    assert own.value("kept") == "6"


def test_a_kernel_that_was_carried_to_another_pid_is_found(own):
    own.run_cell("kept = 7")
    kernel = own.pid("kernel")
    own.signal_relay()
    own.write("kernel.json", '{"pid": 1, "started": 1}')
    own.start()
    own.records()
    assert own.pid("kernel") == kernel
    own.adopt(own.state())
    assert own.value("kept") == "7"


def test_another_secret_makes_a_guest_of_its_own(own):
    """What a fork is told apart by: until then both have everything in common."""
    own.run_cell("kept = 8")
    old, before = own.secret, own.epoch
    open_exchange = own.exchange(own.execute(f"import os, time\n{guest.waits_for('replaced')}"))
    own.new_secret()
    own.start()
    assert own.epoch != before and own.epoch.split("-")[0] == before.split("-")[0]
    assert open_exchange.all()[-1]["why"] == "replaced"
    with pytest.raises(guest.Refused) as refusal:
        own.request("GET", "/state", headers={"X-Pykeep-Secret": old})
    assert refusal.value.status == 403
    (own.workspace / "replaced").touch()
    assert guest.events(own.records())[-2:] == ["done", "end"]
    assert guest.events(own.records({"op": "resumed", "reason": "fork", "environment": {}}))[-2:] == [
        "ready",
        "end",
    ]
    assert own.value("kept") == "8"


# ---- a hostile cell


def test_a_broken_link_is_reported_and_read_no_more(own):
    own.exchange(own.execute("import os, time; os.write(3, b'\\xff' * 100); time.sleep(60)"))
    guest.wait_until(lambda: own.state()["last"] >= own.after + 3)
    records = own.records(until="now")
    assert guest.events(records) == ["sent", "started", "violation", "end"]
    own.signal("kill")
    assert guest.events(own.records())[-2:] == ["exit", "end"]


def test_a_child_cannot_be_the_kernel(own):
    impostor = (
        "import os, socket, struct, sys\n"
        "end = socket.socket(socket.AF_UNIX); end.connect(os.environ['PYKEEP_LINK'])\n"
        'hello = b\'{"ev":"hello","received":99,"busy":false}\'\n'
        "end.sendall(struct.pack('<II', len(hello), 0) + hello); print(end.recv(1))"
    )
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {impostor!r}], check=False)"
    own.run_cell(code)
    assert own.state()["sent"] == own.sent
    assert own.value("1 + 1") == "2"


def test_a_kernel_that_floods_both_pipes_and_the_link_is_interrupted(own):
    code = (
        "import os, threading, itertools\n"
        "def flood(fd):\n"
        "    while True: os.write(fd, b'z' * 65536)\n"
        "for fd in (1, 2): threading.Thread(target=flood, args=(fd,), daemon=True).start()\n"
        "for i in itertools.count(): display(i)"
    )
    own.exchange(own.execute(code)).close()
    guest.wait_until(lambda: own.state()["kept"] > 15 << 20)
    assert own.state()["kept"] < 20 << 20
    own.signal("kill")
    records = own.records()
    while records[-1]["why"] == "acknowledge":
        records = own.records()
    assert guest.events(records)[-2:] == ["exit", "end"]


def test_an_idle_kernel_holds_nothing_that_cannot_be_frozen(own):
    listing = own.value(
        "import os\n"
        "[(fd, os.readlink(f'/proc/self/fd/{fd}').rpartition('/')[2].split(':')[0]) for fd in range(64)"
        " if os.path.exists(f'/proc/self/fd/{fd}')]"
    )
    expected = [(0, "null"), (1, "stdout"), (2, "stderr"), (3, "socket"), (4, "stdout"), (5, "stderr")]
    assert eval(listing) == expected


def test_the_kernels_environment(new_guest):
    new_guest.write("environment.json", json.dumps({"GIVEN": "é", "BAD": 5, "A=B": "x", "LANG": "C"}))
    new_guest.start()
    new_guest.records()
    given = eval(new_guest.value("import os; dict(os.environ)"))
    assert given["GIVEN"] == "é" and given["LANG"] == "C" and "BAD" not in given
    assert given["PYKEEP_LINK"] == f"{new_guest.run}/kernel.sock"
    assert new_guest.value("os.getcwd()") == repr(str(new_guest.workspace))
