"""The data analyst: a page to upload a CSV file to, where an agent then explores it.

app.py [PORT]            listens on this machine only, and prints the address to open
"""

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from pathlib import Path

import uvicorn
from analysis import EXPORTS, Analysis
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

HERE = Path(__file__).resolve().parent
MAX_FILE = 50_000_000  # bytes
MAX_NAME = 60  # characters
MAX_QUESTION = 2_000
UPLOAD_LIMIT = 120  # seconds
MAX_ANALYSES = 8  # at a time: each has a kernel
POLICY = (
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@contextlib.asynccontextmanager
async def lifespan(app):
    with tempfile.TemporaryDirectory(prefix="data-analyst-") as uploads:
        app.state.uploads = Path(uploads)
        app.state.analyses = {}  # id -> (Analysis, the task that runs it)
        app.state.arriving = 0  # files
        yield
        tasks = [task for _, task in app.state.analyses.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def page(request):
    return FileResponse(HERE / "page/index.html", headers={"Content-Security-Policy": POLICY})


async def start(request):
    """Takes the file as the body, and its name and the question from the query."""
    if request.headers.get("content-type") != "text/csv":  # which pages of other sites cannot send here
        raise HTTPException(415, "Send the file as text/csv.")
    state = request.app.state
    analyses = state.analyses
    for id in [id for id, (_, task) in analyses.items() if task.done()]:
        shutil.rmtree(analyses.pop(id)[0].file.parent, ignore_errors=True)
    if len(analyses) + state.arriving >= MAX_ANALYSES:
        raise HTTPException(503, "Too many files are being analysed; try again in half an hour.")
    id = secrets.token_urlsafe(16)
    name = re.sub(r"[^\w.-]+", "-", request.query_params.get("name", ""))[-MAX_NAME:].strip("-.")
    analysis = Analysis(state.uploads / id / (name or "data.csv"), question_in(request))
    state.arriving += 1
    try:
        await save(request, analysis.file)
    finally:
        state.arriving -= 1
    analyses[id] = analysis, asyncio.create_task(analysis.run())
    return JSONResponse({"id": id}, 201)


async def save(request, file):
    """All of the body, or nothing of it stays."""
    file.parent.mkdir()
    size = 0
    try:
        async with asyncio.timeout(UPLOAD_LIMIT):
            with file.open("wb") as out:
                async for piece in request.stream():
                    size += len(piece)
                    if size > MAX_FILE:
                        raise HTTPException(413, f"The file is larger than {MAX_FILE // 1_000_000} MB.")
                    out.write(piece)
    except BaseException as error:
        shutil.rmtree(file.parent, ignore_errors=True)
        if isinstance(error, (TimeoutError, ClientDisconnect)):
            raise HTTPException(408, "The file did not come in time.") from error
        raise


async def ask(request):
    analysis = analysis_of(request)
    if analysis.ended:
        raise HTTPException(410, "This analysis has ended. Upload the file again to go on.")
    analysis.questions.put_nowait(question_in(request))
    return Response(status_code=202)


async def events(request):
    """What happened so far and what happens next. A browser that lost the connection says where it was."""
    seen = request.headers.get("last-event-id", "")
    is_number = seen.isdecimal() and len(seen) < 10
    following = analysis_of(request).follow(int(seen) + 1 if is_number else 0)
    return EventSourceResponse({"id": str(n), "data": json.dumps(event)} async for n, event in following)


async def export(request):
    name = request.path_params["name"]
    if name not in (exports := analysis_of(request).exports):
        raise HTTPException(404)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(exports[name], media_type=EXPORTS[name], headers=headers)


def analysis_of(request):
    known = request.app.state.analyses.get(request.path_params["id"])
    if not known:
        raise HTTPException(404, "No such analysis.")
    return known[0]


def question_in(request):
    question = request.query_params.get("question", "").strip()[:MAX_QUESTION]
    return question or "What is in this file, and what stands out?"


app = Starlette(
    routes=[
        Route("/", page),
        Mount("/page", StaticFiles(directory=HERE / "page")),
        Route("/analyses", start, methods=["POST"]),
        Route("/analyses/{id}/questions", ask, methods=["POST"]),
        Route("/analyses/{id}/events", events),
        Route("/analyses/{id}/{name}", export),
    ],
    middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    lifespan=lifespan,
)

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8421
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        sys.exit(f"Cannot listen on port {port}: {os.strerror(error.errno)}. Name another: app.py PORT")
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
