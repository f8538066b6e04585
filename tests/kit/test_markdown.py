"""Texts as HTML (``docs/decisions/markdown.md``)."""

from __future__ import annotations

import random
import re
import resource
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from flask import g
from hypothesis import given
from hypothesis import strategies as st

from project_service.access.references.text_references import TextReferences
from project_service.domain.projects import Project
from project_service.kit.texts import markdown, text_links

NAMES = {"class", "rel", "loading", "referrerpolicy", "type", "disabled", "tabindex"}
ADDRESS = re.compile(r"(?:https?|mailto):|(?![a-z][a-z0-9+.-]*:)", re.IGNORECASE)
IMAGE = re.compile(r"https:|/(?![/\\])", re.IGNORECASE)
REL = 'rel="nofollow noopener noreferrer"'


class Reader(HTMLParser):
    """Sees which elements and attributes there are."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


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
        ("~~no~~", "<p><del>no</del></p>"),
        ("<b>bold</b>", "<p><b>bold</b></p>"),
        ('<h1 align="center">A</h1>', '<h3 align="center">A</h3>'),
        ("https://e.org/a", f'<p><a href="https://e.org/a" {REL}>https://e.org/a</a></p>'),
        ("[x](/a)", f'<p><a href="/a" {REL}>x</a></p>'),
        ("[x](javascript:alert(1))", f"<p><a {REL}>x</a></p>"),
        ("[x](data:text/html,y)", f"<p><a {REL}>x</a></p>"),
        ('![a "b"](http://e.org/x.png)', f'<p><a href="http://e.org/x.png" {REL}>a "b"</a></p>'),
        ("<details><summary>S</summary>\n\nT\n\n</details>", "<details><summary>S</summary>\n<p>T</p>\n</details>"),
        ('<p id="a" style="x" onclick="x">T</p>', "<p>T</p>"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ],
)
def test_markdown_is_rendered_as_html(text, html):
    assert markdown.block(text) == f'<div class="prose">{html}\n</div>'


def test_task_lists_have_checkboxes_that_cannot_be_changed():
    boxes = Reader(markdown.block('- [x] a\n- [ ] b\n\n<input type="password" name="p" checked>')).elements

    wanted = {"type": "checkbox", "disabled": ""}
    assert [element for name, element in boxes if name == "input"] == [
        wanted | {"checked": ""},
        wanted,
        wanted | {"checked": ""},
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![a](https://e.org/x.png)", "https://e.org/x.png"),
        ("![a](/uploads/x.png)", "/uploads/x.png"),
        ('<img src="HTTPS://e.org/x.png" onerror="x">', "HTTPS://e.org/x.png"),
        ("![a](x.png)", None),
        ("![a](//e.org/x.png)", None),
        ("<img src='/\\e.org/x.png'>", None),
        ("![a](data:image/png;base64,AA==)", None),
    ],
)
def test_images_come_from_this_server_or_by_https(text, shown):
    [(_, image)] = [element for element in Reader(markdown.block(text)).elements if element[0] == "img"]

    assert (image.get("src"), image["loading"], image["referrerpolicy"]) == (shown, "lazy", "no-referrer")


def test_columns_are_aligned_without_styles():
    html = markdown.block("|a|b|\n|--:|---|\n|1|2|")

    assert ('<td align="right">1</td>' in html, "<td>2</td>" in html, "style" in html) == (True, True, False)


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_an_empty_text_renders_to_nothing(text):
    assert markdown.block(text) == ""


def test_inline_markdown_has_no_paragraph():
    assert markdown.line("changed the status to **Resolved** <b>") == (
        "changed the status to <strong>Resolved</strong> &lt;b&gt;"
    )


parts = st.sampled_from(
    [*"[]()<>!*_`~#|-:\\'\"& \n\t=", "http:", "javascript:", "a", "](", "```", "&#x6a;", "<a href=", "1. "]
)


@given(st.text(max_size=40) | st.lists(parts, max_size=40).map("".join))
def test_any_text_yields_only_allowed_elements_and_urls(text):
    for name, attributes in Reader(markdown.block(text) + markdown.line(text)).elements:
        assert name in markdown.ELEMENTS
        assert set(attributes) <= NAMES.union(*markdown.ATTRIBUTES.values())
        assert ADDRESS.match(attributes.get("href") or "")
        assert "src" not in attributes or IMAGE.match(attributes["src"] or "")


def test_a_page_renders_a_limited_amount_and_shows_the_rest_as_text(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_PAGE_CHARACTERS", 9)

    shown = [markdown.block("*a* b\n\n*b* <b>"), markdown.line("*c*"), markdown.line("*d*")]

    rest = f'<p class="muted">{markdown.UNFORMATTED}</p><div class="text">\n*b* &lt;b&gt;</div>'
    assert shown == [
        f'<div class="prose"><p><em>a</em> b</p>\n</div>{rest}',
        "<em>c</em>",
        "*d*",
    ]


def test_a_table_whose_html_is_too_long_is_shown_as_text():
    html = markdown.block("|" * 500 + "a\n" + "|-" * 500 + "\n" + "a\n" * 1_000)

    assert (markdown.UNFORMATTED in html, "<td>" in html) == (True, False)


def test_a_long_prose_text_is_rendered():
    text = "Some *prose* with words that go on for a while, and a [link](http://e.org) or `code`.\n\n" * 250

    assert "</p>\n</div>" in markdown.block(text)[-20:]


def test_deeply_nested_markdown_is_shown_as_text():
    shown = [markdown.block(f"first\n\n{marker * 100}deep") for marker in ("> ", "- ", "1. ")]

    assert [html.count(markdown.UNFORMATTED) for html in shown] == [1, 1, 1]


def test_html_that_would_be_repeated_in_every_paragraph_is_shown_as_text():
    html = markdown.block("".join(f"<b id={number}>" for number in range(1_000)) + "<p>x" * 1_000)

    assert (markdown.UNFORMATTED in html, len(html) < 50_000) == (True, True)


def test_a_text_of_more_markup_than_a_page_may_have_is_shown_as_text(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_MARKUP", 9)

    shown = [markdown.UNFORMATTED in markdown.block(text) for text in ("*a*", "&" * 10, "|a|\n|-|\n" * 2)]

    assert shown == [False, True, True]


def resident_megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


def test_rendering_leaves_no_memory_behind():
    text = "|a|\n|-|\n" * 30_000
    markdown._to_html(text, lines=False)
    before = resident_megabytes()

    for _ in range(8):
        markdown._to_html(text, lines=False)

    assert resident_megabytes() - before < 100


def test_texts_that_are_shown_as_they_were_written_use_what_the_page_may_have(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_MARKUP", 4)
    monkeypatch.setattr(markdown, "MAX_PAGE_CHARACTERS", 30)

    shown = [markdown.UNFORMATTED in markdown.block(text) for text in ("&" * 25, "a much longer text")]

    assert shown == [True, True]


@pytest.mark.parametrize(
    ("html", "linked"),
    [
        ("a <b>b</b> c", "A <b>B</b> C"),
        ('<a href="x">a</a> <code>b <i>c</i></code> d', '<a href="x">a</a> <code>b <i>c</i></code> D'),
        ('<img alt="a > b &lt; c"> d &amp; e', '<img alt="a > b &lt; c"> D &amp; E'),
        ("<abbr>a</abbr> a < b & c", "<abbr>A</abbr> A < B & C"),
    ],
    ids=["text", "code", "attribute", "signs"],
)
def test_texts_outside_of_code_and_links_are_linked(html, linked):
    assert text_links.link(html, str.upper) == linked


SECONDS = 0.5
MAX_TEXT = 1_048_576  # characters of a description or a comment
# Texts that some part of the reader looks at again and again, as a function of the number of repetitions.
SUPERLINEAR = {
    "ampersands": lambda n: "& " * n,
    "mail addresses": lambda n: "a@b.c " * n,
    "mail addresses with references": lambda n: "a&#64;b.c " * n,
    "small tables": lambda n: "|a|\n|-|\n" * n,
    "references": lambda n: "".join(f"#{number} @u{number} ~l{number} a/b#{number} " for number in range(n)),
    "nested quotes": lambda n: "> " * 100 + "a\n" + "b\n" * n,
    "nested quotes, less deep": lambda n: ">" * 19 + "a\n" + "b\n" * n,
    "lines of nested quotes": lambda n: ("> " * 20 + "a\n") * (n // 20),
    "quotes and lists": lambda n: "> - " * 50 + "a\n" + "b\n" * n,
    "quotes that end": lambda n: "> a\nb\n\n" * n,
    "quoted blank lines": lambda n: "> " * 19 + "a\n" + ">\n" * n,
    "lists": lambda n: "- a\n" * n,
    "loose lists": lambda n: "- a\n\n" * n,
    "numbered lists": lambda n: "1. a\n" * n,
    "deeper and deeper lists": lambda n: "".join("  " * depth + "- a\n" for depth in range(int(n**0.5))),
    "lists in one line": lambda n: "- " * n + "a",
    "lines of lists": lambda n: ("- " * 15 + "a\n") * (n // 15),
    "lines below nested lists": lambda n: "- " * 9 + "a\n" + "b\n" * n,
    "paragraphs in nested lists": lambda n: "- " * 9 + "a\n\n" + (" " * 20 + "b\n\n") * (n // 10),
    "emphasis that never ends": lambda n: "*a **" * n,
    "emphasis of two kinds": lambda n: "*a_ " * n,
    "emphasis in words": lambda n: "a**" * n,
    "asterisks": lambda n: "*" * n,
    "underscores": lambda n: "_" * n,
    "strikethrough": lambda n: "~~a " * n,
    "links that never end": lambda n: "[a](" * n,
    "links with titles that never end": lambda n: "[a](b '" * n,
    "links in pointed brackets": lambda n: "[a](<" * n,
    "links": lambda n: "[a](b) " * n,
    "parentheses of a link": lambda n: "[a](" + "(" * n,
    "brackets": lambda n: "[" * n,
    "brackets that end": lambda n: "[" * n + "]" * n,
    "images": lambda n: "![" * n,
    "backticks of all lengths": lambda n: "".join("`" * length + " " for length in range(int(n**0.5))),
    "backticks": lambda n: "`a " * n,
    "entities": lambda n: "&amp;" * n,
    "entities that never end": lambda n: "&#" * n,
    "autolinks": lambda n: "<http://a>" * n,
    "autolinks that never end": lambda n: "<http:" * n,
    "elements that never end": lambda n: "<a " * n,
    "CDATA sections": lambda n: "<![CDATA[" * n,
    "a wide row of a table": lambda n: "|a" * n + "\n" + "|-" * n + "\n",
    "rows without cells": lambda n: "a|b\n-|-\n" + "|\n" * n,
    "a wide table of short rows": lambda n: "|" * 100 + "a\n" + "|-" * 100 + "\n" + "a\n" * n,
    "tables": lambda n: "a|b\n-|-\n" * n,
    "reference definitions": lambda n: "".join(f"[a{number}]: b\n" for number in range(n)),
    "one reference defined often": lambda n: "[a]: b\n" * n,
    "references used": lambda n: "[a]: b\n\n" + "[a] " * n,
    "titles of references that never end": lambda n: "[a]: b '" + "a\n" * n,
    "many titles that never end": lambda n: "[a]: b '\n" * n,
    "fences": lambda n: "```\n" * n,
    "fences in lists": lambda n: "- ```\n" * n,
    "headings": lambda n: "# a\n" * n,
    "underlined headings": lambda n: "a\n-\n" * n,
    "rules": lambda n: "* * *\n" * n,
    "a long paragraph": lambda n: "a\n" * n,
    "carriage returns": lambda n: "> " * 100 + "a\r" + "b\r" * n,
    "line breaks": lambda n: "a\\\n" * n,
    "blank lines": lambda n: "\n \t" * n + "a",
    "indented lines": lambda n: "    a\n\n" * n,
    "escapes": lambda n: "\\*" * n,
    "emphasis in emphasis": lambda n: "*a " * n + "a* " * n,
    "open elements": lambda n: "<div>" * (n // 2) + "<p>x" * n,
    "elements that are reopened": lambda n: "".join(f"<b id={number}>" for number in range(n // 9)) + "<p>x" * n,
    "elements that paragraphs reopen": lambda n: "z<b><i><u><s><tt><big><small><font>" * 3 + "\n\nx" * n,
    "comments": lambda n: "<!--" * n,
    "HTML headings": lambda n: "<h1>" * n,
    "lines of HTML headings": lambda n: "<h1>a\n" * n,
    "signs": lambda n: "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" * n,
}
FEW = [500, 8_000, 60_000, 99_000]
MANY = [250, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 16_000, 24_000, 32_000, 99_000, 500_000]


def seconds_of_page(app, *texts):
    """The processor time of a page that shows these texts and links what they refer to."""
    with app.test_request_context():
        g.text_linker = TextReferences(Project(full_path="a/b")).link
        began = time.process_time()
        for text in texts:
            markdown.block(text)
            markdown.line(text)
        return time.process_time() - began


@pytest.mark.parametrize("counts", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=["few", "many"])
@pytest.mark.parametrize("kind", SUPERLINEAR)
def test_any_text_is_processed_in_linear_time(kind, counts, app):
    markdown.block("*the reader is built*")

    # the first time may include a garbage collection of what other tests left
    seconds = {n: min(seconds_of_page(app, SUPERLINEAR[kind](n)[:MAX_TEXT]) for _ in range(2)) for n in counts}

    assert {n: taken for n, taken in seconds.items() if taken > SECONDS} == {}


@pytest.mark.parametrize("number", [20, pytest.param(500, marks=pytest.mark.nightly)])
def test_pages_of_mixed_texts_render_in_bounded_time(number, app):
    chance = random.Random(number)
    markdown.block("*the reader is built*")
    pieces = [make(1) for make in SUPERLINEAR.values()]

    for _ in range(number):
        unit = "".join(chance.choices(pieces, k=chance.randint(1, 4)))
        prefix, times = chance.choice(["", "> " * 19, "- " * 9, "> - " * 6]), chance.choice([100, 1_000, 10_000])
        texts = [(prefix + unit * times)[:MAX_TEXT], *[prefix + unit] * 100]
        assert min(seconds_of_page(app, *texts) for _ in range(2)) < SECONDS, (prefix, unit, times)


IN_DOCS = markdown.RelativeAddresses("/a/b/-/blob/main", "/a/b/-/raw/main", "docs")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("[x](a.md#top)", 'href="/a/b/-/blob/main/docs/a.md#top"'),
        ("[x](../a%20b.md?x=1)", 'href="/a/b/-/blob/main/a%20b.md?x=1"'),
        ("[x](/top.md)", 'href="/a/b/-/blob/main/top.md"'),
        ("[x](../../../../../admin)", 'href="/a/b/-/blob/main/admin"'),
        ("[x](%2e%2e/%2e%2e/%2e%2e/admin)", 'href="/a/b/-/blob/main/admin"'),
        ("[x](#the-part)", 'href="#user-content-the-part"'),
        ("# The `part`!", '<h3 id="user-content-the-part">'),
        ('# A\n# A\n# "><b', '<h3 id="user-content-a-1">A</h3>\n<h3 id="user-content-b">'),
        ("[x](//example.org/a)", 'href="//example.org/a"'),
        ("[x](https://example.org/a)", 'href="https://example.org/a"'),
        ('![a "b"](img/x.png)', 'src="/a/b/-/raw/main/docs/img/x.png"'),
        ("[![a](x.png)](y.md)", f'<a href="/a/b/-/blob/main/docs/y.md" {REL}><img '),
        ("![a](https://example.org/x.png)", 'src="https://example.org/x.png"'),
        ('<img src="x.png">', 'src="/a/b/-/raw/main/docs/x.png"'),
        (
            '<source srcset="x.png 2x, https://e.org/y.png">',
            'srcset="/a/b/-/raw/main/docs/x.png 2x, https://e.org/y.png"',
        ),
        ('<a name="top"></a>', 'name="user-content-top"'),
        ('<h1 align="center">Hi <em>you</em></h1>', '<h3 id="user-content-hi-you" align="center">'),
    ],
)
def test_relative_urls_stay_in_the_repository(text, html):
    assert html in markdown.block(text, IN_DOCS)
