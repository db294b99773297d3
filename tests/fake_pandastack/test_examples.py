"""Each example exchange, played: the answer has its status, its headers, its keys in their order, its values."""

import asyncio
import json

import pytest
import running
from expected import example, like, same

aiohttp = pytest.importorskip("aiohttp")
NOBODY = "/v1/sandboxes/00000000-0000-0000-0000-000000000000"


def cases(name):
    return example(name)["cases"]


def body(case):
    return case["request"].get("body")


def test_create_get_list(api):
    create = example("01-create-sandbox.json")
    answer = api.post("/v1/sandboxes", body(create))
    like(create, answer)
    like(example("03-get-sandbox.json"), api.get("/v1/sandboxes/" + answer.body["id"]))
    like(example("04-list-sandboxes.json"), api.get("/v1/sandboxes"))


CREATE = {
    "malformed JSON": ({}, b'{"template":"base",}'),
    "template not in the catalogue (control plane with Postgres)": ({}, {"template": "ubuntu-24.04"}),
    "template owned by another workspace": ({}, {"template": "someone-elses"}),
    "neither template nor from_snapshot": ({}, {}),
    "negative ttl_seconds": ({}, {"template": "base", "ttl_seconds": -1}),
    "volumes with from_snapshot": ({}, {"from_snapshot": "x", "volumes": [{"name": "v"}]}),
    "no compute node (later version)": ({"no_compute": True}, {"template": "base"}),
    "no compute node (June version)": ({"no_compute": True, "june": True}, {"template": "base"}),
}


@pytest.mark.parametrize("when", CREATE)
def test_create_failures(server, api, when):
    defects, asked = CREATE[when]
    server.set(**defects)
    case = next(case for case in cases("02-create-errors.json") if case["when"] == when)
    like(case, api.post("/v1/sandboxes", asked))


def test_create_without_memory(server, api):
    server.set(no_memory=1)
    refused = api.post("/v1/sandboxes", {"template": "base", "memory_mb": 2048})
    assert refused.status == 507
    assert refused.body["error"].startswith(cases("02-create-errors.json")[6]["body"]["error"])


def test_lifecycle(server, api, sandbox):
    extend, look, negative, unknown = cases("05-lifecycle.json")
    like(extend, api.patch(sandbox + "/lifecycle", body(extend)))
    server.tick(12)
    like(look, api.get(sandbox + "/lifecycle"))
    like(negative, api.patch(sandbox + "/lifecycle", body(negative)))
    server.set(unscoped=True)
    like(unknown, api.patch(NOBODY + "/lifecycle", body(unknown)))


def test_kernels(api, sandbox):
    sessions = sandbox + "/repl/sessions"
    create = example("06-context-create.json")
    made = api.post(sessions, body(create))
    like(create, made)
    session = f"{sessions}/{made.body['id']}"
    failures = {case["when"]: case for case in cases("07-context-errors.json")}
    like(failures["other language"], api.post(sessions, {"language": "node"}))
    like(failures["unknown session id"], api.post(sessions + "/ffffffffffffffff/run", {"code": "1"}))
    like(failures["empty code"], api.post(session + "/run", {"code": ""}))
    for code in ("1", "2", "3"):
        api.post(session + "/run", {"code": code})
    like(example("08-context-list.json"), api.get(sessions))
    like(example("09-context-close.json"), api.delete(session))
    like(failures["unknown session id"], api.post(session + "/run", {"code": "1"}))


def test_kernels_that_do_not_start(server, api, sandbox):
    failures = {case["when"]: case for case in cases("07-context-errors.json")}
    server.set(warmup_errors=1)
    refused = api.post(sandbox + "/repl/sessions", {})
    assert refused.status == 500
    assert refused.body["error"].endswith(":22: connect: connection refused")
    api.run(sandbox, "rm /usr/local/bin/python3 && ln -s /bin/false /usr/local/bin/python3")
    like(failures["guest has no python3"], api.post(sandbox + "/repl/sessions", {}))


RUNS = [
    "10-run-text",
    "11-run-png",
    "12-run-text-and-png",
    "13-run-html",
    "14-run-json",
    "15-run-svg-markdown",
]
RUNS += ["16-run-error", "17-run-syntax-error", "18-run-system-exit"]


@running.needs_packages
def test_runs(api):
    """In one session, which goes on whatever the cell did."""
    sessions = api.create() + "/repl/sessions"
    session = f"{sessions}/{api.post(sessions, {}).body['id']}"
    for name in RUNS:
        run = example(name + ".json")
        answer = api.post(session + "/run", body(run))
        assert answer.status == 200, (name, answer)
        result = answer.body
        for bundle in result["results"]:  # of IPython's, in whatever order that has them
            assert list(bundle) == sorted(bundle)
        same(run["response"]["body"], result, where=name)
    assert b"\\u003cb\\u003e" in api.post(session + "/run", {"code": "'<b>'"}).data


FAILURES = {
    "timeout_ms exceeded; the code keeps running and the session is out of step afterwards": None,
    "code wrote to file descriptor 1 (subprocess, os.system)": "import os; os.system('echo hi')",
    "kernel died, VM slept or SSH channel closed": "import os; os._exit(0)",
}


@running.needs_packages
def test_failing_runs(server, api, sandbox):
    failures = {case["when"]: case for case in cases("19-run-failures.json")}
    sessions = sandbox + "/repl/sessions"
    for when, code in FAILURES.items():
        run = f"{sessions}/{api.post(sessions, {}).body['id']}/run"
        asked = {"code": code} if code else body(failures[when]) | {"timeout_ms": 1500}
        like(failures[when], api.post(run, asked))
    run = f"{sessions}/{api.post(sessions, {}).body['id']}/run"
    code = "from IPython.display import JSON; JSON({'a': float('nan')})"
    refused = api.post(run, {"code": code})
    assert refused.status == 500
    assert refused.body["error"].startswith("decode kernel response: invalid character 'N' looking for")
    assert api.post(run, {"code": "1"}).body["results"] == [{"text/plain": "1"}]  # in step
    server.agent_restart()
    assert api.post(run, {"code": "1"}).body == {"error": "session not found"}


def test_one_shot_and_exec(api, sandbox):
    one_shot = example("20-repl-oneshot.json")
    like(one_shot, api.post(sandbox + "/repl", body(one_shot)))
    run, empty, paused = cases("21-exec.json")
    like(run, api.post(sandbox + "/exec", body(run)))
    like(empty, api.post(sandbox + "/exec", body(empty)))
    api.post(sandbox + "/pause")
    like(paused, api.post(sandbox + "/exec", body(paused)))
    api.post(sandbox + "/resume")
    stream = example("22-exec-stream.json")
    # A pipe each: only a pause keeps the order between them.
    like(
        stream,
        api.post(sandbox + "/exec/stream", {"cmd": "echo a; sleep 0.1; echo b >&2; sleep 0.1; exit 2"}),
    )


def test_exec_over_a_websocket(server, api, sandbox):
    shown = example("23-exec-ws.json")

    async def play():
        url = f"ws://127.0.0.1:{server.port}{sandbox}/exec/ws"
        headers = {"Authorization": "Bearer pds_local_dev_token"}
        async with aiohttp.ClientSession() as session, session.ws_connect(url, headers=headers) as socket:
            await socket.send_json(shown["client"][0])
            received = [await socket.receive_json(timeout=60) for _ in range(2)]
            await socket.send_json({"id": "r2", "cmd": "sleep 20", "timeout_seconds": 1})
            await socket.send_json({"id": "r3", "cmd": "sleep 20"})
            await socket.send_json({"id": "r3", "cancel": True})
            cancelled = await socket.receive_json(timeout=60)
            return [*received, await socket.receive_json(timeout=60)], cancelled

    received, cancelled = asyncio.run(play())
    assert json.dumps(received) == json.dumps(shown["server"])
    assert cancelled["id"] == "r3" and "error" in cancelled


def test_files(api, sandbox):
    fs = sandbox + "/fs?path="
    like(example("24-file-write.json"), api.put(fs + "%2Fworkspace%2Fdata%2Fa.bin", b"\0\1\2\xff"))
    read = example("25-file-read.json")["response"]
    answer = api.get(fs + "%2Fworkspace%2Fdata%2Fa.bin")
    assert (answer.status, answer.data) == (200, b"\0\1\2\xff")
    assert answer.headers["Content-Type"] == read["headers"]["content-type"]
    everything, empty, stat, no_stat, no_file, relative, large, delete = cases("26-file-dir-stat-delete.json")
    api.put(fs + "/workspace/a.csv", b"x" * 120)
    api.run(sandbox, "mkdir /empty")
    listed = api.get(sandbox + "/fs/dir?path=%2Fworkspace")
    listed_names = {entry["name"]: entry for entry in listed.body["entries"]}
    assert list(listed.body) == list(everything["response"]["body"])
    for entry in everything["response"]["body"]["entries"]:
        same(entry, listed_names.pop(entry["name"]))
    assert not listed_names
    like(empty, api.get(sandbox + "/fs/dir?path=%2Fempty"))
    like(stat, api.get(sandbox + "/fs/stat?path=%2Fworkspace%2Fa.csv"))
    like(no_stat, api.get(sandbox + "/fs/stat?path=%2Fnope"))
    like(no_file, api.get(fs + "%2Fnope"))
    like(relative, api.get(fs + "rel"))
    like(large, api.put(fs + "%2Fbig", b"x" * ((32 << 20) + 1)))
    like(delete, api.delete(fs + "%2Fworkspace%2Fdata"))
    like(no_stat, api.get(sandbox + "/fs/stat?path=%2Fworkspace%2Fdata"))


def test_snapshots(server, api, sandbox):
    create = example("30-snapshot-create.json")
    made = api.post(sandbox + "/snapshots", body(create))
    like(create, made)
    snapshot = made.body["id"]
    every, one, delete, gone, absent = cases("31-snapshot-list-get-delete.json")
    like(every, api.get("/v1/snapshots?sandbox_id=" + made.body["sandbox_id"]))
    like(one, api.get("/v1/snapshots/" + snapshot))

    restore = example("32-restore.json")
    like(restore, api.post("/v1/sandboxes", body(restore) | {"from_snapshot": snapshot}))

    delete["response"]["body"]["deleted"] = snapshot
    like(delete, api.delete("/v1/snapshots/" + snapshot))
    like(gone, api.get("/v1/snapshots/" + snapshot))
    server.set(no_postgres=True)
    like(absent, api.get("/v1/snapshots"))


def test_restores_that_fail(server, api):
    unknown, omitted, given = cases("33-restore-errors.json")
    snapshot = unknown["body"]["error"].split()[2]
    like(omitted, api.post("/v1/sandboxes", {"from_snapshot": snapshot}))
    like(given, api.post("/v1/sandboxes", {"from_snapshot": snapshot, "template": "code-interpreter"}))
    server.set(object_store=True)
    like(unknown, api.post("/v1/sandboxes", {"from_snapshot": snapshot}))


def test_kill(api, sandbox):
    first, second, _ = cases("34-kill.json")
    like(first, api.delete(sandbox))
    like(second, api.delete(sandbox))


def test_pause_and_hibernate(api, sandbox):
    pause, resume, hibernate, wake, running, stopped = cases("35-pause-hibernate.json")
    like(pause, api.post(sandbox + "/pause"))
    like(resume, api.post(sandbox + "/resume"))
    like(running, api.post(sandbox + "/wake"))
    like(hibernate, api.post(sandbox + "/hibernate"))
    like(stopped, api.post(sandbox + "/pause"))
    like(wake, api.post(sandbox + "/wake"))


def test_forks(server, api, sandbox):
    fork, tree, promote, too_many = cases("36-fork.json")
    like(fork, api.post(sandbox + "/fork", body(fork)))
    server.set(failed_child={"times": 1})
    grown = api.post(sandbox + "/fork-tree", body(tree))
    tree["response"]["body"]["errors"][0]["index"] = 0  # ours is the first one that fails
    like(tree, grown)
    sibling = api.post(sandbox + "/fork-tree", {"count": 2})
    winner = "/v1/sandboxes/" + sibling.body["children"][0]["id"]
    asked = {"tree_id": sibling.body["tree_id"], "cleanup_siblings": True}
    like(promote, api.post(winner + "/promote", asked))
    like(too_many, api.post(sandbox + "/fork", {"count": 17}))


def test_errors(server, api, sandbox):
    missing, invalid, foreign, unknown, paused, limited, unreachable, wake, panic, _ = cases("40-errors.json")
    server.set(require_auth=True)
    like(missing, running.Api(server.port, token=None).get("/v1/sandboxes"))
    like(invalid, running.Api(server.port, token="pds_" + "0" * 32).get("/v1/sandboxes"))
    like(foreign, api.get(NOBODY))
    like(unknown, api.get("/v1/nothing"))
    api.post(sandbox + "/pause")
    like(paused, api.post(sandbox + "/exec", {"cmd": "true"}))
    server.set(storm_429=1)
    like(limited, api.get(sandbox))
    server.set(unreachable_before=1)
    like(unreachable, api.get(sandbox))
    server.set(panic=1)
    like(panic, api.get(sandbox))
    api.post(sandbox + "/hibernate")
    server.set(wake_fails=1)
    refused = api.post(sandbox + "/exec", {"cmd": "true"})
    assert refused.status == wake["status"]
    assert refused.body["error"].startswith("auto-wake: wake resume: ")


def test_health(server, api):
    health, ready, version = cases("41-health.json")
    like(health, api.get("/healthz"))
    same(version["response"]["body"], api.get("/version").body)
    server.set(no_postgres=True)
    like(ready, api.get("/readyz"))


def test_templates(api):
    listed = {each["name"]: each for each in api.get("/v1/templates").body}
    for shown in example("42-templates.json")["response"]["body"]:
        if shown["is_global"]:
            same(shown, listed[shown["name"]])


def test_volumes_and_ports(api, sandbox):
    volume, again, label, ports, nobody = cases("43-volumes-ports.json")
    like(volume, api.post("/v1/volumes", body(volume)))
    like(again, api.post("/v1/volumes", body(again)))
    api.delete("/v1/volumes/data")
    like(label, api.post(sandbox + "/ports", body(label)))
    api.run(sandbox, running.served("python3 -m http.server 8000", 8000))
    like(ports, api.get(sandbox + "/ports"))
    refused = api.get(sandbox + "/proxy/9999/")
    assert refused.status == nobody["response"]["status"]
    assert refused.body["error"].startswith("upstream: dial tcp 10.200.")
    assert refused.body["error"].endswith(":9999: connect: connection refused")
