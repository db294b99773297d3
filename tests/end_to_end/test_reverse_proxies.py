"""The configurations in packaging/, each with its proxy really running in front of the program: what a cell
prints arrives while it runs, files stream both ways, and the server knows its public name.

PYKEEP_PROXIES is a directory with the programs, unpacked by ./dev; else those of the machine are used.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import time

import pytest
from conftest import environment_in, program
from http_server import HttpServer
from mcp_client import MODERN

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
MIB = 1 << 20


def proxy_program(name):
    places = [
        pathlib.Path(os.environ.get("PYKEEP_PROXIES", "/nowhere")) / place
        for place in ("usr/sbin", "usr/bin")
    ]
    path = os.pathsep.join(map(str, [*places, os.environ.get("PATH", ""), "/usr/sbin"]))
    found = shutil.which(name, path=path)
    if not found:
        pytest.skip(f"no {name} on this machine (./dev unpacks one)")
    return found


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def replaced(text, replacements):
    """The file as packaged, but for names, ports and certificates of the test; each must occur."""
    for old, new in replacements.items():
        assert old in text, f"{old!r} is no longer in the packaged file"
        text = text.replace(old, str(new))
    return text


def nginx(directory, port, backend, certificate):
    site = replaced(
        (PACKAGING / "nginx.conf").read_text(),
        {
            "server 127.0.0.1:8420;": f"server {backend};",
            "listen 443 ": f"listen 127.0.0.1:{port} ",
            "    listen [::]:443 ssl http2;\n": "",
            "server_name keep.example.com": "server_name localhost",
            "/etc/letsencrypt/live/keep.example.com/fullchain.pem": certificate,
            "/etc/letsencrypt/live/keep.example.com/privkey.pem": certificate,
        },
    )
    temporary = "".join(
        f"{kind}_temp_path {directory}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = directory / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""  # who may read this directory
    whole.write_text(
        f"daemon off; pid {directory}/pid; {user}\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{site}}}\n"
    )
    return [proxy_program("nginx"), "-p", str(directory), "-c", str(whole), "-e", "stderr"]


def caddy(directory, port, backend, certificate):
    site = replaced(
        (PACKAGING / "Caddyfile").read_text(),
        {
            "keep.example.com {": f"https://localhost:{port} {{\n\ttls {certificate} {certificate}",
            "reverse_proxy 127.0.0.1:8420": f"reverse_proxy {backend}",
        },
    )
    whole = directory / "Caddyfile"
    whole.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + site)
    return [proxy_program("caddy"), "run", "--adapter", "caddyfile", "--config", str(whole)]


class Proxied:
    """The program behind a proxy; requests go to the proxy, over TLS."""

    def __init__(self, command_for, directory):
        certificate = directory / "certificate.pem"
        make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
        make += ["-addext", "subjectAltName=DNS:localhost", "-keyout", directory / "key", "-out", certificate]
        subprocess.run(make, check=True, capture_output=True)
        certificate.write_text(certificate.read_text() + (directory / "key").read_text())
        self.tls = ssl.create_default_context(cafile=certificate)
        self.port = free_port()
        self.url = f"https://localhost:{self.port}"
        command = command_for(directory, self.port, "BACKEND", certificate)  # skips before anything runs
        options = ["--public-url", self.url]
        self.server = HttpServer([program("PYKEEP_BINARY")], *options, env=environment_in(directory))
        command = command_for(directory, self.port, self.server.address, certificate)
        self.log = open(directory / "proxy.log", "w+")
        environment = {**os.environ, "HOME": str(directory), "XDG_DATA_HOME": str(directory)}
        self.proxy = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
        self.wait_until_up()

    def wait_until_up(self):
        end = time.monotonic() + 30
        while True:
            try:
                return self.request("GET", "/healthz")
            except OSError as failure:
                if self.proxy.poll() is None and time.monotonic() < end:
                    time.sleep(0.05)
                    continue
                self.log.seek(0)
                said = self.log.read()
                self.close()
                raise AssertionError(f"the proxy does not serve: {failure}\n{said}") from failure

    def close(self):
        self.proxy.terminate()
        self.proxy.wait(20)
        self.log.close()
        self.server.stop()

    def connect(self):
        return http.client.HTTPSConnection("localhost", self.port, timeout=60, context=self.tls)

    def request(self, method, path, body=None, headers=None):
        connection = self.connect()
        connection.request(method, path.removeprefix(self.url), body, headers or {})
        response = connection.getresponse()
        answer = response.status, response.headers, response.read()
        connection.close()
        return answer

    def open_call(self, name, arguments, token=None):
        """A tools/call whose response is read by the caller."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        if token:
            meta["progressToken"] = token
        params = {"name": name, "arguments": arguments, "_meta": meta}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
        }
        connection = self.connect()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        connection.request("POST", "/mcp", json.dumps(message), headers)
        return connection, connection.getresponse()

    def call(self, name, /, **arguments):
        connection, response = self.open_call(name, arguments)
        assert response.status == 200, response.read()
        body = response.read()
        connection.close()
        if response.headers["Content-Type"].startswith("text/event-stream"):
            body = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")][-1]
        blocks = json.loads(body)["result"]["content"]
        return "\n".join(block.get("text", "") for block in blocks)


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def proxied(request, tmp_path_factory):
    # Short: nginx refuses longer paths for some of its files.
    proxied = Proxied(request.param, tmp_path_factory.mktemp("proxy"))
    yield proxied
    proxied.close()


@pytest.fixture(scope="module")
def session(proxied):
    return re.search(r"[a-z2-7]{26}", proxied.call("create_session"))[0]


def test_progress_arrives_while_the_cell_runs(proxied, session):
    proxied.call("run_python", code="1", session=session)  # the kernel is up
    code = "import time\nfor i in range(8): print('step', i, flush=True); time.sleep(0.7)"
    arguments = {"code": code, "session": session}
    connection, response = proxied.open_call("run_python", arguments, token="t")
    assert response.headers["Content-Type"].startswith("text/event-stream")
    arrived = []
    while line := response.readline():
        if line.startswith(b"data: ") and len(line) > 7:
            arrived.append((time.monotonic(), json.loads(line[6:])))
    connection.close()
    assert "result" in arrived[-1][1]
    progress = [at for at, message in arrived if message.get("method") == "notifications/progress"]
    assert progress, arrived
    assert arrived[-1][0] - progress[0] > 1.0, "progress came with the result, not before it"


def test_a_result_without_progress_comes_through(proxied, session):
    assert "42" in proxied.call("run_python", code="6*7", session=session)


def test_files_stream_both_ways_under_the_public_name(proxied, session):
    answer = proxied.call("upload_file", name="large.bin", session=session)
    url = re.search(rf"{re.escape(proxied.url)}/files/\w+", answer)[0]
    data = os.urandom(20 * MIB)
    status, _, body = proxied.request("PUT", url, data)
    assert status in (200, 201), body
    answer = proxied.call("download_file", path="large.bin", session=session)
    url = re.search(rf"{re.escape(proxied.url)}/files/\w+", answer)[0]
    status, _, body = proxied.request("GET", url)
    assert status == 200 and body == data
    status, _, body = proxied.request("GET", url, headers={"Range": "bytes=5-9"})
    assert status == 206 and body == data[5:10]


def test_metrics_are_not_for_the_outside(proxied):
    assert proxied.request("GET", "/metrics")[0] == 404
    assert proxied.server.request("GET", "/metrics")[0] == 200


def test_another_host_name_is_refused_by_the_server(proxied):
    status, _, _ = proxied.request("GET", "/mcp", headers={"Host": "evil.example"})
    # Caddy has no site of that name and answers with nothing, nginx passes it on.
    assert status in (200, 400, 403, 421)
    if status == 200:
        assert proxied.request("GET", "/mcp", headers={"Host": "evil.example"})[2] == b""


def test_a_page_of_another_origin_is_refused(proxied):
    assert proxied.request("GET", "/healthz", headers={"Origin": "https://evil.example"})[0] == 403
    assert proxied.request("GET", "/healthz", headers={"Origin": proxied.url})[0] == 200
