"""Who is let in over HTTP: the operator's tokens, an OAuth issuer's tokens, and what refusals say."""

import base64
import contextlib
import http.server
import json
import pathlib
import re
import signal
import ssl
import subprocess
import threading
import time

import pytest
from conftest import environment_in, program
from http_server import HttpServer
from mcp_client import McpError

ALICE = "alice-3q2-7wAAbcdEFGhij_klmn"
BOB = "bob-00112233445566778899aabbccdd"
ISSUER = "https://issuer.example"
PUBLIC = "https://keep.example"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def said_within(server, text, limit=30.0):
    end = time.monotonic() + limit
    while text not in server.stderr:
        assert time.monotonic() < end, f"{text!r} is not in:\n{server.stderr}"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def token_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.touch(0o600)
    file.write_text(f"# the team\nalice: {ALICE}\nbob {BOB}\n")
    return file


@pytest.fixture(scope="module")
def server(token_file, tmp_path_factory):
    environment = environment_in(tmp_path_factory.mktemp("auth"))
    options = ["--token-file", str(token_file), "--log-level", "info"]
    with HttpServer([program("PYKEEP_BINARY")], *options, env=environment) as server:
        yield server


@pytest.mark.parametrize(
    "method, path",
    [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/messages"),
        ("GET", "/metrics"),
        ("GET", "/no-such-path"),
        ("TRACE", "/mcp"),
    ],
)
def test_nothing_is_served_without_a_token(server, method, path):
    status, headers, body = server.request(method, path)
    assert status == 401
    assert headers["WWW-Authenticate"] == 'Bearer realm="pykeep"'
    assert b"token" in body


def test_health_checks_need_no_token(server):
    assert server.request("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    "headers, path, status",
    [
        (bearer(ALICE), "/metrics", 200),
        ({"Authorization": f"bearer  {BOB}"}, "/metrics", 200),
        (bearer(ALICE + "x"), "/metrics", 401),
        (bearer(ALICE[:-1]), "/metrics", 401),
        ({"Authorization": "Basic YWxpY2U6YWxpY2U="}, "/metrics", 401),
        ({"Authorization": "Bearer"}, "/metrics", 400),
        ({"Authorization": f"Bearer {ALICE} {BOB}"}, "/metrics", 400),
        ({}, f"/metrics?access_token={ALICE}", 400),
    ],
)
def test_tokens_are_in_the_header_whole_and_right(server, headers, path, status):
    assert server.request("GET", path, headers=headers)[0] == status


def test_a_handle_of_another_principal_opens_nothing(server):
    created = server.call_tool("create_session", headers=bearer(ALICE)).text
    handle = re.search(r"[a-z2-7]{26}", created)[0]
    for tool, arguments in [
        ("run_python", {"code": "1", "session": handle}),
        ("list_files", {"session": handle}),
        ("close_session", {"session": handle}),
    ]:
        result = server.call_tool(tool, arguments, headers=bearer(BOB))
        assert result.is_error, (tool, result.text)
    assert handle not in server.call_tool("list_sessions", headers=bearer(BOB)).text
    assert handle in server.call_tool("list_sessions", headers=bearer(ALICE)).text
    server.call_tool("close_session", {"session": handle}, headers=bearer(ALICE))


def test_one_principal_cannot_take_all_kernels(token_file, tmp_path):
    limits = ("--max-principal-kernels", "1", "--spares", "0")
    with HttpServer(
        [program("PYKEEP_BINARY")], "--token-file", token_file, *limits, env=environment_in(tmp_path)
    ) as server:
        alice = bearer(ALICE)
        assert server.call_tool("run_python", {"code": "1+1"}, headers=alice).text.endswith("2")
        more = server.call_tool("run_python", {"code": "1+1"}, headers=alice)
        assert more.is_error and "Too many kernels run at once (1 of yours)" in more.text
        assert server.call_tool("run_python", {"code": "1+1"}, headers=bearer(BOB)).text.endswith("2")


def test_tokens_are_read_again_and_a_broken_file_changes_nothing(server, token_file):
    new = "carol-0123456789-abcdefghijkl"
    before = token_file.read_text()
    try:
        token_file.write_text(before + "dave: too-short\n")
        server.process.send_signal(signal.SIGHUP)
        said_within(server, "tokens stay as they were")
        assert "too-short" not in server.stderr
        assert server.request("GET", "/metrics", headers=bearer(ALICE))[0] == 200

        token_file.write_text(f"carol: {new}\n")
        server.process.send_signal(signal.SIGHUP)
        said_within(server, "tokens were read again: 1")
        assert server.request("GET", "/metrics", headers=bearer(ALICE))[0] == 401
        assert server.request("GET", "/metrics", headers=bearer(new))[0] == 200
    finally:
        token_file.write_text(before)
        server.process.send_signal(signal.SIGHUP)
        said_within(server, "tokens were read again: 2")


def test_no_token_gets_into_the_log(server):
    for path in ("/metrics", "/no-such-path", f"/files/{ALICE}", f"/metrics?access_token={ALICE}"):
        server.request("GET", path, headers=bearer(ALICE))
    server.request("GET", "/mcp", headers={**bearer(BOB), "Mcp-Session-Id": ALICE})
    said_within(server, "status=200")
    assert ALICE not in server.stderr
    assert BOB not in server.stderr


def test_failures_in_a_row_are_slowed_down_but_valid_tokens_are_not(server):
    guesses = [server.request("GET", "/metrics", headers=bearer(f"guess-{i}"))[0] for i in range(80)]
    assert guesses[-1] == 429 and set(guesses) <= {401, 429}
    assert server.request("GET", "/metrics", headers=bearer(ALICE))[0] == 200


@pytest.mark.parametrize(
    "options, token, says",
    [
        (["--listen", "0.0.0.0:0"], None, "--token-file"),
        (["--listen", "[::]:0"], None, "--token-file"),
        (["--listen", "0.0.0.0:0"], "short", "too short"),
        (["--token-file", "WRITABLE"], None, "others may write"),
        (["--oauth-issuer", ISSUER], None, "--oauth-jwks"),
        (
            ["--oauth-issuer", ISSUER, "--oauth-jwks", "http://issuer.example/jwks"],
            None,
            "http is for this machine only",
        ),
    ],
)
def test_what_does_not_start(tmp_path, options, token, says):
    writable = tmp_path / "tokens"
    writable.write_text(f"alice: {ALICE}\n")
    writable.chmod(0o666)
    options = [str(writable) if option == "WRITABLE" else option for option in options]
    environment = environment_in(tmp_path)
    if token:
        environment["PYKEEP_TOKEN"] = token
    command = [program("PYKEEP_BINARY"), "http", *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode in (1, 2)
    assert says in done.stderr


# ---- OAuth ----


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """An RSA key of an issuer, made and used by the openssl program."""

    def __init__(self, directory, kid):
        self.kid = kid
        self.file = directory / f"{kid}.pem"
        openssl("genrsa", "-out", self.file, "2048")

    def jwk(self):
        modulus = openssl("rsa", "-in", self.file, "-noout", "-modulus").decode().strip().split("=")[1]
        return {
            "kty": "RSA",
            "kid": self.kid,
            "use": "sig",
            "n": encoded(bytes.fromhex(modulus)),
            "e": "AQAB",
        }

    def token(self, **claims):
        claims = {
            "iss": ISSUER,
            "sub": "alice",
            "aud": f"{PUBLIC}/mcp",
            "exp": int(time.time()) + 600,
            "scope": "python",
            **claims,
        }
        header = {"alg": "RS256", "typ": "at+jwt", "kid": self.kid}
        text = ".".join(encoded(json.dumps(part).encode()) for part in (header, claims))
        signed = openssl("dgst", "-sha256", "-sign", self.file, stdin=text.encode())
        return f"{text}.{encoded(signed)}"


def openssl(*arguments, stdin=None):
    command = ["openssl", *map(str, arguments)]
    return subprocess.run(command, input=stdin, check=True, capture_output=True).stdout


class KeyServer:
    """The issuer's keys over https. `answer` is what it gives next; `asked` counts."""

    def __init__(self, directory):
        self.certificate = directory / "certificate.pem"
        private = directory / "certificate-key.pem"
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
        openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", names, "-keyout", private, "-out", self.certificate),
        )
        self.answer = (200, {}, b"")
        self.asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked += 1
                status, headers, body = outer.answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, private)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://localhost:{self.server.server_port}/jwks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, *keys):
        self.answer = (200, {}, json.dumps({"keys": [key.jwk() for key in keys]}).encode())


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("oauth")


@pytest.fixture(scope="module")
def key(directory):
    return Key(directory, "one")


@pytest.fixture(scope="module")
def issuer(directory):
    issuer = KeyServer(directory)
    yield issuer
    issuer.server.shutdown()


def start(issuer_url, directory, *options, trust=None):
    environment = environment_in(directory)
    if trust:
        environment["SSL_CERT_FILE"] = str(trust)
    options = [
        *("--oauth-issuer", ISSUER, "--oauth-jwks", str(issuer_url), "--oauth-scope", "python"),
        *("--public-url", PUBLIC, "--log-level", "info", *options),
    ]
    return HttpServer([program("PYKEEP_BINARY")], *options, env=environment)


@pytest.fixture(scope="module")
def resource(key, issuer, directory):
    issuer.serve(key)
    with start(issuer.url, directory, trust=issuer.certificate) as server:
        said_within(server, "fetched the keys")
        yield server


def test_clients_find_out_whom_to_ask_for_a_token(resource):
    status, headers, _ = resource.request("POST", "/mcp")
    assert status == 401
    challenge = headers["WWW-Authenticate"]
    found = re.search(r'resource_metadata="https://keep\.example(/[^"]*)"', challenge)[1]
    assert 'scope="python"' in challenge and "error=" not in challenge
    for path in (found, "/.well-known/oauth-protected-resource"):
        status, headers, body = resource.request("GET", path)
        assert status == 200 and headers["Content-Type"] == "application/json"
        document = json.loads(body)
        assert document["resource"] == f"{PUBLIC}/mcp"
        assert document["authorization_servers"] == [ISSUER]
        assert document["scopes_supported"] == ["python"]
        assert document["bearer_methods_supported"] == ["header"]


@pytest.mark.parametrize(
    "claims, status, error",
    [
        ({}, 200, None),
        ({"exp": 1}, 401, "invalid_token"),
        ({"aud": "https://other.example"}, 401, "invalid_token"),
        ({"iss": "https://other.example"}, 401, "invalid_token"),
        ({"scope": "other"}, 403, "insufficient_scope"),
    ],
)
def test_claims_decide(resource, key, claims, status, error):
    got, headers, _ = resource.request("GET", "/metrics", headers=bearer(key.token(**claims)))
    assert got == status
    if error:
        assert f'error="{error}"' in headers["WWW-Authenticate"]
        assert "resource_metadata=" in headers["WWW-Authenticate"]


def test_a_subject_is_a_principal(resource, key):
    alice, bob = bearer(key.token()), bearer(key.token(sub="bob"))
    handle = re.search(r"[a-z2-7]{26}", resource.call_tool("create_session", headers=alice).text)[0]
    assert handle not in resource.call_tool("list_sessions", headers=bob).text
    assert handle in resource.call_tool("list_sessions", headers=alice).text


def test_a_new_key_is_fetched_once_and_strangers_cannot_make_us_ask(resource, issuer, key, directory):
    strangers = [Key(directory, f"stranger-{i}") for i in range(2)]
    asked = issuer.asked
    for stranger in strangers * 3:
        assert resource.request("GET", "/metrics", headers=bearer(stranger.token()))[0] == 401
    assert issuer.asked <= asked + 1


@pytest.mark.parametrize("case", ["untrusted", "redirect", "broken", "endless"])
def test_keys_that_cannot_be_had_let_nobody_in(issuer, key, directory, case):
    issuer.serve(key)
    if case == "redirect":
        issuer.answer = (302, {"Location": issuer.url}, b"")
    if case == "broken":
        issuer.answer = (200, {}, b"<html>")
    if case == "endless":
        issuer.answer = (200, {}, b" " * (1 << 20))
    trust = None if case == "untrusted" else issuer.certificate
    with start(issuer.url, directory, trust=trust) as server:
        said_within(server, "no token can be accepted")
        status, headers, _ = server.request("GET", "/metrics", headers=bearer(key.token()))
        assert status == 503 and headers["Retry-After"]
        assert server.request("GET", "/healthz")[0] == 200


def test_keys_in_a_file_beside_the_operators_tokens(key, directory):
    file: pathlib.Path = directory / "jwks.json"
    file.write_text(json.dumps({"keys": [key.jwk()]}))
    tokens = directory / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"alice: {ALICE}\n")
    with start(file, directory, "--token-file", str(tokens)) as server:
        said_within(server, "fetched the keys")
        assert server.request("GET", "/metrics", headers=bearer(key.token()))[0] == 200
        assert server.request("GET", "/metrics", headers=bearer(ALICE))[0] == 200
        with pytest.raises((McpError, json.JSONDecodeError)):
            server.call_tool("list_sessions", headers=bearer("nobody"))
