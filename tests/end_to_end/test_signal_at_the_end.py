"""A client that closes the server's input and sends a signal at once: variables come to the disk all the same."""

import signal
import time

import pytest


@pytest.mark.parametrize("pause", [0, 0.02, 0.1])
def test_a_signal_after_the_end_of_input_interrupts_no_saving(start, pause):
    client = start("--session", "main")
    client.call_tool("run_python", {"code": f"x = 'kept {pause}'\nballast = bytearray(b'1') * 100_000_000"})
    client.process.stdin.close()
    time.sleep(pause)
    client.process.send_signal(signal.SIGTERM)
    client.process.wait(10)
    assert f"kept {pause}" in start("--session", "main").call_tool("run_python", {"code": "x"}).text
