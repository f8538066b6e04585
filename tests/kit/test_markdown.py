"""Texts as HTML (``docs/decisions/markdown.md``)."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from project_service.kit import markdown

KNOWN = {
    *(
        "div",
        "p",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "pre",
        "code",
        "em",
        "strong",
        "s",
        "a",
        "br",
    ),
    *("hr", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"class", "href", "rel", "title", "start"}
ADDRESS = re.compile(r"(?:https?|mailto):|(?![a-z][a-z0-9+.-]*:)", re.IGNORECASE)


class Reader(HTMLParser):
    """Sees which elements and attributes there are."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


@pytest.fixture(autouse=True)
def page(app):
    """The page that is being made."""
    with app.test_request_context():
        yield


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("As **soon** as `possible`.", "<p>As <strong>soon</strong> as <code>possible</code>.</p>"),
        ("# Title", "<h3>Title</h3>"),
        ("###### Least", "<h6>Least</h6>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("~~no~~", "<p><s>no</s></p>"),
        ("<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>"),
        ("[x](/a)", '<p><a href="/a" rel="nofollow noopener noreferrer">x</a></p>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](data:text/html,y)", "<p>[x](data:text/html,y)</p>"),
        (
            '![a "b"](https://e.org/x.png)',
            '<p><a href="https://e.org/x.png" rel="nofollow noopener noreferrer">a &#34;b&#34;</a></p>',
        ),
    ],
)
def test_a_text_becomes_this(text, html):
    assert markdown.block(text) == f'<div class="prose">{html}\n</div>'


def test_columns_are_aligned_without_styles():
    html = markdown.block("|a|b|\n|--:|---|\n|1|2|")

    assert ('<td class="aligned-right">1</td>' in html, "<td>2</td>" in html, "style" in html) == (True, True, False)


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_nothing_is_nothing(text):
    assert markdown.block(text) == ""


def test_a_line_has_no_paragraph():
    assert markdown.line("changed the status to **Resolved** <b>") == (
        "changed the status to <strong>Resolved</strong> &lt;b&gt;"
    )


parts = st.sampled_from(
    [*"[]()<>!*_`~#|-:\\'\"& \n\t=", "http:", "javascript:", "a", "](", "```", "&#x6a;", "<a href=", "1. "]
)


@given(st.text(max_size=40) | st.lists(parts, max_size=40).map("".join))
def test_whatever_is_written_only_known_elements_and_addresses_come_out(text):
    found = Reader(markdown.block(text) + markdown.line(text))

    assert found.tags <= KNOWN
    assert {name for name, _ in found.attributes} <= ATTRIBUTES
    assert all(ADDRESS.match(value or "") for name, value in found.attributes if name == "href")


def test_a_page_reads_so_much_and_shows_the_rest_as_it_was_written(monkeypatch):
    monkeypatch.setattr(markdown, "LARGEST_PAGE", 10)

    shown = [markdown.block("*a* <b>"), markdown.block("*b* <b>"), markdown.line("*c*"), markdown.line("*d*")]

    assert shown == [
        '<div class="prose"><p><em>a</em> &lt;b&gt;</p>\n</div>',
        '<div class="text">*b* &lt;b&gt;</div>',
        "<em>c</em>",
        "*d*",
    ]


@pytest.mark.parametrize("text", ["[" * 20_000, "![" * 5_000, "[" * 9_000 + "]" * 9_000 + "(x)", "[a](<" * 4_000])
def test_brackets_without_end_take_no_time(text):
    began = time.process_time()

    for _ in range(20):
        markdown.block(text)

    assert time.process_time() - began < 5
