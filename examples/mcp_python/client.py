"""pykeep over the plain MCP SDK for Python: no framework, no model."""

import asyncio
import base64
import os
import shutil
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

BUILT = Path(__file__).resolve().parents[2] / "build/release/pykeep"
PYKEEP = os.environ.get("PYKEEP_BINARY") or shutil.which("pykeep") or str(BUILT)
CHART = Path(sys.argv[1] if len(sys.argv) > 1 else "chart.png")


async def run(client, code, **arguments):
    """Runs code and returns what there is to read, and the images."""
    result = await client.call_tool("run_python", {"code": code, **arguments})
    text = "\n".join(block.text for block in result.content if block.type == "text")
    images = [base64.b64decode(block.data) for block in result.content if block.type == "image"]
    print(f"> {code}\n{'error' if result.is_error else 'result'}: {text.rstrip()}")
    return result, images


async def main():
    # By URL: Client("http://127.0.0.1:8420/mcp"), with `pykeep http` running.
    async with Client(StdioServerParameters(command=PYKEEP)) as client:
        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))

        # Variables stay from call to call.
        await run(client, "import numpy as np; x = np.linspace(0, 10, 200)")
        await run(client, "print(x.mean())")

        # Every figure comes back as an image.
        _, images = await run(client, "import matplotlib.pyplot as plt; _ = plt.plot(x, np.sin(x))")
        CHART.write_bytes(images[0])
        print(f"{CHART}: {len(images[0])} bytes")

        # An exception is a result, with the traceback, and the kernel goes on.
        await run(client, "x[1000]")

        # What takes longer than `wait` goes on; its execution is in `_meta`, for programs.
        result, _ = await run(client, "import time; time.sleep(3); print('done')", wait=0.2)
        execution = result.meta["io.pykeep/execution"]["execution"]
        while result.meta["io.pykeep/execution"]["status"] == "running":
            result = await client.call_tool("wait_execution", {"execution": execution})
        print("in the end:", result.content[0].text.strip())


asyncio.run(main())
