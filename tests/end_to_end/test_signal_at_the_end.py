"""A client that closes the server's input and sends a signal at once: variables come to the disk all the same."""

import itertools
import signal
import time

import pytest
from conftest import put_on_disk


@pytest.mark.parametrize("pause", [0, 0.02, 0.1])
def test_a_signal_after_the_end_of_input_interrupts_no_saving(start, pause):
    names = itertools.count()

    def work():
        name = f"main{next(names)}"
        client = start("--session", name)
        client.call_tool(
            "run_python", {"code": f"x = 'kept {pause}'\nballast = bytearray(b'1') * 100_000_000"}
        )
        client.process.stdin.close()
        time.sleep(pause)
        client.process.send_signal(signal.SIGTERM)
        return client, name

    name = put_on_disk(work)
    assert f"kept {pause}" in start("--session", name).call_tool("run_python", {"code": "x"}).text
