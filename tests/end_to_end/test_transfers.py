"""Files that do not pass through the model: uploads and downloads by a URL, over HTTP."""

import hashlib
import os
import re
import shutil
import socket
import subprocess

import leftovers
import pytest
from conftest import environment_in, program, until
from http_server import HttpServer
from mcp_client import anonymous_bytes

MIB = 1 << 20


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return environment_in(tmp_path_factory.mktemp("transfers"))


@pytest.fixture(scope="module")
def server(environment):
    with HttpServer([program("PYKEEP_BINARY")], "--upload-max", "64MiB", env=environment) as server:
        yield server
        assert server.stop() == 0


class Session:
    def __init__(self, server):
        self.server = server
        self.handle = re.search(r"[a-z2-7]{26}", server.call_tool("create_session").text)[0]

    def tool(self, tool, /, **arguments):
        return self.server.call_tool(tool, {"session": self.handle, **arguments})

    def run(self, code):
        result = self.tool("run_python", code=code)
        assert not result.is_error, result.text
        return result.text

    def upload_url(self, name):
        return url_in(self.tool("upload_file", name=name).text)

    def download_url(self, path):
        return url_in(self.tool("download_file", path=path).text)


@pytest.fixture
def session(server):
    session = Session(server)
    yield session
    session.tool("close_session")


def url_in(text):
    found = re.search(r"http://127\.0\.0\.1:\d+/files/[a-z2-7]{26}", text)
    assert found, text
    return found[0]


def test_the_curl_line_of_a_ticket_brings_the_file(server, session, tmp_path):
    if not shutil.which("curl"):
        pytest.skip("no curl")
    data = os.urandom(50 * MIB)
    (tmp_path / "FILE").write_bytes(data)
    answer = session.tool("upload_file", name="data/ü 名.bin")
    line = re.search(r"^curl .*$", answer.text, re.MULTILINE)[0]
    before = anonymous_bytes(server.process.pid)
    done = subprocess.run(line + " -sS", shell=True, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done
    assert done.stdout.decode().startswith("Uploaded 50 MiB to /workspace/data/ü 名.bin")
    assert anonymous_bytes(server.process.pid) - before < 24 * MIB
    seen = session.run(
        "import hashlib; print(hashlib.sha256(open('data/ü 名.bin', 'rb').read()).hexdigest())"
    )
    assert hashlib.sha256(data).hexdigest() in seen

    url = session.download_url("data/ü 名.bin")
    fetched = subprocess.run(["curl", "-sSJO", "--fail", url], cwd=tmp_path, capture_output=True, timeout=120)
    assert fetched.returncode == 0, fetched
    (saved,) = set(os.listdir(tmp_path)) - {"FILE"}
    assert (tmp_path / saved).read_bytes() == data
    assert anonymous_bytes(server.process.pid) - before < 24 * MIB


def test_a_ticket_is_used_up_by_success_alone(server, session):
    url = session.upload_url("x.txt")
    status, _, body = server.request("PUT", url, b"x" * (64 * MIB + 1))
    assert (status, b"larger than an upload may be (64 MiB)" in body) == (413, True)
    status, _, body = server.request("PUT", url, b"first")
    assert (status, body.decode()) == (
        201,
        f"Uploaded 5 B to /workspace/x.txt in session {session.handle}.\n",
    )
    status, _, body = server.request("PUT", url, b"second")
    assert (status, b"has been used" in body) == (410, True)
    assert "first" in session.run("print(open('x.txt').read())")


def test_a_chunked_upload_is_cut_off_at_the_limit(server, session):
    url = session.upload_url("x.bin")

    def chunks():
        for _ in range(65):
            yield b"x" * MIB

    try:
        status, _, body = server.request("PUT", url, chunks())
        assert status == 413, body
    except (BrokenPipeError, ConnectionResetError):
        pass  # it did not want the rest
    assert "x.bin" not in session.tool("list_files").text
    assert server.request("PUT", url, b"small")[0] == 201


def test_an_upload_that_breaks_off_leaves_nothing(server, session):
    url = session.upload_url("half.bin")
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port))) as client:
        path = url.removeprefix(server.url)
        head = f"PUT {path} HTTP/1.1\r\nHost: {server.address}\r\nContent-Length: 1000000\r\n\r\n"
        client.sendall(head.encode() + b"x" * 500_000)
        until(lambda: any("/workspace/" in file for file in leftovers.descriptors(server.process.pid)))
        assert server.request("PUT", url, b"other")[0] == 409  # while the first one is under way
    # The server has yet to see that the client has gone.
    status, _, body = until(lambda: (got := server.request("PUT", url, b"whole"))[0] != 409 and got)
    assert status == 201, body
    listed = session.tool("list_files").text
    assert "half.bin  5 B" in listed
    assert session.run("import os; print(os.listdir('.'))").count(".part") == 0


def test_what_cannot_be_uploaded_says_why(server, session):
    other = Session(server)
    gone = other.upload_url("x")
    other.tool("close_session")
    session.run("import os; os.mkdir('dir')")
    late = session.upload_url("late/x")
    session.run("os.rename('late', 'moved'); open('late', 'w').close()")
    unknown = server.url + "/files/" + "a" * 26
    for method, url, headers, status, words in [
        ("PUT", gone, {}, 410, "was closed meanwhile"),
        ("PUT", late, {}, 409, "part of the path is a file"),
        ("PUT", unknown, {}, 404, "no such ticket"),
        ("GET", unknown, {}, 404, "no such ticket"),
        ("PUT", server.url + "/files/", {}, 404, "no such ticket"),
        ("GET", session.upload_url("y"), {}, 405, "PUT the file"),
        ("POST", session.upload_url("y"), {}, 405, "GET, HEAD, PUT"),
        ("PUT", session.upload_url("y"), {"Content-Encoding": "gzip"}, 415, "as they are"),
        ("PUT", session.upload_url("y"), {"Content-Range": "bytes 0-0/2"}, 400, "whole file"),
        ("PUT", session.upload_url("y"), {"Host": "evil.example"}, 403, ""),
        ("PUT", session.upload_url("y"), {"Origin": "https://evil.example"}, 403, ""),
    ]:
        got, _, body = server.request(method, url, b"x" if method == "PUT" else None, headers)
        assert got == status, (method, headers, body)
        assert words in body.decode()
    for name, words in [
        ("../x", "not allowed"),
        ("/etc/x", "only paths below"),
        ("dir", "it is a directory"),
    ]:
        refused = session.tool("upload_file", name=name)
        assert refused.is_error and words in refused.text


def test_a_full_workspace_is_507(tmp_path):
    environment = environment_in(tmp_path)
    with HttpServer([program("PYKEEP_BINARY")], "--workspace", "8MiB", env=environment) as server:
        session = Session(server)
        url = session.upload_url("x")
        status, _, body = server.request("PUT", url, b"x" * (9 * MIB))
        assert (status, b"Delete files there" in body) == (507, True)
        assert server.request("PUT", url, b"x" * MIB)[0] == 201


def test_a_file_is_fetched_in_parts(server, session):
    session.run("open('page.html', 'w').write('<script>0123456789</script>' * 10_000)\nNone")
    url = session.download_url("page.html")
    status, headers, whole = server.request("GET", url)
    assert (status, len(whole)) == (200, 270_000)
    assert headers["Content-Length"] == "270000"
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Disposition"].startswith('attachment; filename="page.html"')
    tag = headers["ETag"]

    status, headers, body = server.request("HEAD", url)
    assert (status, headers["Content-Length"], body) == (200, "270000", b"")
    for asked, status, start, end in [
        ("bytes=0-9", 206, 0, 10),
        ("bytes=269990-", 206, 269_990, 270_000),
        ("bytes=-5", 206, 269_995, 270_000),
        ("bytes=0-1,5-6", 200, 0, 270_000),
    ]:
        got, headers, body = server.request("GET", url, headers={"Range": asked, "If-Range": tag})
        assert (got, body) == (status, whole[start:end])
        if status == 206:
            assert headers["Content-Range"] == f"bytes {start}-{end - 1}/270000"
    status, headers, _ = server.request("GET", url, headers={"Range": "bytes=270000-"})
    assert (status, headers["Content-Range"]) == (416, "bytes */270000")

    session.run("open('page.html', 'a').write('more')\nNone")
    status, headers, body = server.request("GET", url, headers={"Range": "bytes=0-9", "If-Range": tag})
    assert (status, len(body)) == (200, 270_004)


def test_connections_are_kept_between_transfers(server, session):
    session.run("open('x.bin', 'wb').write(b'x' * 300_000)\nNone")
    path = session.download_url("x.bin").removeprefix(server.url)
    connection = server.connect()
    for method in ("GET", "HEAD", "GET"):
        connection.request(method, path)
        response = connection.getresponse()
        assert (response.status, len(response.read())) == (200, 300_000 if method == "GET" else 0)
        assert not response.will_close
    connection.close()
