"""matplotlib: each figure exactly once, in order, whatever the user does."""

import pytest

pytestmark = pytest.mark.needs("matplotlib")
PLT = "import matplotlib.pyplot as plt\n"


@pytest.mark.parametrize(
    "name, code, kinds",
    [
        ("show", "plt.plot([1,2]); plt.show()", ["image"]),
        (
            "text between",
            "plt.plot([1,2]); plt.show(); print('mid'); plt.plot([3,1]); plt.show()",
            ["image", "out", "image"],
        ),
        ("at the end of the cell", "plt.plot([1,2]);", ["image"]),
        ("two at the end", "plt.figure(); plt.plot([1]); plt.figure(); plt.plot([2]);", ["image"] * 2),
        ("savefig only", "plt.plot([1,2]); plt.savefig('a.png')", ["image"]),
        ("savefig and show", "plt.plot([1,2]); plt.savefig('a.png'); plt.show()", ["image"]),
        ("as the result", "fig, ax = plt.subplots(); ax.plot([1]); fig", ["image"]),
        ("display", "fig, ax = plt.subplots(); ax.plot([1]); display(fig)", ["image"]),
        ("display and show", "fig, ax = plt.subplots(); ax.plot([1]); display(fig); plt.show()", ["image"]),
        ("changed after display", "fig, ax = plt.subplots(); display(fig); ax.plot([1]);", ["image"] * 2),
        ("fig.show", "fig, ax = plt.subplots(); ax.plot([1]); fig.show()", ["image"]),
        ("closed by the user", "plt.plot([1]); plt.close()", []),
        ("empty", "plt.figure();", []),
        ("error after it", "plt.plot([1]); 1/0", ["image", "error"]),
        ("ioff", "plt.ioff(); plt.plot([1]); plt.show()", ["image"]),
        ("ion", "plt.ion(); plt.plot([1]); plt.pause(0.01)", ["image"]),
        ("Agg", "import matplotlib; matplotlib.use('Agg'); plt.plot([1]); plt.show()", ["image"]),
        ("switch_backend", "plt.switch_backend('agg'); plt.plot([1]); plt.show()", ["image"]),
        ("magic", "%matplotlib inline\nplt.plot([1]); plt.show()", ["image"]),
        ("config", "%config InlineBackend.figure_format='retina'\nplt.plot([1]); plt.show()", ["image"]),
        ("shown again by a later cell", "fig", ["image"]),
    ],
)
def test_once(kernel, name, code, kinds):
    if name == "shown again by a later cell":
        kernel.run(PLT + "fig, ax = plt.subplots(); ax.plot([1])")
    result = kernel.run(PLT + code)
    assert result.kinds == kinds, result.traceback
    assert result.err == ""
    assert not any(blob[1][:4] != b"\x89PNG" for blob in result.images)


@pytest.mark.parametrize("code", ["plt.title('x')", "plt.plot([1, 2])", "plt.figure().gca()"])
def test_what_plotting_calls_return_is_not_shown_beside_the_figure(kernel, code):
    kernel.run(PLT + "plt.close('all')")
    result = kernel.run(PLT + "plt.plot([1]); " + code)
    assert set(result.kinds) == {"image"}
    assert "Axes" in kernel.run("ax = plt.figure().gca(); plt.close(); ax").result  # nothing is drawn


def test_agg_before_pyplot(fresh):
    code = "import matplotlib; matplotlib.use('Agg')\n" + PLT + "plt.plot([1]); plt.show()"
    result = fresh.run(code)
    assert (result.kinds, result.err) == (["image"], "")


@pytest.mark.needs("pandas")
def test_pandas_plot(kernel):
    assert kernel.run("import pandas as pd\npd.Series([1, 2]).plot();").kinds == ["image"]


@pytest.mark.needs("seaborn")
def test_seaborn(kernel):
    code = "import seaborn as sns\nsns.set_theme(); sns.scatterplot(x=[1, 2], y=[3, 4]);"
    assert kernel.run(code).kinds == ["image"]


@pytest.mark.needs("sympy")
def test_sympy(kernel):
    code = "import sympy\nx = sympy.symbols('x')\nsympy.plot(x**2);"
    assert kernel.run(code).kinds == ["image"]


def test_says_what_it_shows(kernel):
    code = PLT + "plt.plot([1]); plt.title('Growth'); plt.xlabel('year'); plt.ylabel('people'); plt.show()"
    (frame,) = kernel.run(code).displays
    about = frame["metadata"]["image"]
    assert (about["title"], about["axes"]) == ("Growth", "x: year, y: people")
    assert 300 < about["width"] < 800 and 300 < about["height"] < 800
    assert (kernel.workspace / about["file"]).read_bytes()[:4] == b"\x89PNG"
    assert len(frame["blobs"][0][1]) < 60_000


@pytest.mark.needs("numpy")
def test_a_huge_figure_is_reduced_and_its_original_kept(kernel):
    code = PLT + (
        "import numpy as np\nplt.figure(figsize=(30, 20), dpi=300)\n"
        "plt.imshow(np.random.rand(2000, 2000)); plt.show()"
    )
    before = kernel.cpu()
    result = kernel.run(code, timeout=180)
    (frame,) = result.displays
    about = frame["metadata"]["image"]
    assert len(frame["blobs"][0][1]) <= 225_000
    assert max(about["width"], about["height"]) <= 1568 and about["reduced"]
    assert (kernel.workspace / about["file"]).stat().st_size > 1_000_000
    assert kernel.cpu() - before < 15


def test_what_cannot_be_drawn_is_an_error(kernel):
    result = kernel.run(PLT + "plt.title(r'$\\frac{1}$'); plt.plot([1]); plt.show()")
    assert result.error["name"] == "ValueError" and result.images == []
    assert kernel.run("1+1").kinds == ["result"]


def test_an_animation_shows_its_last_frame(kernel):
    code = PLT + (
        "from IPython.display import clear_output\n"
        "for i in range(3):\n    clear_output(wait=True); plt.plot([i]); plt.show()"
    )
    frames = kernel.run(code).displays
    assert len({frame["display_id"] for frame in frames}) == 1
    assert [frame["update"] for frame in frames] == [False, True, True]


def test_cjk_has_a_font_where_one_is_installed(kernel):
    names = kernel.run(
        PLT + "from matplotlib import font_manager as fm\nprint({f.name for f in fm.fontManager.ttflist})"
    ).out
    if "WenQuanYi" not in names and "Noto Sans CJK" not in names:
        pytest.skip("no CJK font on this machine")
    result = kernel.run(PLT + "plt.plot([1]); plt.title('漢字 é 한글'); plt.show()")
    assert (result.kinds, result.err) == (["image"], "")
