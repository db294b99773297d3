"""Runs the agent and compares what it prints."""

import subprocess
import sys

EXPECTED = ["  35 times.", "  The 7; I was given 1 image."]

done = subprocess.run([sys.executable, "agent.py"], capture_output=True, text=True, timeout=400)
print(done.stdout)
missing = [line for line in EXPECTED if line not in done.stdout.splitlines()]
if done.returncode or missing:
    sys.exit(f"missing: {missing}\nstatus {done.returncode}\n{done.stderr}")
