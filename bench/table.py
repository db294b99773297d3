"""Rows of the one table that is printed."""

import math
import statistics
import sys
import traceback
from dataclasses import dataclass

HEADINGS = ("", "pykeep", "p99", "peer", "p99", "ratio", "must be", "", "")


def p99(values) -> float:
    ordered = sorted(values)
    return ordered[math.ceil(0.99 * len(ordered)) - 1]


def seconds(value: float) -> str:
    if value < 0.1:
        return f"{value * 1e3:.2f} ms"
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.2f} s"


def megabytes(value: float) -> str:
    return f"{value / 1e6:.1f} MB"


@dataclass
class Row:
    cells: tuple
    met: bool = True
    note: str = ""


def timed(what, ours, peer=(), *, below=None, faster=None, note="") -> Row:
    """One row from samples in seconds. `below`: seconds that the median must stay under; `faster`: how
    many times faster than the peer it must be."""
    median = statistics.median(ours)
    cells = [f"{what} (n={len(ours)})", seconds(median), seconds(p99(ours)), "", "", "", ""]
    met = True
    if peer:
        other = statistics.median(peer)
        cells[3:6] = seconds(other), seconds(p99(peer)), f"{other / median:.1f} x"
    if below is not None:
        cells[6] = f"< {seconds(below)}"
        met = median < below
    if faster is not None:
        cells[6] = f"{faster} x faster"
        met = other / median >= faster
    return Row(tuple(cells), met, note)


def loaded(what, per_second, latencies, note="") -> Row:
    """One row from requests under load: how many a second, and the latency of the slowest."""
    note = f"median {seconds(statistics.median(latencies))}; {note}"
    return Row((what, f"{per_second:,.0f}/s", seconds(p99(latencies)), "", "", "", ""), note=note)


def counted(what, value, *, must="", met=True, note="") -> Row:
    return Row((what, str(value), "", "", "", "", must), met, note)


def sized(what, size, peer=None, *, below=None, note="") -> Row:
    """One row from bytes."""
    bound = "" if below is None else f"< {megabytes(below)}"
    other = "" if peer is None else megabytes(peer)
    return Row((what, megabytes(size), "", other, "", "", bound), below is None or size < below, note)


def attempted(what, measure, *arguments):
    """The rows of one measurement; where it fails, one that says so, so that the others are still taken."""
    try:
        yield from measure(*arguments)
    except Exception as failure:
        traceback.print_exc()
        yield counted(what, "failed", met=False, note=f"{type(failure).__name__}: {failure}"[:200])


def show(title, rows) -> bool:
    """Prints them; whether all bounds were met."""
    lines = [(*row.cells, "" if row.met else "MISSED", row.note) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, HEADINGS)]
    print(f"\n{title}\n")
    for line in [HEADINGS, *lines]:
        numbers = (cell.rjust(width) for cell, width in zip(line[1:-1], widths[1:]))
        cells = [line[0].ljust(widths[0]), *numbers, line[-1]]
        print("  ".join(cells).rstrip())
    sys.stdout.flush()
    return all(row.met for row in rows)
