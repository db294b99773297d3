#!/usr/bin/env python3
"""summary.py RESULTS.xml: says what ctest ran, why anything was not run, and how it ended.

The last line is "N passed, N failed"; the status is 0 when something passed and nothing failed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

# How our suites say that a part of theirs was not run: doctest messages and pytest -rs.
REASON = re.compile(r"^\s*(?:skipped: .*|SKIPPED \[\d+\] .*)$", re.MULTILINE | re.IGNORECASE)


def main() -> int:
    try:
        suite = ElementTree.parse(sys.argv[1]).getroot()
    except (OSError, ElementTree.ParseError):
        print("no results: ctest did not run", file=sys.stderr)
        print("0 passed, 0 failed")
        return 1
    passed, failed, reasons = 0, [], []
    for case in suite.iter("testcase"):
        name = case.get("name")
        status = case.get("status")
        said = REASON.findall(case.findtext("system-out") or "")
        if status == "run":
            passed += 1
        elif status == "fail":
            failed.append(name)
        elif not said:
            said = [case.find("skipped").get("message") if case.find("skipped") is not None else status]
        reasons += [f"{name}: {reason.strip()}" for reason in dict.fromkeys(said)]
    for reason in reasons:
        print(f"not run: {reason}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
