"""What runs in the sandbox: takes code from descriptor 3, answers with its value and its output."""

import contextlib
import io
import json
import os
import sys
import traceback


def main():
    for name in sys.argv[1:]:
        __import__(name)
    namespace = {}
    pending = b""
    send({"pid": os.getpid()})
    while True:
        while b"\n" not in pending:
            try:
                data = os.read(3, 1 << 16)
            except KeyboardInterrupt:
                continue
            if not data:
                return
            pending += data
        line, pending = pending.split(b"\n", 1)
        send(run(json.loads(line)["code"], namespace))


def send(message):
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(3, data) :]


def run(code, namespace):
    output = io.StringIO()
    value = error = None
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            *body, last = code.rsplit("\n", 1) if "\n" in code else [code]
            try:
                final = compile(last, "cell", "eval")
            except SyntaxError:
                exec(compile(code, "cell", "exec"), namespace)
            else:
                exec(compile("\n".join(body), "cell", "exec"), namespace)
                value = repr(eval(final, namespace))
        except BaseException:
            error = traceback.format_exc(limit=-2)
    return {"value": value, "output": output.getvalue(), "error": error}


main()
