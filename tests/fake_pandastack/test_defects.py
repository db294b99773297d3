"""Each switch does what README.md says, as often as it says, and is counted."""

import http.client
import time

import pytest
import running

BROKEN = (http.client.HTTPException, ConnectionError)
EXEC = "POST /v1/sandboxes/{id}/exec"


def count_of(api, sandbox):
    return int(api.output(sandbox, "wc -l < /workspace/runs"))


def run_once(api, sandbox, path="/exec"):
    return api.post(sandbox + path, {"cmd": "echo x >> /workspace/runs; echo said"})


def test_control(server, api):
    assert server.control.post("/_fake/defects", {"nonsense": 1}).status == 400
    assert server.set(storm_429=3)["storm_429"] == {"times": 3, "value": 0, "only": "*"}
    assert "storm_429" not in server.set(storm_429=0)


def test_command_line(server):
    with running.Running(
        "no_postgres", "proxy_flush_ms=100", 'storm_429={"times":2,"only":"GET *"}'
    ) as other:
        switches = other.control.get("/_fake/defects").body
        assert (switches["no_postgres"], switches["proxy_flush_ms"]) == (True, 100)
        api = running.Api(other.port)
        assert [api.get("/v1/me").status for _ in range(3)] == [429, 429, 200]


REFUSED = {
    "storm_429": (429, "Retry-After", "1"),
    "unavailable_503": (503, "Retry-After", "5"),
    "unreachable_before": (502, "Content-Type", "application/json"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(server, api, sandbox, name):
    """Nothing was done."""
    status, header, value = REFUSED[name]
    server.set(**{name: {"times": 2, "only": EXEC}})
    assert api.get(sandbox).status == 200  # another route
    for _ in range(2):
        refused = run_once(api, sandbox)
        assert (refused.status, refused.headers[header]) == (status, value)
    run_once(api, sandbox)
    assert count_of(api, sandbox) == 1
    assert server.counters()["faults"][name] >= 2


@pytest.mark.parametrize("path", ["/exec", "/exec/stream"])
def test_the_outcome_is_unknown(server, api, sandbox, path):
    """Before: nothing happened. After: it happened, the answer did not."""
    server.set(drop_before=1)
    with pytest.raises(BROKEN):
        run_once(api, sandbox, path)
    assert api.run(sandbox, "test -e /workspace/runs")["exit_code"] == 1
    server.set(drop_after={"only": "*" + path})
    with pytest.raises(BROKEN):
        run_once(api, sandbox, path)
    server.set(unreachable_after={"only": "*" + path})
    assert run_once(api, sandbox, path).status == 502
    if path == "/exec":
        assert count_of(api, sandbox) == 2


def test_a_create_of_unknown_outcome(server, api):
    server.set(drop_after=1)
    with pytest.raises(BROKEN):
        api.create(metadata={"tag": "mine"})
    assert [each["metadata"]["tag"] for each in api.get("/v1/sandboxes").body] == ["mine"]


def test_cut_answers(server, api, sandbox):
    server.set(cut_answer_bytes=10)
    with pytest.raises(http.client.IncompleteRead) as cut:
        api.get("/v1/templates")
    assert len(cut.value.partial) == 10
    server.set(cut_stream_bytes=30)
    with pytest.raises(http.client.IncompleteRead):
        api.post(sandbox + "/exec/stream", {"cmd": "seq 1000"})
    server.set(cut_stream_seconds=0.2)
    start = time.monotonic()
    with pytest.raises(BROKEN):
        api.post(sandbox + "/exec/stream", {"cmd": "sleep 20"})
    assert 0.2 < time.monotonic() - start < 15
    api.run(
        sandbox,
        "head -c 100000 /dev/zero > /root/big; " + running.served("python3 -m http.server 80", 80),
    )
    for defect in ({"cut_proxy_bytes": 5000}, {"cut_proxy_seconds": 0}):
        server.set(**defect)
        with pytest.raises(BROKEN):
            api.get(sandbox + "/proxy/80/big")
    assert len(api.get(sandbox + "/proxy/80/big").data) == 100_000


def test_uploads(server, api, sandbox):
    server.set(cut_upload_bytes=1000)
    with pytest.raises(BROKEN):
        api.put(sandbox + "/fs?path=/workspace/a", b"x" * 200_000)
    assert api.get(sandbox + "/fs/stat?path=/workspace/a").status == 404
    server.set(slow_upload=1_000_000)
    start = time.monotonic()
    assert api.put(sandbox + "/fs?path=/workspace/a", b"x" * 200_000).status == 200
    assert 0.2 < time.monotonic() - start < 30


def test_slow(server, api, sandbox):
    server.set(delay_ms=100, slow_snapshot=0.2)
    start = time.monotonic()
    assert api.post(sandbox + "/snapshots").status == 201
    assert time.monotonic() - start > 0.3


def test_warm_up(server, api, sandbox):
    server.set(warmup_errors=2)
    refused = api.post(sandbox + "/exec", {"cmd": "true"})
    assert (refused.status, refused.body["error"].split(": ")[-1]) == (500, "connection refused")
    assert api.put(sandbox + "/fs?path=/workspace/a", b"x").status == 500
    assert api.put(sandbox + "/fs?path=/workspace/a", b"x").status == 200


def test_content_type(server, api):
    server.set(wrong_content_type=1)
    assert api.get("/v1/me").headers["Content-Type"] == "text/plain; charset=utf-8"
    assert api.get("/v1/me").headers["Content-Type"] == "application/json"


def test_lost_lease(server, api):
    server.set(lost_lease=1)
    made = api.create()
    assert [api.get(made).status for _ in range(2)] == [404, 200]


def test_duplicated_exec(server, api, sandbox):
    server.set(duplicated_exec=1)
    assert run_once(api, sandbox).body["stdout"] == "said\n"
    assert count_of(api, sandbox) == 2


def test_expired(server, api, sandbox):
    server.expire(sandbox)
    assert api.post(sandbox + "/exec", {"cmd": "true"}).body == {"error": "not found"}


def test_no_proxy_and_flush(server, api, sandbox):
    server.set(no_proxy=True)
    assert api.get(sandbox + "/proxy/80/").data == b"404 page not found\n"
    api.run(sandbox, running.served("python3 -m http.server 80", 80))
    server.set(no_proxy=False, proxy_flush_ms=150)
    start = time.monotonic()
    assert api.get(sandbox + "/proxy/80/").status == 200
    assert time.monotonic() - start > 0.15


def test_rate_limit(server, api):
    server.set(rate_limit=True)
    statuses = [api.get("/v1/me").status for _ in range(60)]
    assert statuses[:50] == [200] * 50 and 429 in statuses
    assert api.get("/healthz").status == 200


def test_paused(server, api, sandbox):
    """As in June: it waits."""
    server.set(paused_409=False)
    api.post(sandbox + "/pause")
    impatient = running.Api(api.port)
    impatient.connection.timeout = 0.3
    with pytest.raises(TimeoutError):
        run_once(impatient, sandbox)
    api.post(sandbox + "/resume")
    assert (
        api.output(sandbox, "until test -e /workspace/runs; do sleep 0.01; done; cat /workspace/runs")
        == "x\n"
    )


def test_kernel_hazards(server, api, sandbox):
    def session():
        return f"{sandbox}/repl/sessions/{api.post(sandbox + '/repl/sessions', {}).body['id']}/run"

    run = session()
    hangs = {"code": "'ä'", "timeout_ms": 300}
    assert api.post(run, hangs).body == {"error": "cell timeout after 300ms"}
    server.set(unicode_hang=False, fd1_corruption=False)
    run = session()
    assert api.post(run, {"code": "'ä'"}).status == 200
    assert api.post(run, {"code": "import os; os.system('echo hi'); 5"}).status == 200
    server.set(kill_kernel=1)
    assert api.post(run, {"code": "1"}).body == {"error": "EOF"}
    server.set(june=True)
    assert "results" not in api.post(session(), {"code": "1"}).body


@running.needs_packages
def test_no_ipython(server, api):
    server.set(no_ipython=True)
    made = api.create()
    assert api.run(made, "python3 -c 'import IPython'")["exit_code"] == 1


def test_random(server, api, sandbox):
    """The same seed, the same faults; nothing leaks, and in the end all is well."""

    def play():
        server.set(random="7,0.5,storm_429,drop_before,cut_answer_bytes,lost_lease,unreachable_after")
        seen = []
        for _ in range(40):
            try:
                seen.append(run_once(api, sandbox).status)
            except BROKEN:
                seen.append(0)
        server.set(random=None)
        return seen

    first = play()
    assert len(set(first)) >= 4 and 200 in first
    assert play() == first
    assert run_once(api, sandbox).status == 200


def test_counters(server, api, sandbox):
    before = server.counters()
    api.run(sandbox, "true")
    after = server.counters()
    assert after["requests"][EXEC] == before["requests"].get(EXEC, 0) + 1
    assert after["events"]["execs"] == before["events"].get("execs", 0) + 1
    assert 200 < after["bytes_in"] - before["bytes_in"] < 1000
    assert len(after["sandboxes"]) == 1


def test_request_ids_and_lengths(api):
    assert api.get("/v1/me", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"] == "mine-1"
    assert len(api.get("/v1/nope").headers["X-Request-Id"]) == 16
    api.connection.putrequest("POST", "/v1/sandboxes")
    api.connection.putheader("Authorization", f"Bearer {running.TOKEN}")
    api.connection.endheaders()
    with api.connection.getresponse() as refused:
        assert refused.status == 411
