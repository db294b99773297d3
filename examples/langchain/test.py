"""Runs each program of the example and looks for the lines that only a working one prints."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

EXPECTED = {
    "resume.py": [
        "ai: The mean is -0.0543.",
        "== turn 1: its process ended by signal 9",
        "ai: The largest was 3.7516; doubled.",
        "== turn 2: its process ended by signal 9",
        "ai: It is 3.7516 again.",
        "== turn 3: its process ended by signal 9",
    ],
    "agent.py": ["ai: The walk ends at 32.", "ai: At most 46 steps away.", "    < (image/png, "],
    "session_per_call.py": [
        "== by_handle",
        "ai: It is 42.",
        "== by_name",
        "ai: It is 42.",
        "== by_int",
        "ai: It is 42.",
    ],
    "charts.py": [
        "ai: From a tool message I see a chart of 534 x",
        "ai: From a human message I see a chart of 534 x",
    ],
    "manual.py": ["    < NameError: name 'n' is not defined", "ai: 20! is 2432902008176640000."],
}


def run(program):
    """What is wrong with the program, if anything."""
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=400)
    lines = iter(done.stdout.splitlines())
    missing = [line for line in EXPECTED[program] if not any(said.startswith(line) for said in lines)]
    print(f"{program}: {'failed' if done.returncode or missing else 'ok'}", flush=True)
    if done.returncode or missing:
        return f"{program}: status {done.returncode}, missing: {missing}\n{done.stdout}\n{done.stderr}"
    return None


with ThreadPoolExecutor(2) as pool:  # all share one state directory, as a user's programs do
    wrong = [said for said in pool.map(run, EXPECTED) if said]
sys.exit("\n".join(wrong) or 0)
