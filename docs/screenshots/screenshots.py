#!/usr/bin/env python3
"""Makes the pictures in docs/images anew (`./dev screenshots`): the data analyst's page, and terminals with what
programs really say. Needs headless Chromium and no network.

    screenshots.py PYKEEP [NAME...]
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from terminal import document

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs/images"
INSPECTOR = ROOT / "build/inspector/node_modules"
MOST = 150_000  # bytes of a picture
sys.path.insert(0, str(ROOT / "examples/data_analyst"))
import test as data_analyst  # noqa: E402  what starts the page and the browser is there already

CODE = "import pandas as pd; pd.Series([3, 1, 2]).describe()"


def said_by(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    if done.returncode:
        sys.exit(f"screenshots: {' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    # What is of this machine only, and of no interest to others.
    text = re.sub(r"/sys/fs/cgroup/\S+", "/sys/fs/cgroup/…", done.stdout)
    return re.sub(r"\S+/templates/default", "default", text)


def doctor(browser, pykeep):
    """What the machine can isolate, once the template's image is there."""
    said_by(pykeep, "run", "-c", "1")
    terminal(browser, "doctor", "pykeep doctor", said_by(pykeep, "doctor"))


def demo(browser, pykeep):
    with tempfile.TemporaryDirectory() as place:
        text = said_by(sys.executable, ROOT / "demo/demo.py", pykeep, cwd=place)
    begin, rest = text.split("\n-- zoom into", 1)
    terminal(browser, "demo", "./dev demo", begin + "\n   ⋮\n" + rest[rest.index("\n-- correct it") :])


def inspector(browser, pykeep):
    """The MCP Inspector's command line, as one call from a shell."""
    program = [INSPECTOR / "node/bin/node", INSPECTOR / ".bin/mcp-inspector", "--cli", pykeep]
    # The Inspector starts servers with a short list of variables.
    given = [name for name in ("PYKEEP_STATE_DIR", "PYKEEP_TEMPLATE") if name in os.environ]
    variables = [word for name in given for word in ("-e", f"{name}={os.environ[name]}")]
    call = ["--method", "tools/call", "--tool-name", "run_python", "--tool-arg", f"code={CODE}"]
    shown = (
        "npx @modelcontextprotocol/inspector --cli pykeep --method tools/call \\\n"
        f"    --tool-name run_python --tool-arg 'code={CODE}'"
    )
    terminal(browser, "inspector", shown, said_by(*program, *variables, *call))


def data_analyst_page(browser, pykeep):
    os.environ["PYKEEP_BINARY"] = str(pykeep)
    with data_analyst.running_app() as url:
        page = browser.new_page(viewport={"width": 900, "height": 1190})
        page.goto(url)
        page.click("#sample")
        data_analyst.wait_until_ready(page)
        page.locator(".words >> nth=5").evaluate("last => window.scrollTo(0, last.offsetTop - 24)")
        save(page, "data-analyst")


def terminal(browser, name, command, text):
    page = browser.new_page(viewport={"width": 900, "height": 200})
    page.set_content(document(command, text))
    save(page, name, full_page=True)


def save(page, name, **options):
    file = IMAGES / f"{name}.png"
    page.screenshot(path=file, **options)
    page.close()
    with_few_colours(file)
    size = file.stat().st_size
    print(f"{file.relative_to(ROOT)}: {size:,} bytes")
    if size > MOST:
        sys.exit(f"screenshots: more than {MOST:,}")


def with_few_colours(file):
    """A third of the size. The tests' environment for kernels has what it takes."""
    if template := os.environ.get("PYKEEP_TEMPLATE"):
        code = "from PIL import Image as I; I.open('{0}').quantize(255).save('{0}', optimize=True)"
        subprocess.run([f"{template}/bin/python3", "-c", code.format(file)], check=True)


SHOTS = {"data-analyst": data_analyst_page, "demo": demo, "doctor": doctor, "inspector": inspector}


def main():
    pykeep, names = Path(sys.argv[1]).resolve(), sys.argv[2:] or SHOTS
    if not (chromium := data_analyst.chromium()):
        sys.exit(f"screenshots: no {' or '.join(data_analyst.BROWSERS)}")
    with tempfile.TemporaryDirectory() as state, sync_playwright() as playwright:
        os.environ["PYKEEP_STATE_DIR"] = state
        browser = playwright.chromium.launch(executable_path=chromium, args=data_analyst.FLAGS)
        for name in names:
            SHOTS[name](browser, pykeep)
        browser.close()


if __name__ == "__main__":
    main()
