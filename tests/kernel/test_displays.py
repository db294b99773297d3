"""Displays that are no images: MIME types, ids, sizes, hostile reprs."""

import pytest


def test_mime_types_are_kept(kernel):
    result = kernel.run(
        "from IPython.display import *\n"
        "display(HTML('<b>x</b>'), Markdown('# x'), JSON({'a': [1]}), Latex('$x$'),\n"
        "        SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))"
    )
    data = [frame["data"] for frame in result.displays]
    assert data[0]["text/html"] == "<b>x</b>"
    assert data[1]["text/markdown"] == "# x"
    assert data[2]["application/json"] == '{"a": [1]}'
    assert data[3]["text/latex"] == "$x$"
    assert "<svg" in data[4]["image/svg+xml"]


def test_own_representations(kernel):
    result = kernel.run(
        "class Both:\n    def _repr_html_(self): return '<i>b</i>'\n    def __repr__(self): return 'both'\nBoth()"
    )
    assert result.displays[0]["data"] == {"text/plain": "both", "text/html": "<i>b</i>"}


def test_ids_and_updates(kernel):
    frames = kernel.run("h = display('a', display_id=True); h.update('b'); display('c')").displays
    assert frames[0]["display_id"] == frames[1]["display_id"] != frames[2]["display_id"]
    assert [frame["update"] for frame in frames] == [False, True, False]


@pytest.mark.parametrize(
    "code, text",
    [
        ("class A:\n    def __repr__(self): raise ValueError('no')\nA()", "its repr raised ValueError: no"),
        ("class A:\n    def _repr_html_(self): raise ValueError('no')\nA()", ".A at"),
        ("class A:\n    def __repr__(self): return 5\nA()", "its repr raised TypeError"),
        ("class A:\n    def __getattr__(self, name): raise RuntimeError('odd')\nA()", ".A at"),
    ],
)
def test_a_broken_repr_is_text(kernel, code, text):
    result = kernel.run(code)
    assert text in result.result
    assert result.done["status"] == "ok"


def test_large_values_are_bounded(kernel):
    text = kernel.run("'x' * 22_000_000").result
    assert len(text) < 65_000 and "characters left out" in text
    before = kernel.cpu()
    assert kernel.run("list(range(10**6))").seconds < 30 and kernel.cpu() - before < 2


def test_a_large_type_goes_to_a_file(kernel):
    result = kernel.run("from IPython.display import HTML\nHTML('é' * 400_000)")
    text = result.displays[0]["data"]["text/plain"]
    assert "text/html" not in result.displays[0]["data"] and "outputs/" in text
    file = text[text.index("outputs/") :].split("]")[0]
    assert (kernel.workspace / file).read_text() == "é" * 400_000


def test_odd_metadata_and_data(kernel):
    result = kernel.run(
        "from IPython.display import display\n"
        "display({'text/plain': 'x', 'application/x-y': {'k': {1, 2}}, 'a/b': None}, raw=True,\n"
        "        metadata={'image': 'no dict', 'nan': float('nan')})"
    )
    assert result.displays[0]["data"]["text/plain"] == "x"
    assert result.displays[0]["metadata"] == {}


def test_a_thousand_displays(kernel):
    assert len(kernel.run("for i in range(1000): display(i)").displays) == 1000


@pytest.mark.needs("sympy")
def test_latex_of_sympy(kernel):
    result = kernel.run("import sympy; sympy.symbols('x')**2")
    assert result.result == "x**2" and "x^{2}" in result.displays[0]["data"]["text/latex"]
