"""What is run in the guest (docs/guest-relay.md, "Commands")."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def arguments():
    parser = argparse.ArgumentParser(prog="pykeep_guest")
    parser.add_argument("--run", default="/run/pykeep")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start")
    start.add_argument("--port", type=int, default=0)
    start.add_argument("--python", default="python3")
    start.add_argument("--workspace", default="/workspace")
    call = commands.add_parser("call")
    call.add_argument("method")
    call.add_argument("path")
    call.add_argument("body", nargs="?", default="")
    relay = commands.add_parser("relay")  # what `start` starts
    relay.add_argument("--port", type=int, required=True)
    relay.add_argument("--python", required=True)
    relay.add_argument("--workspace", required=True)
    relay.add_argument("--ready", type=int, required=True)
    return parser.parse_args()


def main():
    given = arguments()
    if sys.version_info < (3, 9):  # noqa: UP036  the guest decides which Python this is
        print('{"ok":false,"problem":"old_python","message":"Python 3.9 or newer is needed"}')
        return 1
    import importlib

    return importlib.import_module(f"pykeep_guest.{given.command}").run(given)


if __name__ == "__main__":
    sys.exit(main())
