"""The whole program against broken messages, with its real tools: none starts a kernel, all are
answered or refused, and nothing piles up. PYKEEP_MUTATIONS says how many (the measurements take
100,000, see bench/), PYKEEP_SEED which."""

import itertools
import os

import pytest
from mcp_client import anonymous_bytes
from mutations import mutated_lines

MB = 1 << 20
COUNT = int(os.environ.get("PYKEEP_MUTATIONS", "20000"))
SEED = int(os.environ.get("PYKEEP_SEED", "20261129"))
BATCH = 500


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mutated_messages_leave_the_server_alive_and_no_larger(start, era):
    client = start(era=era, answer=lambda params: {"action": "decline"})
    client._ids = itertools.count(10**9)  # which no mutated message cancels, nor an answer to one bears
    lines = mutated_lines(SEED if era == "legacy" else SEED + 1)

    def send(count):
        for _ in range(count // 2 // BATCH):
            client.send_bytes(b"".join(itertools.islice(lines, BATCH)))
            client.request("tools/list")  # waits until they are behind it
        return anonymous_bytes(client.process.pid)

    warm = send(COUNT // 5)
    grown = send(COUNT - COUNT // 5) - warm
    print(f"seed {SEED}, grown by {grown // 1024} kB")
    assert grown < 20 * MB
    assert "run_python" in {tool["name"] for tool in client.list_tools()}
    assert client.close() == 0
