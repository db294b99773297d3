"""The official MCP conformance suite against the fixtures in this folder, served over HTTP by pykeep's own code.

Every scenario that a revision's requirements count has to pass, in every check and without a warning. What the
suite runs besides (scenarios that are pending, came later, or belong to extensions) is reported, and those that
can pass have to; of the extensions, tasks are not offered.
"""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

BUILD = pathlib.Path(__file__).parents[2] / "build" / "conformance"
NODE = BUILD / "node_modules" / "node" / "bin" / "node"
SUITE = BUILD / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

SCORED = {"2025-11-25": 30, "2026-07-28": 37}
UNSCORED = {
    "2025-11-25": {"server-session-lifecycle", "server-sse-polling", "json-schema-2020-12"},
    "2026-07-28": {"http-header-validation", "http-custom-header-server-validation", "json-schema-2020-12"},
}
SCENARIO = re.compile(r"^[✓✗] (\S+): \d+ passed, \d+ failed$", re.MULTILINE)
NOT_SCORED = re.compile(r"^  [✓✗] (\S+) \((.+)\)$", re.MULTILINE)


@pytest.fixture(scope="module")
def url():
    """Where the fixtures are served. In the end the server has to stop by itself, and well."""
    program = os.environ.get("PYKEEP_CONFORMANCE")
    if not program:
        pytest.skip("PYKEEP_CONFORMANCE does not name the server with the fixtures")
    if not NODE.exists() or not SUITE.exists():
        pytest.skip("the suite is not installed in build/conformance (./dev test brings it with npm)")
    server = subprocess.Popen([program, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0
    finally:
        server.kill()
        server.wait()


def statuses(results: pathlib.Path, scenario: str):
    """How many checks of a scenario ended how, and what the others than successes say."""
    (checks,) = results.glob(f"server-{scenario}-2*/checks.json")
    checks = json.loads(checks.read_text())
    problems = [
        f"{one['id']}: {one.get('errorMessage')}" for one in checks if one["status"] in ("FAILURE", "WARNING")
    ]
    return collections.Counter(one["status"] for one in checks), problems


def report(revision, scored, unscored):
    lines = [f"conformance {revision}: {scored} scored scenarios"]
    for scenario, (kind, counts) in sorted(unscored.items()):
        outcome = ", ".join(f"{count} {status.lower()}" for status, count in sorted(counts.items()))
        lines.append(f"  not scored ({kind}): {scenario}: {outcome}")
    (BUILD / f"report-{revision}.txt").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("revision", sorted(SCORED))
def test_passes_what_the_revision_requires(url, revision, tmp_path):
    command = [NODE, SUITE, "server", "--url", url, "--requirements", revision, "-o", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240)
    summary = run.stdout[run.stdout.index("=== SUMMARY ===") :]
    kinds = dict(NOT_SCORED.findall(summary))
    outcomes = {scenario: statuses(tmp_path, scenario) for scenario in SCENARIO.findall(summary)}
    scored = outcomes.keys() - kinds.keys()
    unscored = {scenario: (kind, outcomes[scenario][0]) for scenario, kind in kinds.items()}
    report(revision, len(scored), unscored)

    expected = scored | UNSCORED[revision]
    problems = {scenario: outcomes[scenario][1] for scenario in expected if outcomes[scenario][1]}
    assert not problems, run.stdout[-4000:]
    assert len(scored) == SCORED[revision]
    assert all(scenario.startswith("tasks-") for scenario in kinds.keys() - UNSCORED[revision])
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr
