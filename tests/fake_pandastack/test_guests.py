"""Guests: real processes, apart from the host and from each other, and gone with the fake."""

import socket
import time
from pathlib import Path

import pytest
import running

DAEMON = "setsid nohup sleep 54321 >/dev/null 2>&1 &"


def until(condition):
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def with_words(words):
    """The host's processes that have them in their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                continue
            if words.encode() in line:
                found.append(int(entry.name))
    return found


def test_it_looks_like_the_template(api, sandbox):
    seen = api.output(sandbox, "id -un; pwd; echo $HOME $SHELL; ls -d /workspace; hostname; which python3")
    assert seen.split() == [
        "root",
        "/root",
        "/root",
        "/bin/bash",
        "/workspace",
        "sandbox",
        "/usr/local/bin/python3",
    ]


@running.needs_packages
def test_its_python(api, sandbox):
    api.put(sandbox + "/fs?path=/opt/app/main.py", b"import sys, helper; print(helper.x, sys.executable)")
    api.put(sandbox + "/fs?path=/opt/app/helper.py", b"x = 7")
    assert api.output(sandbox, "cd /; python3 /opt/app/main.py").split() == ["7", "/usr/local/bin/python3"]
    assert api.output(sandbox, "python3 -I -c 'import IPython, numpy, pandas, matplotlib; print(1)'") == "1\n"


def test_its_own_network_and_files(api, sandbox):
    other = api.create()
    api.run(sandbox, "echo 1 > /workspace/file; " + running.served("python3 -m http.server 8000", 8000))
    assert api.get(sandbox + "/proxy/8000/file").status == 404  # served from /root
    assert api.get(other + "/proxy/8000/").status == 502
    assert api.get(other + "/fs?path=/workspace/file").status == 404
    assert api.run(other, "touch /usr/bin/x")["exit_code"] != 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", 8000)) != 0  # not on the host


def test_a_command_ends_with_its_pipes(api, sandbox):
    """As an SSH channel does: what a daemon still holds keeps the answer waiting."""
    start = time.monotonic()
    api.run(sandbox, DAEMON)
    assert time.monotonic() - start < 30
    start = time.monotonic()
    api.run(sandbox, "sleep 1 & exit 0")
    assert time.monotonic() - start > 1
    assert with_words("sleep 54321")


def test_exit_codes(api, sandbox):
    assert api.run(sandbox, "kill -9 $$")["exit_code"] == 137
    assert api.run(sandbox, "exit 300")["exit_code"] == 300 % 256
    assert api.run(sandbox, "printf '\\xff'")["stdout"] == "\ufffd"
    assert api.run(sandbox, "sleep 0.2; echo done")["stdout"] == "done\n"
    assert (
        api.post(sandbox + "/exec", {"cmd": "sleep 1.2; echo late", "timeout_seconds": 1}).body["stdout"]
        == "late\n"
    )


def test_a_stream_ends_with_its_client(api, sandbox):
    with socket.create_connection(("127.0.0.1", api.port)) as client:
        body = b'{"cmd":"sleep 65432"}'
        head = f"POST {sandbox}/exec/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.TOKEN}\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: with_words("sleep 65432"))
    until(lambda: not with_words("sleep 65432"))


def test_a_removed_guest_leaves_nothing(server, api, sandbox):
    api.run(sandbox, DAEMON)
    assert server.counters()["processes"] == 1
    api.delete(sandbox)
    assert not with_words("sleep 54321")
    assert server.counters()["processes"] == 0


def test_a_killed_fake_leaves_nothing(server):
    with running.Running() as other:
        api = running.Api(other.port)
        api.run(api.create(), DAEMON.replace("54321", "43210"))
        assert with_words("sleep 43210")
        other.kill()
        until(lambda: not with_words("sleep 43210"))


def test_proxy_streams(api, sandbox):
    """What the guest has sent arrives while it goes on; the key stays outside."""
    program = """
import http.server, os, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
        names = sorted(name.lower() for name in self.headers)
        for piece in (self.path.encode(), body, repr(names).encode()):
            self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(piece), piece)); self.wfile.flush()
            while not os.path.exists("seen"): time.sleep(0.01)
        self.wfile.write(b"0\\r\\n\\r\\n")
http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
"""
    api.put(sandbox + "/fs?path=/root/serve.py", program.encode())
    api.run(sandbox, running.served("python3 serve.py", 8000))
    api.connection.request(
        "POST",
        sandbox + "/proxy/8000/a%2Fb?c=%20d",
        body=b"\0\xff",
        headers={"Authorization": f"Bearer {running.TOKEN}", "X-Pykeep-Secret": "s"},
    )
    with api.connection.getresponse() as response:
        assert response.read1() == b"/a%2Fb?c=%20d"
        running.Api(api.port).put(sandbox + "/fs?path=/root/seen", b"")
        rest = response.read()
    assert rest.startswith(b"\0\xff")
    assert b"x-pykeep-secret" in rest and b"authorization" not in rest


def test_a_proxied_request_ends_with_its_client(api, sandbox):
    program = """
import socket
listener = socket.create_server(("0.0.0.0", 8000))
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    open("/root/asked", "w").close()
    while connection.recv(65536): pass
    open("/root/gone", "w").close()
"""
    api.put(sandbox + "/fs?path=/root/serve.py", program.encode())
    api.run(sandbox, running.served("python3 serve.py", 8000))
    with socket.create_connection(("127.0.0.1", api.port)) as client:
        client.sendall(f"GET {sandbox}/proxy/8000/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        api.output(sandbox, "until test -e asked; do sleep 0.01; done")
        assert api.run(sandbox, "test -e gone")["exit_code"] == 1
    api.output(sandbox, "until test -e gone; do sleep 0.01; done")


def test_the_clock_of_use(server, api, sandbox):
    def idle():
        return api.get(sandbox + "/lifecycle").body["idle_seconds"]

    unused = ["", "/lifecycle", "/ports", "/fs/stat?path=/root", "/fs/dir?path=/root", "/repl/sessions"]
    server.tick(100)
    for path in unused:
        assert api.get(sandbox + path).status == 200
    assert idle() == 100
    assert api.patch(sandbox + "/lifecycle", {"ttl_seconds": 600}).status == 200
    assert idle() == 0
    server.tick(100)
    api.run(sandbox, "true")
    assert idle() == 0
    server.tick(599)
    assert api.get(sandbox).status == 200
    server.tick(1)
    assert api.get(sandbox).status == 404
    assert server.counters()["events"]["sandboxes_reaped"] >= 1


def test_the_default_ttl_and_persistence(server, api):
    made = "/v1/sandboxes/" + api.post("/v1/sandboxes", {"template": "base"}).body["id"]
    kept = api.create(persistent=True)
    assert api.get(made + "/lifecycle").body["ttl_seconds"] == 300
    server.tick(1000)
    assert (api.get(made).status, api.get(kept).status) == (404, 200)


@pytest.mark.parametrize("action", ["pause", "hibernate"])
def test_a_guest_that_rests(server, api, sandbox, action):
    api.run(sandbox, "echo kept > /workspace/file")
    api.post(f"{sandbox}/{action}")
    assert api.get(sandbox).body["status"] == {"pause": "paused", "hibernate": "hibernated"}[action]
    if action == "pause":
        assert api.post(sandbox + "/exec", {"cmd": "true"}).status == 409
        api.post(sandbox + "/resume")
    # A hibernated one is woken by what uses it, not by what looks at it.
    assert api.output(sandbox, "cat /workspace/file") == "kept\n"
    assert api.get(sandbox).body["status"] == "running"


def test_an_agent_restart(server, api, sandbox):
    kept = api.create(persistent=True)
    api.run(kept, "echo kept > /workspace/file")
    server.agent_restart()
    assert api.get(sandbox).body["status"] == "failed"
    assert api.post(sandbox + "/exec", {"cmd": "true"}).status == 409
    assert api.get(kept).body["status"] == "hibernated"
    assert api.output(kept, "cat /workspace/file") == "kept\n"
