"""Runs the client, looks for its results and at its chart."""

import subprocess
import sys
import tempfile
from pathlib import Path

EXPECTED = [
    "tools: run_python, ",
    "result: 5.0",
    "error: Traceback",
    "IndexError",
    "result: [running for ",
    "in the end: done",
]

with tempfile.TemporaryDirectory() as directory:
    chart = Path(directory, "chart.png")
    command = [sys.executable, "client.py", chart]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    print(done.stdout)
    missing = [line for line in EXPECTED if line not in done.stdout]
    if done.returncode or missing:
        sys.exit(f"missing: {missing}\nstatus {done.returncode}\n{done.stderr}")
    assert chart.read_bytes().startswith(b"\x89PNG\r\n"), "the chart is no PNG"
