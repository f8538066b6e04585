"""Wildcards of protected tags (protected tags reference, section 7)."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from project_service.domain.repositories.wildcards import matches

MAX_SECONDS = 0.5
LONG_LENGTH = 100_000
few_letters = st.text(alphabet="ab/*", max_size=12)
any_letters = st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from("*.\n ["), max_size=8)


def matches_by_definition(pattern: str, name: str) -> bool:
    """Reference implementation: a table of the prefixes of the name that each prefix of the pattern matches."""
    if not pattern.strip() or not name:
        return False
    covered = [True] + [False] * len(name)
    for letter in pattern:
        if letter == "*":
            covered = [any(covered[: end + 1]) for end in range(len(name) + 1)]
        else:
            covered = [False] + [covered[end] and name[end] == letter for end in range(len(name))]
    return covered[-1]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("v1.0", "v1.0"),
        ("v1.*", "v1.0"),
        ("v1.*", "v1.1"),
        ("v1.*", "v1."),
        ("production/*", "production/some-tag"),
        ("production/*", "production/a/b"),
        ("*-stable", "1-0-stable"),
        ("*-stable", "-stable"),
        ("*", "x"),
        ("*", "a/b"),
        ("**", "x"),
        ("v*", "v*"),
        ("a*b*c", "abc"),
        ("a*b*c", "aXbYbZc"),
        ("*a*", "a"),
        ("*ab*ab", "abab"),
        ("r[0-9]*", "r[0-9]7"),
        ("größe-*", "größe-1"),
        ("a*", "a\nb"),
        ("**************a", "aaaaaaaaaaaaaaaa"),
    ],
)
def test_a_wildcard_matches(pattern, name):
    assert matches(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("v1.0", "v1.0.1"),
        ("v1.0", "V1.0"),
        ("v1.0", "v1x0"),
        ("v1.*", "v2.0"),
        ("v1.*", "v10"),
        ("v1.*", "V1.0"),
        ("production/*", "staging/some-tag"),
        ("production/*", "production"),
        ("*-stable", "stable"),
        ("*", ""),
        ("", "x"),
        ("", ""),
        (" ", " "),
        ("\t", "\t"),
        ("ab*ba", "aba"),
        ("a*a", "a"),
        ("*ab*ab", "ab"),
        ("a*b*c", "acb"),
        ("r?", "rx"),
        ("r[0-9]", "r7"),
        ("v1", "v1\n"),
        ("gr\u00f6\u00dfe", "gro\u0308\u00dfe"),
    ],
)
def test_a_wildcard_does_not_match(pattern, name):
    assert not matches(pattern, name)


@given(few_letters, few_letters)
def test_a_wildcard_matches_as_defined(pattern, name):
    assert matches(pattern, name) == matches_by_definition(pattern, name)


@given(any_letters, any_letters)
def test_other_characters_of_a_wildcard_are_literal(pattern, name):
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    expected = bool(pattern.strip() and name and re.fullmatch(expression, name, re.DOTALL))

    assert matches(pattern, name) == expected


@given(few_letters, st.lists(few_letters.map(lambda text: text.replace("*", "x"))))
def test_stars_match_any_characters(pattern, fillings):
    pieces = pattern.split("*")
    fillings = (fillings + [""] * len(pieces))[: len(pieces) - 1]
    name = "".join(piece + filling for piece, filling in zip(pieces, [*fillings, ""], strict=True))

    assert matches(pattern, name) == bool(pattern and name)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("**************a", "a" * LONG_LENGTH, True),
        ("**************a", "a" * LONG_LENGTH + "b", False),
        ("*a" * 50 + "*b", "a" * LONG_LENGTH, False),
        ("*a" * 50 + "*b", "a" * LONG_LENGTH + "b", True),
        ("*a" * 50_000 + "*b", "a" * LONG_LENGTH, False),
        ("*ab" * 50 + "*c", "ab" * (LONG_LENGTH // 2), False),
        ("*" * LONG_LENGTH, "a" * LONG_LENGTH, True),
        ("*" + "a" * 5_000 + "b*", "a" * LONG_LENGTH, False),
        ("*" + "a" * 90 + "b*c", "a" * LONG_LENGTH, False),
        ("a" * LONG_LENGTH, "a" * LONG_LENGTH, True),
    ],
    ids=range(10),
)
def test_wildcards_match_in_linear_time(pattern, name, expected):
    started = time.process_time()

    found = matches(pattern, name)

    assert found == expected
    assert time.process_time() - started < MAX_SECONDS
