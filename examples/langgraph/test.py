"""Runs the graph and compares what it prints."""

import subprocess
import sys

EXPECTED = """\
anna: Remember the primes below 30.
  Kept: [2, 3, 5, 7, 11, 13, 17, 19, 23, 29].
bert: What are the primes?
  I do not have them: NameError: name 'primes' is not defined
anna: Add them up.
  Their sum is 129.
"""

done = subprocess.run([sys.executable, "graph.py"], capture_output=True, text=True, timeout=400)
print(done.stdout)
if done.returncode or done.stdout != EXPECTED:
    sys.exit(f"expected:\n{EXPECTED}\nstderr:\n{done.stderr}")
