"""Highlighting of source code (``docs/decisions/highlighting.md``)."""

from __future__ import annotations

import html
import re
import resource

import pytest
from pygments.lexers import get_lexer_by_name

from project_service.kit.texts import highlighting

SOURCES = {
    "python": ['"""Some', 'text."""', "", "def f(a: int) -> str:", "    return f'<{a}>' + \"&\"", "\tx = 1 # é 🎉"],
    "javascript": ["const a = `b", "${c} </script>`;", "/* d", "*/ a < 1 && b"],
    "html": ["<!doctype html>", "<script>if (a < b) alert('x')</script>", "<p title=x>&amp;"],
}


@pytest.mark.parametrize(("language", "lines"), SOURCES.items())
def test_highlighted_lines_are_the_same_text(language, lines):
    found = highlighting.highlight(lines, language)

    assert [html.unescape(re.sub(r"</?span[^>]*>", "", line)) for line in found] == lines
    assert any('<span class="hl-' in line for line in found)


def test_every_language_has_a_lexer():
    assert all(get_lexer_by_name(name) for name in highlighting.LANGUAGES)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.py", "python"),
        ("A.PY", "python"),
        ("Makefile", "make"),
        ("Dockerfile", "docker"),
        ("py", None),
        ("a.x", None),
    ],
)
def test_the_language_is_chosen_by_file_name(name, language):
    assert highlighting.language_of(name) == language


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(
    ("language", "line"),
    [("ocaml", '"' * 2000), ("terraform", "&" * 2000), ("c", "(" * 2000), ("cpp", "[" * 2000), ("bash", "$(" * 1000)],
)
def test_any_text_is_processed_in_linear_time(language, line):
    before = processor_seconds()

    found = highlighting.highlight([line] * 200, language)

    assert processor_seconds() - before < 0.35  # the limit and the start of the process
    assert len(found) <= 200


def test_large_texts_and_long_lines_are_not_highlighted():
    assert highlighting.highlight(["x = 1"] * 100_000, "python") == []
    assert highlighting.highlight(["x" * 6000], "python") == []
