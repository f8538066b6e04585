"""Texts that people write, as HTML (``docs/decisions/markdown.md``).

CommonMark with tables and strikethrough, read by markdown-it-py. HTML in a text is text. Links lead to the web or to
mail, and say that we do not vouch for them; an image is a link to it, so that reading a text tells nobody.
"""

from __future__ import annotations

import functools
import re
from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from flask import g
from jinja2 import Environment
from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

# What one page may cost: 250 ms at worst, most often much less. The unit is about what a character of prose takes; the
# weights were measured with the texts of tests/kit/test_markdown.py.
MAX_PAGE_COST = 100_000
SIGN_COST = 3  # of a character that is neither letter, digit nor white space, beyond that of a character
LINE_COST = 15
QUOTE_COST = 5  # each level of nested quotes looks at every line of its paragraph
CELL_COST = 6  # every line of a table has all columns, written or not
BRACKETS = 64  # each that is open reads to the end of its paragraph: so many count as the whole paragraph once more
MAX_NESTING = 20  # levels of quotes and lists: what is deeper is shown as it was written
UNFORMATTED = "What follows is shown as it was written, because this page has too much text to format all of it."
HEADING = 2  # the page and its sections come above what a text calls a heading
LOWEST = 6
LINE_END = re.compile(r"\r\n?")
_BLANK_LINES = re.compile(r"(?:\n[ \t]*)+\n")
_SIGN = re.compile(r"[^\w\s]|_")
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
SCHEMES = ("http", "https", "mailto")
REL = "nofollow noopener noreferrer"


def init_app(environment: Environment) -> None:
    """Give the templates ``| markdown`` for texts and ``| markdown_line`` for those within a line."""
    environment.filters.update(markdown=block, markdown_line=line)


def block(text: str | None) -> Markup:
    """Return a text as HTML in its box; what is too much for the page comes after the rest, unformatted."""
    if text is None or not text.strip():
        return Markup()
    text = LINE_END.sub("\n", text)
    end = _spend(text)
    parts = []
    if end:
        parts.append(Markup('<div class="prose">{}</div>').format(Markup(_reader().render(text[:end]))))  # noqa: S704  # escaped by it
    if end < len(text):
        parts.append(Markup('<p class="muted">{}</p><div class="text">{}</div>').format(UNFORMATTED, text[end:]))
    return Markup().join(parts)


def line(text: str | None) -> Markup:
    """Return a text of one line as HTML, without paragraphs or headings; unformatted if it is too much for the page."""
    text = LINE_END.sub("\n", text or "")
    if _spend(text) < len(text):
        return escape(text)
    return Markup(_reader().renderInline(text))  # noqa: S704  # escaped by it


def _spend(text: str) -> int:
    """Take the cost of a text off what the page has left; return where the part ends that it is enough for.

    That part is a number of whole paragraphs: no formatting but that of code blocks goes beyond a blank line.
    """
    left: int = g.get("markdown_left", MAX_PAGE_COST)
    start = 0
    while start < len(text):
        blank = _BLANK_LINES.search(text, start)
        end = blank.end() if blank else len(text)
        cost = _cost(text[start:end])
        if cost > left:
            break
        left -= cost
        start = end
    g.markdown_left = left
    return start


def _cost(paragraph: str) -> int:
    if len(paragraph) > MAX_PAGE_COST:
        return len(paragraph)
    lines = paragraph.split("\n")
    columns = max(row.count("|") for row in lines)
    quotes = min(max(row.count(">") for row in lines), MAX_NESTING)
    characters = len(paragraph) + SIGN_COST * len(_SIGN.findall(paragraph))
    return characters * (1 + paragraph.count("[") // BRACKETS) + len(lines) * (
        LINE_COST + QUOTE_COST * quotes + CELL_COST * columns
    )


@functools.cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  # only processes that show pages have a use for it

    # levels that the rule below does not see, those of the parts of a line, are limited by maxNesting
    options = {"html": False, "linkify": False, "typographer": False, "maxNesting": MAX_NESTING + 1}
    reader = MarkdownIt("js-default", options)
    reader.validateLink = _leads_anywhere  # type: ignore[assignment]  # how the library is told
    reader.block.ruler.before("table", "too_deep", _too_deep)
    reader.core.ruler.push("project_service", _adapt)
    reader.add_render_rule("image", _image)
    return reader


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Show what is nested too deeply as a code block: the library would leave it out."""
    if state.level < MAX_NESTING or silent:
        return False
    token = state.push("code_block", "code", 0)
    token.content = state.getLines(start, end, state.blkIndent, keepLastLF=True)
    token.map = [start, end]
    state.line = end
    return True


def _leads_anywhere(address: str) -> bool:
    scheme = _SCHEME.match(address)
    return scheme is None or scheme[1].lower() in SCHEMES


def _adapt(state: StateCore) -> None:
    """Lower the headings, mark the links, and align the columns by classes: the policy takes no styles."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + HEADING, LOWEST)}"
        if style := token.attrs.pop("style", None):
            token.attrSet("class", f"aligned-{str(style).rpartition(':')[2]}")
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrSet("rel", REL)


def _image(
    _renderer: Any, tokens: Sequence[Token], index: int, options: OptionsDict, _env: MutableMapping[str, Any]
) -> str:
    token = tokens[index]
    address = str(token.attrGet("src") or "")
    return Markup('<a href="{}" rel="{}">{}</a>').format(address, REL, token.content or address)
