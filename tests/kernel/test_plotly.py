"""plotly: a PNG where kaleido can make one, else text; the JSON always."""

import json

import conftest
import pytest

pytestmark = pytest.mark.needs("plotly")
FIGURE = "import plotly.graph_objects as go\nfigure = go.Figure(go.Scatter(y=[1, 3, 2]))\nfigure.update_layout(title='T')\n"


@pytest.mark.parametrize("code", ["figure", "figure.show()", "import plotly.io; plotly.io.show(figure)"])
def test_once_with_its_json(kernel, code):
    result = kernel.run(FIGURE.replace("\nfigure.update", "\n_ = figure.update") + code, timeout=60)
    (frame,) = result.displays
    spec = json.loads(frame["data"]["application/vnd.plotly.v1+json"])
    assert spec["data"][0]["type"] == "scatter"
    if conftest.has("kaleido"):
        assert frame["blobs"][0][0] == "image/png"
        assert frame["metadata"]["image"]["title"] == "T"
    else:
        assert "no image of this plotly figure" in frame["data"]["text/plain"]


def test_no_renderer_stays_after_the_cell(kernel):
    kernel.run(FIGURE + "figure.show()", timeout=60)
    children = "import os\n!ps -o comm= --ppid {os.getpid()}"
    assert kernel.run(children).out in ("sh\n", "sh\nps\n", "ps\n")
