"""The relay in a guest (docs/guest-relay.md): its promises, one after the other, over its own HTTP."""

import base64
import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import guest
import pytest

# ---- start


def test_two_starts_at_once_make_one_relay_and_one_kernel(new_guest):
    starts = [
        subprocess.Popen(new_guest.start_command(), env=new_guest.environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    reports = [json.loads(start.communicate(timeout=90)[0]) for start in starts]
    assert [report["ok"] for report in reports] == [True, True]
    for what in ("epoch", "port", "pid"):
        assert reports[0][what] == reports[1][what]
    assert reports[0]["kernel"]["pid"] == reports[1]["kernel"]["pid"]
    assert reports[0]["python"] and reports[0]["ipython"]
    new_guest.adopt(reports[0])
    assert guest.events(new_guest.records()) == ["ready", "end"]


def test_without_ipython_it_names_the_remedy(new_guest):
    bare = new_guest.run / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True, timeout=90)
    new_guest.python = f"{bare}/bin/python3"
    report = new_guest.start(ok=False)
    assert report["problem"] == "no_ipython" and report["remedy"] is None  # there is no pip either
    pip = next((bare / "lib").glob("python*")) / "site-packages/pip"
    pip.mkdir()
    (pip / "__init__.py").touch()
    assert new_guest.start(ok=False)["remedy"] == f"{bare}/bin/python3 -m pip install -q 'ipython>=8.5'"


@pytest.mark.parametrize("secret", [None, "", "0" * 63, "A" * 64])
def test_without_a_secret_nothing_is_started(new_guest, secret):
    (new_guest.run / "secret").unlink()
    if secret is not None:
        new_guest.write("secret", secret)
    assert new_guest.start(ok=False)["problem"] == "no_secret"
    assert not (new_guest.run / "relay.json").exists()


def test_a_port_that_is_taken_is_not_insisted_on(new_guest):
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert new_guest.start("--port", str(taken))["port"] != taken
    assert guest.events(new_guest.records()) == ["ready", "end"]


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_the_relay_runs_on(new_guest, version, monkeypatch):
    found = shutil.which(f"python{version}") or ""
    if not found or subprocess.run([found, "-I", "-c", ""], capture_output=True).returncode:
        candidates = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
        if not candidates:
            pytest.skip(f"no Python {version} here")
        found = str(candidates[-1])
    monkeypatch.setattr(sys, "executable", found)
    new_guest.start()
    new_guest.records()
    assert new_guest.value("1 + 1") == "2"


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
            guest.wait_until(lambda: vm.state()["sent"] == number)
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
    code = f"import os, time\nprint('a', flush=True)\n{guest.waits_for('newer')}print('b')"
    older = vm.exchange(vm.execute(code))
    while older.next()["is"] != "stdout":
        pass
    newer = vm.exchange()
    assert older.all()[-1]["why"] == "replaced"
    (vm.workspace / "newer").touch()
    records = newer.all()
    vm.after = records[-1]["seq"]
    assert guest.text(records) == b"a\nb\n"


def test_limits(vm):
    began = time.monotonic()
    records = vm.records(vm.execute(f"import os, time\n{guest.waits_for('limits-seen')}'end'"), limit=1)
    assert records[-1]["why"] == "limit" and 0.9 < time.monotonic() - began < 20
    while "started" not in guest.events(records):
        records = vm.records(limit=1)
    assert vm.records(until="now") == [{"seq": vm.after, "is": "end", "why": "now"}]
    (vm.workspace / "limits-seen").touch()
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
    with socket.create_connection(("127.0.0.1", vm.port), timeout=30) as connection:
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
        vm.command("call", "POST", path, f"@{vm.run}/body"), capture_output=True, text=True, timeout=60
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
    child = "import subprocess\nchild = subprocess.Popen(['sleep', '60']); print('begun', flush=True)\nchild.wait()"
    vm.records()  # those of other tests
    running = vm.exchange(vm.execute(child))
    while running.next()["is"] != "stdout":
        pass
    vm.signal("kill_children")
    records = running.all()
    assert [r["header"]["data"]["text/plain"] for r in records if "display" in guest.events([r])] == ["-9"]
    endless = vm.execute("print('begun', flush=True)\nwhile True: pass")
    running = vm.exchange(endless, after=records[-1]["seq"])
    while running.next()["is"] != "stdout":
        pass
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
    guest.wait_until(lambda: not any(map(guest.alive, pids)))
    assert own.value("1 + 1") == "2"
