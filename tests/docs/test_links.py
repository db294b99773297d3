"""Every link between pages, and to every picture, leads somewhere."""

import re

import pytest
from pages import PAGES, ROOT

MORE = ["ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md", "tests/fake_pandastack/README.md"]
EXAMPLES = sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("examples/*/README.md"))


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```|^    .*?$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def links_of(page: str) -> list[str]:
    text = without_code((ROOT / page).read_text(encoding="utf-8"))
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def anchors_of(page) -> set[str]:
    """As forges make them of headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [*PAGES, *MORE, *EXAMPLES])
def test_links_lead_somewhere(page):
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


def test_every_page_of_docs_is_linked_from_the_readme_or_another():
    linked = {link.partition("#")[0].split("/")[-1] for page in [*PAGES, *MORE] for link in links_of(page)}
    code = " ".join((ROOT / page).read_text(encoding="utf-8") for page in [*PAGES, *MORE])
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name in linked or f"docs/{page.name}" in code, page


def test_every_picture_is_shown():
    linked = {link.split("/")[-1] for page in [*PAGES, *MORE, *EXAMPLES] for link in links_of(page)}
    assert {image.name for image in (ROOT / "docs/images").iterdir()} <= linked
