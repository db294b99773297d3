"""Bytes, scripts and control characters. (peers 3.2)"""

import pytest


@pytest.mark.parametrize(
    "code, expected",
    [
        (r'import sys; _ = sys.stdout.buffer.write(b"\xff\xfe ok\n")', "\ufffd\ufffd ok\n"),  # (a)
        ('print("é漢字🙂\\u2028")', "é漢字🙂\u2028\n"),  # (b)
        ('print("\\ud800")', "\ufffd\n"),  # (d)
        ('"\\ud800"', r"'\ud800'"),
        ('print("a\\0b")', "a\ufffdb\n"),
        ('for i in range(5): print(f"{i}0%", end="\\r")', "40%"),
        ('print("\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\x1b[2K\\x1b[1Gdone")', "red  done\n"),
        ('print("\\u202e\\u0645\\u0631\\u062d\\u0628\\u0627")', "\u202e\u0645\u0631\u062d\u0628\u0627\n"),
        ("!printf '\\377 caf\\303\\251\\n'", "\ufffd café\n"),
        ("ä = 1; ä + 1", "2"),
    ],
)
def test_text(run, code, expected):
    assert run(code).text == expected
    assert run("1 + 1").text == "2"


def test_an_error_with_a_lone_surrogate(run):
    result = run('raise ValueError("\\ud800")')
    assert result.is_error and result.text.rstrip().endswith("ValueError: \ufffd")


@pytest.mark.needs("tqdm")
def test_a_progress_bar_is_its_last_state(run):  # (c)
    text = run("from tqdm import tqdm; [None for _ in tqdm(range(10000))]; None").text
    assert len(text.strip().splitlines()) <= 2 and "10000/10000" in text


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("label", ["漢字かな", "한국어", "العربية", "Ελληνικά", "🙂🚀"])
def test_labels_of_charts_have_their_characters(run, label):
    result = run(
        f"import matplotlib.pyplot as plt; plt.plot([1]); plt.title('{label}'); plt.ylabel('{label}')\nNone"
    )
    assert len(result.images) == 1
    assert f'image "{label}"' in result.text and "missing" not in result.text  # "Glyph ... missing"


def test_the_environment_asks_for_no_colours(run):
    assert run("import os; os.environ['NO_COLOR'], os.environ['TERM']").text == "('1', 'dumb')"
    assert "\x1b" not in run("!ls --color=auto /; grep --color=auto root /etc/passwd").text
