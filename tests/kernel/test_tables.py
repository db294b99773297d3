"""pandas: text with the shape, bounded HTML, and no delay for a large frame."""

import pytest

pytestmark = pytest.mark.needs("pandas")


def test_small_frame_says_its_shape(kernel):
    result = kernel.run("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': [3, 4]})")
    assert result.result == "   a  b\n0  1  3\n1  2  4\n\n[2 rows x 2 columns]"
    assert "<table" in result.displays[0]["data"]["text/html"]


def test_a_million_rows(kernel):
    kernel.run("import pandas as pd, numpy as np")
    before = kernel.cpu()
    result = kernel.run("pd.DataFrame(np.random.rand(10**6, 3))")
    assert result.result.endswith("[1000000 rows x 3 columns]")
    assert kernel.cpu() - before < 2 and result.seconds < 30
    assert sum(len(text) for text in result.displays[0]["data"].values()) < 40_000


def test_series_and_wide_frames(kernel):
    kernel.run("import pandas as pd, numpy as np")
    assert "dtype: int64" in kernel.run("pd.Series([1, 2])").result
    wide = kernel.run("pd.DataFrame(np.zeros((2, 14)), columns=[f'column{i}' for i in range(14)])").result
    assert max(map(len, wide.splitlines())) > 100


def test_the_users_options_count(kernel):
    kernel.run("import pandas as pd; pd.set_option('display.width', 60)")
    text = kernel.run("pd.DataFrame({f'column{i}': [0.0] for i in range(14)})").result
    assert max(map(len, text.splitlines())) <= 60
