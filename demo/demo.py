#!/usr/bin/env python3
"""A small MCP client over stdio that does what an agent would: prints what the model sees, call by
call, and saves the charts under demo-output/. Ends with 1 if anything is not as it should be.

    demo.py PYKEEP [ARGUMENT...]
"""

import base64
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

OUTPUT = pathlib.Path("demo-output")
PNG = b"\x89PNG\r\n\x1a\n"

SALES = """month,region,revenue
2026-01,north,1200
2026-01,south,900
2026-02,north,1350
2026-02,south,1010
2026-03,north,1280
2026-03,south,1190
"""

STEPS = [
    (
        "compute the 30th Fibonacci number",
        "run_python",
        {"code": "fib = [0, 1]\nwhile len(fib) <= 30:\n    fib.append(fib[-1] + fib[-2])\nfib[30]"},
    ),
    (
        "plot the sequence, from the variable that was kept",
        "run_python",
        {
            "code": "import matplotlib.pyplot as plt\n"
            "plt.plot(fib, marker='o')\n"
            "plt.yscale('symlog')\n"
            "plt.title('Fibonacci numbers')\n"
            "plt.xlabel('n')\n"
            "plt.ylabel('F(n)')\n"
            "plt.show()"
        },
    ),
    (
        "zoom into the last five values",
        "run_python",
        {
            "code": "last = list(range(26, 31))\n"
            "plt.bar(last, [fib[n] for n in last])\n"
            "plt.title('The last five')\n"
            "plt.xlabel('n')\n"
            "print('ratio of the last two:', fib[30] / fib[29])"
        },
    ),
    ("upload a CSV file", "upload_file", {"name": "sales.csv", "text": SALES}),
    (
        "show it as a DataFrame",
        "run_python",
        {"code": "import pandas as pd\nsales = pd.read_csv('sales.csv')\nsales"},
    ),
    (
        "make a mistake and see the traceback",
        "run_python",
        {"code": "def total(frame):\n    return frame['amount'].sum()\n\ntotal(sales)"},
    ),
    (
        "correct it: everything is still there",
        "run_python",
        {"code": "sales.groupby('region')['revenue'].sum()"},
    ),
]


class Client:
    """Newline-delimited JSON-RPC, as short as it can be."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next_id = 0

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.next_id += 1
        self.send({"id": self.next_id, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.next_id:
                if "error" in message:
                    sys.exit(f"demo: {method}: {message['error']['message']}")
                return message["result"]
        sys.exit("demo: the server ended")

    def close(self):
        """Returns the server's exit status, in words unless it is 0."""
        self.process.stdin.close()
        status = self.process.wait(5)
        if status == 0:
            return 0
        return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def show(blocks, charts):
    """Prints the content blocks as a model gets them, and saves the images."""
    for block in blocks:
        if block["type"] == "text":
            for line in block["text"].splitlines():
                print("   |", line)
        elif block["type"] == "image":
            data = base64.b64decode(block["data"])
            path = OUTPUT / f"chart-{len(charts) + 1}.{block['mimeType'].split('/')[1]}"
            path.write_bytes(data)
            charts.append(data)
            print(f"   | <image: {block['mimeType']}, {len(data)} bytes, saved as {path}>")


class Demo:
    def __init__(self, command):
        self.command = command
        self.charts, self.texts, self.failed = [], [], []

    def connect(self):
        client = Client(self.command)
        hello = client.request(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "pykeep-demo", "version": "1"},
            },
        )
        client.send({"method": "notifications/initialized"})
        print(
            f"{hello['serverInfo']['name']} {hello['serverInfo']['version']}, MCP {hello['protocolVersion']}"
        )
        return client

    def call(self, client, title, tool, arguments):
        print(f"\n-- {title}: {tool}")
        for line in arguments.get("code", arguments.get("text", "")).splitlines():
            print("   >", line)
        started = time.monotonic()
        result = client.request("tools/call", {"name": tool, "arguments": arguments})
        milliseconds = (time.monotonic() - started) * 1000
        show(result["content"], self.charts)
        print(f"   ({milliseconds:.0f} ms{', isError' if result.get('isError') else ''})")
        self.texts.append("\n".join(block.get("text", "") for block in result["content"]))
        self.failed.append(bool(result.get("isError")))
        return self.texts[-1]


def main():
    OUTPUT.mkdir(exist_ok=True)
    demo = Demo(sys.argv[1:])
    client = demo.connect()
    print("tools:", ", ".join(tool["name"] for tool in client.request("tools/list", {})["tools"]))
    for step in STEPS:
        demo.call(client, *step)
    statuses = [client.close()]
    session = re.search(r"New session (\S+):", demo.texts[0]).group(1)
    print("\nThe server was ended, and is started again:")
    client = demo.connect()
    code = "int(sales['revenue'].sum()) if 'sales' in dir() else 'no variables'"
    again = demo.call(client, "go on in the session", "run_python", {"code": code, "session": session})
    client.request("tools/call", {"name": "close_session", "arguments": {"session": session}})
    statuses.append(client.close())
    kept = again.endswith("6930") and "variables are kept" in again
    gone = re.search(r"the last one (.*)\. Variables from before are gone", again)
    reason = gone.group(1) if gone else "the result does not say why"
    # Where images are not possible (`pykeep doctor` says why) the result has to say so.
    no_images = "no variables" in again and "images do not work here" in reason
    failures = [status for status in statuses if status != 0]
    ended = f" (one: {', '.join(failures)})" if failures else ""
    lost = "" if kept else f": no, the last kernel {reason}"
    checks = {
        "the 30th Fibonacci number is 832040": "832040" in demo.texts[0],
        "two charts came back as PNG images": len(demo.charts) == 2
        and all(c.startswith(PNG) for c in demo.charts),
        "the DataFrame was shown": "revenue" in demo.texts[4] and "1350" in demo.texts[4],
        "the mistake came back as a traceback": demo.failed[5] and "KeyError: 'amount'" in demo.texts[5],
        "nothing else failed": demo.failed.count(True) == 1,
        "the servers ended with their clients, with status 0" + ended: not ended,
        "variables are there after a restart" + lost: kept or no_images,
    }
    print()
    for what, holds in checks.items():
        print("ok    " if holds else "NOT OK", what)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
