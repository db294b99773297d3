"""Runs the crew and looks for what both agents say."""

import subprocess
import sys

EXPECTED = [
    "analyst: The sums are {'north': 7, 'south': 13}; they are in `by_region`.",
    "writer: In this quarter south leads with 65% of the units.",
]

done = subprocess.run([sys.executable, "crew.py"], capture_output=True, text=True, timeout=400)
print(done.stdout)
missing = [line for line in EXPECTED if line not in done.stdout.splitlines()]
if done.returncode or missing:
    sys.exit(f"missing: {missing}\nstatus {done.returncode}\n{done.stderr}")
