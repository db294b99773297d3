"""docs/tools.md is what the server itself says, as docs/reference.py writes it."""

import importlib.util

from pages import ROOT


def reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs/reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_the_servers(binary):
    made = reference()
    assert made.PAGE.read_text(encoding="utf-8") == made.page(
        binary
    ), "python3 docs/reference.py build/release/pykeep writes it anew"
