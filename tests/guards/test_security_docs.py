"""The security documents: the tests that they name exist, and every point of the standard has an answer."""

from __future__ import annotations

import re

import pytest

from tests.guards.test_docs import DOCS, REPOSITORY

TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROW = re.compile(r"^\| ([\d., –]+) \| (met|partly met|not met|not applicable) \| (.+) \|$", re.MULTILINE)
# the last point of level 1 or 2 in each section of ASVS 5.0.0; they are numbered from 1 without gaps
POINTS = {
    "1": {1: 2, 2: 9, 3: 11, 4: 3, 5: 2},
    "2": {1: 3, 2: 3, 3: 4, 4: 1},
    "3": {2: 2, 3: 4, 4: 6, 5: 5, 7: 2},
    "4": {1: 3, 2: 1, 3: 2, 4: 4},
    "5": {1: 1, 2: 3, 3: 2, 4: 3},
    "6": {1: 3, 2: 11, 3: 3, 4: 4, 5: 5, 6: 3, 8: 4},
    "7": {1: 3, 2: 4, 3: 2, 4: 5, 5: 2, 6: 2},
    "8": {1: 2, 2: 3, 3: 1, 4: 1},
    "9": {1: 3, 2: 4},
    "11": {1: 2, 2: 3, 3: 3, 4: 4, 5: 1, 6: 1},
    "12": {1: 3, 2: 2, 3: 4},
    "13": {1: 1, 2: 5, 3: 2, 4: 5},
    "14": {1: 2, 2: 4, 3: 3},
    "15": {1: 3, 2: 3, 3: 7},
    "16": {1: 1, 2: 5, 3: 4, 4: 3, 5: 3},
}


@pytest.mark.parametrize("name", ["security.md", "asvs.md"])
def test_every_named_test_exists(name):
    named = TEST.findall((DOCS / name).read_text())

    missing = [
        (path, test) for path, test in named if f"def {test}(" not in (REPOSITORY / path).read_text(encoding="utf-8")
    ]
    assert (missing, len(named) > 10) == ([], True)


def test_every_requirement_of_the_standard_has_one_answer():
    answered = [point for points, _, _ in ROW.findall((DOCS / "asvs.md").read_text()) for point in expanded(points)]

    wanted = {
        f"{chapter}.{section}.{point}"
        for chapter, sections in POINTS.items()
        for section, last in sections.items()
        for point in range(1, last + 1)
    }
    assert sorted(answered) == sorted(wanted)


def expanded(points):
    """Return every point of a list with ranges."""
    for part in points.split(", "):
        first, _, last = part.partition("–")
        section, _, number = first.rpartition(".")
        end = int((last or first).rpartition(".")[2])
        yield from (f"{section}.{point}" for point in range(int(number), end + 1))
