"""The kernel that a REPL session runs in its guest: frames in, one line of JSON out.

With the hazards of the real one: it counts characters where the host counts bytes, and answers on the very
stdout that programs it starts write to. Two words as arguments take them away: bytes, apart.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import traceback

counts_bytes = "bytes" in sys.argv
protocol = sys.stdout
if "apart" in sys.argv:
    protocol = os.fdopen(os.dup(1), "w")
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
source = sys.stdin.buffer if counts_bytes else sys.stdin
ns = {"__name__": "__main__"}

try:
    from IPython.core.formatters import DisplayFormatter

    bundle_of = DisplayFormatter().format
except ImportError:

    def bundle_of(value):
        return {"text/plain": repr(value)}, {}


def as_text(payload):
    return base64.b64encode(payload).decode() if isinstance(payload, bytes) else payload


def figures():
    plots = sys.modules.get("matplotlib.pyplot")
    found = []
    for number in plots.get_fignums() if plots else ():
        data = io.BytesIO()
        plots.figure(number).savefig(data, format="png", bbox_inches="tight")
        found.append({"image/png": base64.b64encode(data.getvalue()).decode()})
    if plots:
        plots.close("all")
    return found


def run_cell(src):
    out, err, results, status = io.StringIO(), io.StringIO(), [], 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            tree = ast.parse(src, mode="exec")
            last_expr = None
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last_expr = ast.Expression(tree.body.pop().value)
            exec(compile(tree, "<cell>", "exec"), ns)
            if last_expr is not None:
                val = eval(compile(last_expr, "<cell>", "eval"), ns)
                if val is not None:
                    results.append({kind: as_text(data) for kind, data in bundle_of(val)[0].items()})
        except SystemExit as request:
            status = request.code if isinstance(request.code, int) else 1
        except BaseException:
            status = 1
            traceback.print_exc()
        with contextlib.suppress(Exception):
            results += figures()
    return {"stdout": out.getvalue(), "stderr": err.getvalue(), "exit": status, "results": results}


def main():
    os.environ["MPLBACKEND"] = "Agg"
    print("__FCS_READY__", file=protocol, flush=True)
    while header := source.readline():
        code = source.read(int(header))
        answer = run_cell(code.decode() if counts_bytes else code)
        print(json.dumps(answer), file=protocol, flush=True)


main()
