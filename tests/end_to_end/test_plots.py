"""Each figure is shown exactly once, whatever a cell does to matplotlib's settings. (peers 3.10)"""

import pytest

pytestmark = pytest.mark.needs("matplotlib", "numpy")

P = "import matplotlib.pyplot as plt\n"


@pytest.mark.parametrize(
    "needs, code",
    [
        ("", "import matplotlib; matplotlib.use('Agg')\n" + P + "plt.plot([1, 2]); plt.show()"),  # (a)
        ("", P + "plt.switch_backend('agg'); plt.plot([1]); plt.show()"),
        ("", "%matplotlib inline\n" + P + "plt.plot([1]); None"),
        ("", P + "plt.ioff(); plt.plot([1]); plt.show(); plt.ion(); None"),
        ("", P + "fig, ax = plt.subplots(); ax.plot([1]); fig.show()"),
        ("", P + "fig, ax = plt.subplots(); ax.plot([1]); fig"),
        ("", P + "plt.plot([1]); plt.savefig('only.png')"),
        ("", P + "plt.plot([1]); plt.show(block=False); plt.pause(0.01)"),
        ("", P + "def library():\n    plt.plot([1]); plt.show()\nlibrary()"),
        ("", P + "plt.plot([1]); plt.gcf()"),
        ("", P + "plt.style.use('ggplot'); plt.plot([1]); plt.show(); plt.style.use('default')"),
        ("seaborn", "import seaborn as sns; sns.lineplot(x=[1, 2], y=[3, 4]); None"),
        ("seaborn", "import seaborn as sns; _ = sns.displot([1, 2, 2, 3])"),
        ("pandas", "import pandas as pd; pd.Series([1, 3]).plot(title='s'); None"),
        ("pandas", "_ = pd.DataFrame({'a': [1, 2], 'b': [2, 1]}).plot.bar()"),
        ("sympy", "import sympy; x = sympy.symbols('x'); _ = sympy.plot(x**2)"),
        ("plotly", "import plotly.express as px; px.line(x=[1, 2], y=[1, 2]).show()"),  # (c)
        ("plotly", "px.line(x=[1, 2], y=[1, 2])"),
        ("PIL", "from PIL import Image; Image.new('RGB', (30, 20), 'red').show()"),
        ("PIL", "Image.new('RGB', (30, 20), 'red')"),
    ],
)
def test_one_image(run, needs, code):
    if needs and run(f"import {needs}").is_error:
        pytest.skip(f"the kernel's Python has no {needs}")
    result = run(code)
    assert [block["type"] for block in result.content] == ["text", "image"], result.text
    assert not result.is_error and "Warning" not in result.text and "non-interactive" not in result.text
    assert run("1").text == "1"  # and it does not come again


def test_a_figure_that_was_closed_is_not_shown(run):
    assert run(P + "plt.plot([1]); plt.close()").images == []


def test_an_animation_of_displays(run):
    result = run(
        P + "from IPython.display import clear_output\n"
        "for i in range(3):\n    clear_output(wait=True); plt.plot([i]); plt.title(f'frame {i}'); plt.show()"
    )
    assert len(result.images) == 1 and "frame 2" in result.text and "frame 0" not in result.text


@pytest.mark.needs("plotly")
def test_a_plotly_figure_is_drawn_without_a_network(run):
    result = run("px.bar(x=['a', 'b'], y=[1, 2], title='漢字 and 🙂').show()")
    assert '[image "漢字 and 🙂", x: x, y: y, 700x500 px, png' in result.text
    assert "application/vnd.plotly.v1+json" in result.execution["results"][0]
