"""`pykeep http` stopped, killed and started again: the same Mcp-Session-Id finds its variables."""

import json
import re

from conftest import environment_in, program, until
from http_server import HttpServer
from test_hibernation import images  # noqa: F401
from test_http_peers_faults import Mcp


def start(directory, *options):
    return HttpServer([program("PYKEEP_BINARY")], *options, env=environment_in(directory))


def test_stopped_servers_freeze_every_session_and_killed_ones_go_back_to_the_checkpoint(images, tmp_path):  # noqa: F811
    checkpoints = ("--checkpoint-cells", "1")
    with start(tmp_path, *checkpoints) as server:
        clients = [Mcp(server, principal={}) for _ in range(6)]
        for number, client in enumerate(clients):
            client.run(f"x = {number}; held = bytearray({number} << 22)")
        assert server.stop() == 0
    with start(tmp_path, *checkpoints) as server:
        for number, client in reversed(list(enumerate(clients))):
            client.server = server
            said = client.run("x")
            assert said.endswith(f"variables are kept.]\n{number}"), said
        # The last of them is the first client: its checkpoint, and what is lost with the server.
        record = tmp_path / "state" / "sessions" / re.search(r"[a-z2-7]{26}", said)[0] / "session.json"
        until(lambda: json.loads(record.read_text())["image"]["execution"] == 2)
        client.run("x = 'lost'")
        server.process.kill()
        server.process.wait()
    with start(tmp_path, *checkpoints) as client.server:
        said = client.run("x")
        assert re.search(
            "restored to its state after execution [23].*executions after [23] are lost", said
        ), said
        assert said.endswith(
            ("after 2 are lost, and files in /workspace are not rewound.]\n0", "\n'lost'")
        ), said
        assert client.server.stop() == 0
