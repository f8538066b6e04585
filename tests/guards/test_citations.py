"""That citations of the reference lead to sections that exist (docs/development.md, Citations of the reference)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
REFERENCE = REPOSITORY / "docs" / "reference"
PAGES = {path.stem.replace("-", " "): path for path in REFERENCE.glob("*.md") if path.name != "README.md"}
SOURCES = [
    path
    for folder in ("project_service", "tests", "benchmarks", "docs", "deploy")
    for kind in ("*.py", "*.html", "*.js", "*.css", "*.md")
    for path in sorted((REPOSITORY / folder).rglob(kind))
    if path != Path(__file__)
]
NUMBER = r"[0-9]+(?:\.[0-9]+)?"
NUMBERS = rf"{NUMBER}(?:(?:, | and | to ){NUMBER})*"
CITATION = re.compile(rf"\breference(?:, sections? ({NUMBERS})|(?=\)))")
MAX_NAME_LENGTH = 60  # of a page, with the words before it
RANGE = re.compile(rf"({NUMBER}) to ({NUMBER})")
SECTION = re.compile(rf"^#{{2,3}} ({NUMBER})\.? ", re.MULTILINE)
BARE = re.compile(rf"\b(?<!reference, )(?<!standard, )sections? {NUMBERS}", re.IGNORECASE)
STANDARD = re.compile(r"\bRFC [0-9]+, (?=section)")
CONTINUED = re.compile(r"\s*\n\s*(?:#+ )?")


def text_of(path: Path) -> str:
    """The text of a file on one line: citations in docstrings and comments may be broken into several."""
    return CONTINUED.sub(" ", path.read_text())


def page_before(words: str) -> str | None:
    """The name of the page that some words end with; the longest one."""
    words = f" {re.split(r'[^A-Za-z ]', words)[-1].strip().lower()}"
    return max((name for name in PAGES if words.endswith(f" {name}")), key=len, default=None)


def numbers_in(text: str) -> set[str]:
    """The sections that a citation names; a range of whole numbers names all of them."""
    found = set(re.findall(NUMBER, text))
    for first, last in RANGE.findall(text):
        if first.isdigit() and last.isdigit():
            found |= {str(number) for number in range(int(first), int(last) + 1)}
    return found


def sections_of(page: str) -> set[str]:
    return set(SECTION.findall(PAGES[page].read_text()))


def unresolved(path: Path) -> Iterator[str]:
    """The citations of a file whose page or section does not exist."""
    text = text_of(path)
    for citation in CITATION.finditer(text):
        before = text[max(0, citation.start() - MAX_NAME_LENGTH) : citation.start()]
        page, numbers = page_before(before), numbers_in(citation[1] or "")
        if page is None and not numbers:
            continue  # the word by itself
        if page is None or numbers - sections_of(page):
            yield f"{before[-20:]}{citation[0]}"


def test_every_cited_section_exists() -> None:
    found = {str(path.relative_to(REPOSITORY)): list(unresolved(path)) for path in SOURCES}

    assert {path: citations for path, citations in found.items() if citations} == {}


def test_sections_are_cited_with_their_page() -> None:
    """Pages themselves say "section 2" of their own, and other documents have sections too."""
    texts = {path: STANDARD.sub("standard, ", text_of(path)) for path in SOURCES if path.suffix != ".md"}
    found = {str(path.relative_to(REPOSITORY)): BARE.findall(text) for path, text in texts.items()}

    assert {path: citations for path, citations in found.items() if citations} == {}


@pytest.mark.parametrize("page", PAGES)
def test_the_sections_of_a_page_have_ascending_numbers(page: str) -> None:
    numbers = [tuple(map(int, number.split("."))) for number in SECTION.findall(PAGES[page].read_text())]

    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_where_its_rules_come_from(page: str) -> None:
    assert re.search(r"\*(?:From|Own|Our own)\b", PAGES[page].read_text()) or "is our own" in PAGES[page].read_text()
