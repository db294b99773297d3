"""What the tests of the documentation share: its pages, and the program that they are about."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))


@pytest.fixture(scope="session")
def binary() -> str:
    path = os.environ.get("PYKEEP_BINARY")
    if not path:
        pytest.skip("PYKEEP_BINARY does not name a program")
    return path
