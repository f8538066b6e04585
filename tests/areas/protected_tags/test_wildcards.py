"""Wildcards of protected tags (protected tags reference, section 7)."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from project_service.domain.repositories.wildcards import matches

SOON_SECONDS = 0.5
LONG = 100_000
few_letters = st.text(alphabet="ab/*", max_size=12)
any_letters = st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from("*.\n ["), max_size=8)


def slowly(pattern: str, name: str) -> bool:
    """The definition, a table of what each beginning of the pattern covers of each beginning of the name."""
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
    assert matches(pattern, name) == slowly(pattern, name)


@given(any_letters, any_letters)
def test_other_characters_of_a_wildcard_are_literal(pattern, name):
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    wanted = bool(pattern.strip() and name and re.fullmatch(expression, name, re.DOTALL))

    assert matches(pattern, name) == wanted


@given(few_letters, st.lists(few_letters.map(lambda text: text.replace("*", "x"))))
def test_stars_match_any_characters(pattern, fillings):
    pieces = pattern.split("*")
    fillings = (fillings + [""] * len(pieces))[: len(pieces) - 1]
    name = "".join(piece + filling for piece, filling in zip(pieces, [*fillings, ""], strict=True))

    assert matches(pattern, name) == bool(pattern and name)


@pytest.mark.parametrize(
    ("pattern", "name", "covered"),
    [
        ("**************a", "a" * LONG, True),
        ("**************a", "a" * LONG + "b", False),
        ("*a" * 50 + "*b", "a" * LONG, False),
        ("*a" * 50 + "*b", "a" * LONG + "b", True),
        ("*a" * 50_000 + "*b", "a" * LONG, False),
        ("*ab" * 50 + "*c", "ab" * (LONG // 2), False),
        ("*" * LONG, "a" * LONG, True),
        ("*" + "a" * 5_000 + "b*", "a" * LONG, False),
        ("*" + "a" * 90 + "b*c", "a" * LONG, False),
        ("a" * LONG, "a" * LONG, True),
    ],
    ids=range(10),
)
def test_wildcards_match_in_linear_time(pattern, name, covered):
    started = time.process_time()

    found = matches(pattern, name)

    assert found == covered
    assert time.process_time() - started < SOON_SECONDS
