"""The relay in a guest (docs/guest-relay.md): its promises, one after the other, over its own HTTP."""

import base64
import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from signal import SIGSTOP

import guest
import pytest


@pytest.fixture
def fresh():
    made = guest.Guest()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_guest():
    made = guest.Guest()
    made.start()
    made.records()
    yield made
    made.close()


@pytest.fixture
def vm(shared_guest):
    """A guest with a kernel that is ready, shared by the tests of this file."""
    shared_guest.adopt(shared_guest.state())
    return shared_guest


@pytest.fixture
def own(fresh):
    """The same for one test alone."""
    fresh.start()
    assert guest.events(fresh.records()) == ["ready", "end"]
    return fresh


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- start


def test_two_starts_at_once_make_one_relay_and_one_kernel(fresh):
    starts = [
        subprocess.Popen(fresh.start_command(), env=fresh.environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    reports = [json.loads(start.communicate(timeout=40)[0]) for start in starts]
    assert [report["ok"] for report in reports] == [True, True]
    for what in ("epoch", "port", "pid"):
        assert reports[0][what] == reports[1][what]
    assert reports[0]["kernel"]["pid"] == reports[1]["kernel"]["pid"]
    assert reports[0]["python"] and reports[0]["ipython"]
    fresh.adopt(reports[0])
    assert guest.events(fresh.records()) == ["ready", "end"]


def test_without_ipython_it_names_the_remedy(fresh):
    bare = fresh.run / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True, timeout=40)
    fresh.python = f"{bare}/bin/python3"
    report = fresh.start(ok=False)
    assert report["problem"] == "no_ipython" and report["remedy"] is None  # there is no pip either
    pip = next((bare / "lib").glob("python*")) / "site-packages/pip"
    pip.mkdir()
    (pip / "__init__.py").touch()
    assert fresh.start(ok=False)["remedy"] == f"{bare}/bin/python3 -m pip install -q 'ipython>=8.5'"


@pytest.mark.parametrize("secret", [None, "", "0" * 63, "A" * 64])
def test_without_a_secret_nothing_is_started(fresh, secret):
    (fresh.run / "secret").unlink()
    if secret is not None:
        fresh.write("secret", secret)
    assert fresh.start(ok=False)["problem"] == "no_secret"
    assert not (fresh.run / "relay.json").exists()


def test_a_port_that_is_taken_is_not_insisted_on(fresh):
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert fresh.start("--port", str(taken))["port"] != taken
    assert guest.events(fresh.records()) == ["ready", "end"]


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_the_relay_runs_on(fresh, version, monkeypatch):
    found = shutil.which(f"python{version}") or ""
    if not found or subprocess.run([found, "-I", "-c", ""], capture_output=True).returncode:
        candidates = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
        if not candidates:
            pytest.skip(f"no Python {version} here")
        found = str(candidates[-1])
    monkeypatch.setattr(sys, "executable", found)
    fresh.start()
    fresh.records()
    assert fresh.value("1 + 1") == "2"


# ---- a frame is delivered once


def test_a_cell_is_one_request(vm):
    records = vm.records(vm.execute("print('é', end='')\n'漢'"))
    # Text may come before a frame that was sent before it, as everywhere on the kernel's link.
    assert guest.events(records) in (
        ["sent", "started", "stdout", "display", "done", "end"],
        ["sent", "stdout", "started", "display", "done", "end"],
    )
    assert guest.text(records) == "é".encode()
    numbers = [record["seq"] for record in records[:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + 5))


def test_a_repeated_request_gets_the_same_answer_and_runs_nothing(vm):
    vm.run_cell("runs = 0")
    cell, before = vm.execute("runs += 1; runs"), vm.after
    first = vm.exchange(cell).all()
    again = vm.exchange(cell, send=vm.sent, after=before).all()
    assert first == again and first[-1]["why"] == "done"
    assert vm.value("runs") == "1"


@pytest.mark.parametrize("how_much", [0.0, 0.5, 1.0])
def test_a_request_that_is_cut(vm, how_much):
    """Before it was whole it did nothing, after it it did all: the same request goes on from there."""
    vm.run_cell("runs = 0")
    body = guest.frame(vm.execute("runs += 1; print('x' * 100)"))
    number = vm.sent + 1
    head = f"POST /exchange?epoch={vm.epoch}&after={vm.after}&send={number} HTTP/1.1\r\n"
    head += f"X-Pykeep-Secret: {vm.secret}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", vm.port)) as connection:
        connection.sendall(head.encode() + body[: int(len(body) * how_much)])
        if how_much == 1.0:
            wait_until(lambda: vm.state()["sent"] == number)
    if how_much < 1.0:
        time.sleep(0.05)
        assert vm.state()["sent"] == number - 1
    records = vm.exchange(body, send=number).all()
    vm.after = records[-1]["seq"]
    assert guest.text(records) == b"x" * 100 + b"\n"
    assert vm.value("runs") == "1"


def test_numbers_that_do_not_follow(vm):
    def refused(header, **query):
        with pytest.raises(guest.Refused) as refusal:
            vm.exchange(header, **query)
        assert refusal.value.status == 409
        assert refusal.value.body["state"]["sent"] == sent
        return refusal.value.reason

    vm.run_cell("1")
    sent = vm.sent
    cell = vm.execute("ran = 1")
    assert refused(cell, send=sent + 2) == "gap"
    assert refused(cell, send=sent) == "conflict"
    assert refused(cell, send=sent - 1) == "gap"
    assert refused(None, epoch="0-0") == "epoch"
    vm.sent = sent
    assert vm.value("'ran' in dir()") == "False"


@pytest.mark.parametrize(
    "query, body",
    [
        ("after=0", b""),
        ("epoch={epoch}", b""),
        ("epoch={epoch}&after=-1", b""),
        ("epoch={epoch}&after=99999999", b""),
        ("epoch={epoch}&after=0&limit=0", b""),
        ("epoch={epoch}&after=0&until=noon", b""),
        ("epoch={epoch}&after=0", b"no number"),
        ("epoch={epoch}&after=0&send=1", b"no frame"),
        ("epoch={epoch}&after=0&send=1", guest.frame({}) + b"more"),
        ("epoch={epoch}&after=0&send=1", b"\x02\0\0\0\0\0\0\0[]"),
        ("epoch={epoch}&after=0&send=1", b"\x06\0\0\0\0\0\0\0{NaN:1"),
    ],
)
def test_requests_that_make_no_sense_change_nothing(vm, query, body):
    before = vm.state()
    with pytest.raises(guest.Refused) as refusal:
        vm.request("POST", "/exchange?" + query.format(epoch=vm.epoch), body)
    assert refusal.value.status == (409 if query == "after=0" else 400)
    assert vm.state() == before


# ---- exchanges


def test_the_newest_exchange_wins(vm):
    code = "import time\nprint('a', flush=True)\ntime.sleep(0.5)\nprint('b')"
    older = vm.exchange(vm.execute(code))
    while older.next()["is"] != "stdout":
        pass
    newer = vm.exchange()
    assert older.all()[-1]["why"] == "replaced"
    records = newer.all()
    vm.after = records[-1]["seq"]
    assert guest.text(records) == b"a\nb\n"


def test_limits(vm):
    began = time.monotonic()
    records = vm.records(vm.execute("import time; time.sleep(1.5); 'end'"), limit=1)
    assert records[-1]["why"] == "limit" and time.monotonic() - began < 1.4
    assert vm.records(until="now") == [{"seq": vm.after, "is": "end", "why": "now"}]
    assert guest.events(vm.records())[-2:] == ["done", "end"]
    assert vm.records()[-1]["why"] == "done"  # nothing runs: at once


def test_a_question_is_answered_by_the_next_exchange(vm):
    asked = vm.exchange(vm.execute("input('? ')", can_ask=True))
    while (record := asked.next())["is"] != "frame" or record["header"]["ev"] != "input_request":
        pass
    vm.after = record["seq"]
    records = vm.records({"op": "reply", "id": vm.cell, "value": "ü"})
    assert "ü" in [r["header"] for r in records if r["is"] == "frame"][0]["data"]["text/plain"]


def test_many_connections_and_late_answers_do_no_harm(vm):
    idle = [socket.create_connection(("127.0.0.1", vm.port)) for _ in range(40)]
    assert vm.value("2 + 2") == "4"
    for connection in idle:
        connection.close()


# ---- memory


def test_what_nobody_reads_makes_the_cell_wait(vm):
    size = 48 << 20
    stalled = vm.exchange(vm.execute(f"import sys\nfor i in range({size >> 20}): print(end='y' * (1 << 20))"))
    wait_until(lambda: vm.state()["kept"] > 15 << 20)
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
        "import threading, time\n"
        "def chatter():\n"
        "    time.sleep(0.1)\n"
        "    for i in range(100_000): print(f'{i:9}')\n"
        "    print('last', flush=True); open('chatted', 'w')\n"
        "thread = threading.Thread(target=chatter); thread.start()"
    )
    wait_until(lambda: (vm.workspace / "chatted").exists())
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

    vm.run_cell("1")
    time.sleep(0.1)
    before = switches()
    time.sleep(0.5)
    assert switches() == before


# ---- who may ask


@pytest.mark.parametrize("headers", [{}, {"X-Pykeep-Secret": "0" * 64}, {"X-Pykeep-Secret": ""}])
def test_without_the_secret_there_is_nothing_to_see(vm, headers):
    for method, path in (("GET", "/state"), ("POST", f"/exchange?epoch={vm.epoch}&after=0"), ("GET", "/x")):
        with pytest.raises(guest.Refused) as refusal:
            vm.request(method, path, b"x" * 100_000, headers=headers)
        assert refusal.value.status == 403 and "state" not in refusal.value.body


@pytest.mark.parametrize(
    "bytes_sent, status",
    [
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400"),
        (b"GET /state HTTP/1.0\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000, b"431"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
    ],
)
def test_what_is_not_a_request_is_refused(vm, bytes_sent, status):
    with socket.create_connection(("127.0.0.1", vm.port), timeout=5) as connection:
        connection.sendall(bytes_sent)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.split()[1] == status
    assert b"Connection: close" in answer


def test_only_the_relays_own_socket_can_end_it(vm):
    for path in ("/end", "/renew"):
        with pytest.raises(guest.Refused) as refusal:
            vm.request("POST", path)
        assert refusal.value.status == 404


def test_call_carries_requests_as_text(vm):
    before = vm.after
    (vm.run / "body").write_bytes(guest.frame(vm.execute("print('by call')")))
    path = f"/exchange?epoch={vm.epoch}&after={before}&send={vm.sent + 1}"
    done = subprocess.run(
        vm.command("call", "POST", path, f"@{vm.run}/body"), capture_output=True, text=True, timeout=20
    )
    status, *pieces, end = done.stdout.splitlines()
    assert (status, end, done.returncode) == ("200", ".", 0)
    body = b"".join(map(base64.b64decode, pieces))
    assert b"by call" in body and b'"why":"done"' in body
    assert not (vm.run / "body").exists()
    vm.adopt(vm.state())
    nobody = subprocess.run(
        [*vm.command()[:4], str(vm.workspace), "call", "GET", "/state"], capture_output=True, text=True
    )
    assert nobody.stdout.startswith("0 ") and nobody.returncode == 1


# ---- signals


def test_interrupt_and_kill_children(vm):
    cell = vm.execute("import subprocess\nsubprocess.run(['sleep', '60']).returncode")
    running = vm.exchange(cell)
    running.next(), running.next()
    time.sleep(0.2)
    vm.signal("kill_children")
    records = running.all()
    assert [r["header"]["data"]["text/plain"] for r in records if "display" in guest.events([r])] == ["-9"]
    running = vm.exchange(vm.execute("while True: pass"), after=records[-1]["seq"])
    time.sleep(0.2)
    vm.signal("interrupt")
    errors = [r["header"]["name"] for r in running.all() if "error" in guest.events([r])]
    assert errors == ["KeyboardInterrupt"]
    with pytest.raises(guest.Refused) as refusal:
        vm.signal("hup")
    assert refusal.value.status == 400


def test_children_that_were_let_go_are_found(own):
    code = (
        "import subprocess\n"
        "subprocess.run('setsid sleep 61 >/dev/null 2>&1 & echo $!', shell=True)\n"
        "child = subprocess.Popen(['sleep', '62'], env={}); print(child.pid)"
    )
    pids = [int(pid) for pid in guest.text(own.run_cell(code)).split()]
    assert len(pids) == 2 and all(map(guest.alive, pids))
    own.signal("kill_children")
    wait_until(lambda: not any(map(guest.alive, pids)))
    assert own.value("1 + 1") == "2"


# ---- ends


@pytest.mark.parametrize(
    "code, end",
    [("os._exit(4)", {"code": 4, "signal": None}), ("os.kill(os.getpid(), 9)", {"code": None, "signal": 9})],
)
def test_a_kernel_that_ended(own, code, end):
    left = "import os, subprocess\nprint(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"
    records = own.run_cell(left + code)
    assert guest.events(records) == ["sent", "started", "stdout", "exit", "end"]
    assert {name: records[-2][name] for name in end} == end and records[-2]["oom_kills"] == 0
    assert records[-1]["why"] == "exit"
    wait_until(lambda: not guest.alive(int(guest.text(records))))
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
        own.execute("import time\nfor i in range(8): time.sleep(0.1); print(i)\nkept += 1")
    )
    while running.next()["is"] != "stdout":
        pass
    own.signal_relay()
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
    wait_until(lambda: own.state()["last"] >= own.after + 3)
    own.signal_relay()
    own.start()
    asked = own.exchange()
    record = asked.next()
    assert record["header"]["ev"] == "input_request"
    own.adopt(own.state())
    assert "'yes'" in str(own.records({"op": "reply", "id": own.cell, "value": "yes"}))


def test_a_busy_kernel_without_a_relay_is_taken_over_before_it_speaks(own):
    waiting = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\nkept = 5"
    running = own.exchange(own.execute(waiting))
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
    open_exchange = own.exchange(own.execute("import time; time.sleep(0.5)"))
    own.new_secret()
    own.start()
    assert own.epoch != before and own.epoch.split("-")[0] == before.split("-")[0]
    assert open_exchange.all()[-1]["why"] == "replaced"
    with pytest.raises(guest.Refused) as refusal:
        own.request("GET", "/state", headers={"X-Pykeep-Secret": old})
    assert refusal.value.status == 403
    assert guest.events(own.records())[-2:] == ["done", "end"]
    assert guest.events(own.records({"op": "resumed", "reason": "fork", "environment": {}}))[-2:] == [
        "ready",
        "end",
    ]
    assert own.value("kept") == "8"


# ---- a hostile cell


def test_a_broken_link_is_reported_and_read_no_more(own):
    own.exchange(own.execute("import os, time; os.write(3, b'\\xff' * 100); time.sleep(60)"))
    wait_until(lambda: own.state()["last"] >= own.after + 3)
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
    wait_until(lambda: own.state()["kept"] > 15 << 20)
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


def test_the_kernels_environment(fresh):
    fresh.write("environment.json", json.dumps({"GIVEN": "é", "BAD": 5, "A=B": "x", "LANG": "C"}))
    fresh.start()
    fresh.records()
    given = eval(fresh.value("import os; dict(os.environ)"))
    assert given["GIVEN"] == "é" and given["LANG"] == "C" and "BAD" not in given
    assert given["PYKEEP_LINK"] == f"{fresh.run}/kernel.sock"
    assert fresh.value("os.getcwd()") == repr(str(fresh.workspace))
