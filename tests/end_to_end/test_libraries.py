"""The packages of the template do their work under the sandbox's limits and its system call filter."""

import pytest
from conftest import environment_in, program
from mcp_client import Client


@pytest.mark.parametrize(
    "needs, code, expected",
    [
        (
            "scipy",
            "import scipy.optimize as o; round(float(o.minimize(lambda x: (x - 3)**2, 0).x[0]), 3)",
            "3.0",
        ),
        ("scipy", "import scipy.stats as s; round(float(s.norm.cdf(0)), 2)", "0.5"),
        (
            "sklearn",
            "from sklearn.linear_model import LinearRegression as L; L().fit([[0], [1]], [1, 3]).coef_",
            "array([2.])",
        ),
        (
            "sklearn",
            "from sklearn.ensemble import RandomForestClassifier as F\n"
            "F(n_estimators=10, n_jobs=2).fit([[i] for i in range(20)], [0, 1] * 10).n_features_in_",
            "1",
        ),
        (
            "joblib",
            "from joblib import Parallel, delayed; Parallel(2)(delayed(abs)(-i) for i in range(3))",
            "[0, 1, 2]",
        ),
        (
            "pyarrow",
            "import pandas as pd; pd.DataFrame({'a': [1], 'b': ['ü']}).to_parquet('x.parquet')\n"
            "pd.read_parquet('x.parquet').values.tolist()",
            "[[1, 'ü']]",
        ),
        (
            "openpyxl",
            "pd.DataFrame({'a': [1, 2]}).to_excel('x.xlsx', index=False); pd.read_excel('x.xlsx').a.tolist()",
            "[1, 2]",
        ),
        (
            "sympy",
            "import sympy; x = sympy.symbols('x'); sympy.integrate(sympy.sin(x)**2, x)",
            "x/2 - sin(x)*cos(x)/2",
        ),
        ("tabulate", "pd.DataFrame({'a': [1]}).to_markdown(index=False)", r"'|   a |\n|----:|\n|   1 |'"),
        ("sqlite3", "import sqlite3; sqlite3.connect('t.db').execute('select 1 + 1').fetchone()", "(2,)"),
        (
            "PIL",
            "from PIL import Image; Image.new('L', (9, 9)).save('a.webp'); Image.open('a.webp').size",
            "(9, 9)",
        ),
    ],
)
def test_library(run, needs, code, expected):
    if run(f"import {needs}").is_error:
        pytest.skip(f"the kernel's Python has no {needs}")
    assert run(code).text == expected


MATMUL = """
import numpy as np
r = np.random.default_rng(1)
a, b = r.random((500, 500)), r.random((500, 500))
plain = np.zeros((500, 500))
for i in range(500):
    for k in range(500):
        plain[i] += a[i, k] * b[k]
bool(np.allclose(a @ b, plain)), sorted(name for name in __import__('os').environ if 'BLAS' in name)
"""


@pytest.mark.needs("numpy")
@pytest.mark.parametrize("passed", [{}, {"OPENBLAS_CORETYPE": "Nehalem"}], ids=["without", "with"])
def test_a_matrix_product_is_right_with_and_without_openblas_settings(run, tmp_path, passed):
    environment = {k: v for k, v in environment_in(tmp_path).items() if not k.startswith("OPENBLAS_")}
    with Client([program("PYKEEP_BINARY")], env={**environment, **passed}) as client:
        client.connect()
        result = client.call_tool("run_python", {"code": MATMUL})
    assert result.text.endswith(f"(True, {sorted(passed)})")
