"""Snapshots, hibernation and forks: the disk, and what Python processes have in their memory."""

import running

COUNTER = """
import os, signal, threading, time
x = int(open('/workspace/start').read())
secret = os.urandom(8).hex()
def count(*_):
    global x
    x += 1
    with open('/workspace/x.new', 'w') as file: file.write(f'{x} {secret}')
    os.rename('/workspace/x.new', '/workspace/x')
signal.signal(signal.SIGUSR1, count)
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
count()
while True: time.sleep(1000)
"""
COUNT = "rm -f /workspace/x; kill -USR1 $(cat /workspace/pid); until cat /workspace/x 2>/dev/null; do sleep 0.01; done"


def start_counter(api, sandbox):
    api.put(sandbox + "/fs?path=/opt/counter.py", COUNTER.encode())
    api.put(sandbox + "/fs?path=/workspace/start", b"40")
    start = "cd /workspace; nohup setsid python3 /opt/counter.py >/dev/null 2>&1 & echo $! > /workspace/pid; "
    api.run(sandbox, start + "until test -e /workspace/x; do sleep 0.01; done")


def count(api, sandbox):
    number, secret = api.output(sandbox, COUNT).split()
    return int(number), secret


def restore(api, snapshot, **more):
    return api.create(from_snapshot=snapshot, cpu=8, memory_mb=2048, **more)


@running.needs_images
def test_memory_goes_on_in_every_copy(api, sandbox):
    start_counter(api, sandbox)
    first, secret = count(api, sandbox)
    snapshot = api.post(sandbox + "/snapshots").body["id"]
    assert count(api, sandbox) == (first + 1, secret)  # the source went on
    for _ in range(2):
        copy = restore(api, snapshot)
        assert count(api, copy) == (first + 1, secret)
    again = restore(api, api.post(copy + "/snapshots").body["id"])  # a copy of a copy
    assert count(api, again) == (first + 2, secret)
    assert count(api, copy) == (first + 2, secret)  # to itself


@running.needs_images
def test_memory_goes_on_after_hibernation(server, api, sandbox):
    start_counter(api, sandbox)
    first, secret = count(api, sandbox)
    for round in range(2):
        assert api.post(sandbox + "/hibernate").status == 200
        assert server.counters()["processes"] == 0
        assert count(api, sandbox) == (first + 1 + round, secret)


@running.needs_images
def test_forks(api, sandbox):
    start_counter(api, sandbox)
    first, secret = count(api, sandbox)
    tree = api.post(sandbox + "/fork-tree", {"count": 2, "metadata": {"run": "7"}}).body
    for index, child in enumerate(tree["children"]):
        path = "/v1/sandboxes/" + child["id"]
        assert count(api, path) == (first + 1, secret)
        metadata = api.get(path).body["metadata"]
        assert (metadata["fork_tree_id"], metadata["fork_index"], metadata["run"]) == (
            tree["tree_id"],
            str(index),
            "7",
        )
        assert api.get(path + "/lifecycle").body["ttl_seconds"] == 300
    [cold] = api.post(sandbox + "/fork", {"count": 1}).body["children"]
    assert (
        api.output(f"/v1/sandboxes/{cold}", "cat /workspace/start; ps ax | grep -c '[c]ounter.py' || true")
        == "400\n"
    )
    [warm] = api.post(sandbox + "/fork", {"mode": "warm"}).body["children"]
    assert count(api, "/v1/sandboxes/" + warm) == (first + 1, secret)
    assert api.get(sandbox).status == 404


def test_a_snapshot_outlives_a_reaped_source_but_not_a_deleted_one(server, api):
    def snapshot_of_new():
        made = api.create()
        api.run(made, "echo kept > /workspace/file")
        return made, api.post(made + "/snapshots").body["id"]

    source, snapshot = snapshot_of_new()
    api.patch(source + "/lifecycle", {"ttl_seconds": 1})
    server.tick(2)
    assert api.get(source).status == 404
    copy = restore(api, snapshot)
    assert api.output(copy, "cat /workspace/file") == "kept\n"
    server.tick(8 * 24 * 3600)  # an orphan for a week
    assert api.get("/v1/snapshots/" + snapshot).status == 404

    source, snapshot = snapshot_of_new()
    api.delete(source)
    assert api.get("/v1/snapshots/" + snapshot).status == 404
    assert api.post("/v1/sandboxes", {"from_snapshot": snapshot}).status == 500


def test_june(server, api, sandbox):
    """Over a fresh disk, without a registry."""
    server.set(june=True)
    api.run(sandbox, "echo lost > /workspace/file")
    snapshot = api.post(sandbox + "/snapshots").body["id"]
    assert api.get("/v1/snapshots").data == b"404 page not found\n"
    copy = restore(api, snapshot)
    assert api.get(copy + "/fs?path=/workspace/file").status == 500


def test_without_size_or_template(api, sandbox):
    """What a restore says it has is what it was asked for."""
    snapshot = api.post(sandbox + "/snapshots").body["id"]
    made = api.post("/v1/sandboxes", {"from_snapshot": snapshot}).body
    assert (made["template"], made["cpu"], made["memory_mb"]) == ("code-interpreter", 1, 256)
