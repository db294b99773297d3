"""Uses the page as a person would, in headless Chromium, and looks at what is there. Leaves a picture of it
in build/data-analyst.png."""

import ast
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parents[1] / "build/data-analyst.png"
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = "<img src=x onerror=document.title='run'>"


def chromium():
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextlib.contextmanager
def running_app(**environment):
    command, environment = [sys.executable, "app.py", "0"], {**os.environ, **environment}
    app = subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield app.stdout.readline().strip()
    finally:
        app.terminate()
        ended = app.wait(90)
    assert ended in (0, -15), f"app.py ended with {ended}"


@contextlib.contextmanager
def new_page(browser, url):
    """A page that may ask nobody but the app, and whose scripts may not fail."""
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.set_default_timeout(60_000)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith((url, "data:", "blob:")) or wrong.append(asked.url))
    page.goto(url)
    yield page
    page.close()
    assert not wrong, wrong


def wait_until_ready(page):
    page.wait_for_selector("#status[data-state=ready], .trouble")
    troubles = page.locator(".trouble").all_inner_texts()
    assert not troubles, troubles


# Looked at in the page: by the time that a test has asked, the rest may be there.
WATCH = """() => {
  new MutationObserver((_, watching) => {
    if (!document.querySelector(".cell .result")) return;
    watching.disconnect();
    const more = document.querySelector("#more");
    window.atFirst = [document.querySelector("#status").innerText, more.checkVisibility()];
  }).observe(document.body, { childList: true, subtree: true });
}"""


def exploration(page):
    page.evaluate(WATCH)
    page.click("#sample")
    page.wait_for_selector(".cell .result, .trouble")
    assert page.evaluate("window.atFirst") == ["Working", False], "the first result was shown before the last"
    wait_until_ready(page)
    assert page.inner_text(".question") == "What is in this file, and what stands out?"
    assert page.locator(".cell").count() == 7
    assert "208 rows" in page.inner_text(".cell >> nth=0")
    assert "ValueError" in page.inner_text(".failed"), "the mistake was shown as one"
    charts = page.locator(".cell img").evaluate_all("all => all.map(one => [one.naturalWidth, one.alt])")
    assert [width > 600 for width, _ in charts] == [True, True], charts
    assert "revenue" in page.inner_text(".words >> nth=-1"), "the last words quote the findings"
    assert page.locator(".words >> nth=-1 >> li").count() == 3
    assert "visitors over time" in charts[1][1]
    page.wait_for_function("innerHeight + scrollY >= document.body.scrollHeight - 2")  # it followed


def follow_up(page):
    """The same Python answers; what the notebook then holds."""
    page.fill("#next", "Is there more?")
    page.click("#ask button")
    page.wait_for_selector(".question >> nth=1")
    wait_until_ready(page)
    assert "mean" in page.inner_text(".cell >> nth=-1"), "df was still there"
    exports = {}
    for link in ("notebook", "script"):
        with page.expect_download() as download:
            page.click(f"#{link}")
        exports[download.value.suggested_filename] = Path(download.value.path()).read_text()
    notebook = json.loads(exports["notebook.ipynb"])
    assert notebook["nbformat"] == 4
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", ()) for output in outputs) == 2
    assert any(output["output_type"] == "error" for output in outputs)
    ast.parse(exports["script.py"])
    assert "pd.read_csv('cafes.csv')" in exports["script.py"]


def take_picture(page):
    PICTURE.parent.mkdir(exist_ok=True)
    height = page.evaluate("document.body.scrollHeight")
    page.set_viewport_size({"width": 1000, "height": height})  # so that the footer is at the end
    page.screenshot(path=PICTURE)


def upload(page, name, content):
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})
    page.click("#upload button[type=submit]")


def hostile_file(page):
    upload(page, "../<b>.csv", f"n,{HOSTILE}\n1,{HOSTILE}\n2,b\n".encode())
    page.wait_for_selector(".cell .result")
    assert HOSTILE in page.inner_text(".cell >> nth=0")
    wait_until_ready(page)
    assert page.locator("#conversation img:not([src^='data:'])").count() == 0
    assert page.title() == "Data analyst"


def no_csv_file(page):
    upload(page, "empty.csv", b"")
    assert "EmptyDataError" in page.inner_text(".trouble")
    page.wait_for_selector("#status[data-state=failed]")


def refused_files():
    """None of them stays on the disk, and none takes the place of another."""
    with tempfile.TemporaryDirectory() as directory, running_app(TMPDIR=directory) as url:
        host = urlsplit(url).netloc
        waiting = [begin(host, "a.csv", 4) for _ in range(9)]
        for connection in waiting:
            connection.send(b"a\n1\n")
        statuses = sorted(connection.getresponse().status for connection in waiting)
        assert statuses == [201] * 8 + [503], statuses
        assert begin(host, "b.csv", 0).getresponse().status == 503
    with tempfile.TemporaryDirectory() as directory, running_app(TMPDIR=directory) as url:
        host = urlsplit(url).netloc
        cut = begin(host, "cut.csv", 1000)
        cut.send(b"x" * 500)
        large = begin(host, "large.csv", 51_000_000)
        with contextlib.suppress(OSError):  # it ends before all was sent
            large.send(b"x" * 51_000_000)
            assert large.getresponse().status == 413
        named = begin(host, "../" + "\u00e4" * 300 + ".csv", 4)
        named.send(b"a\n1\n")
        assert named.getresponse().status == 201
        cut.close()
        assert begin(host, "c.csv", 0, {"Content-Type": "text/plain"}).getresponse().status == 415
        end = time.monotonic() + 20
        while len(left := [path.name for path in Path(directory).rglob("*.csv")]) > 1:
            assert time.monotonic() < end, left
            time.sleep(0.05)
        assert left[0].endswith("\u00e4.csv"), left


def begin(host, name, size, headers=None):
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.putrequest("POST", f"/analyses?name={quote(name)}")
    for header, value in {"Content-Type": "text/csv", "Content-Length": str(size), **(headers or {})}.items():
        connection.putheader(header, value)
    connection.endheaders()
    return connection


def main():
    refused_files()
    if not chromium():
        print(f"skipped: the page is used in a browser, and there is no {' or '.join(BROWSERS)}")
        return 77
    with running_app() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        with new_page(browser, url) as page:
            exploration(page)
            follow_up(page)
            take_picture(page)
        for case in (hostile_file, no_csv_file):
            with new_page(browser, url) as page:
                case(page)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
