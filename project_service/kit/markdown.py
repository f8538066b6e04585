"""Rendering of Markdown as HTML (``docs/decisions/markdown.md``).

CommonMark with tables and strikethrough, by markdown-it-py. HTML in a text is escaped. Links are limited to web and
mail and have ``rel="nofollow"``; an image becomes a link, so that viewing a text contacts no other server. Texts of a
repository may show images of the same repository.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from flask import g
from jinja2 import Environment
from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

# Rendering budget of a page: at most 250 ms. The unit is the time for one character of prose; the weights were measured
# with the texts of tests/kit/test_markdown.py.
MAX_PAGE_COST = 100_000
PUNCTUATION_COST = 3  # of a character that is neither letter, digit nor white space, in addition
LINE_COST = 15
QUOTE_COST = 5  # each level of nested quotes reads every line of its paragraph
CELL_COST = 6  # every row of a table has all columns, even if they are left out
BRACKETS_PER_PASS = (
    64  # an open bracket reads to the end of its paragraph; so many cost as much as another pass over it
)
MAX_NESTING = 20  # levels of quotes and lists; deeper ones are shown unformatted
UNFORMATTED = "What follows is shown as it was written, because this page has too much text to format all of it."
HEADING_OFFSET = 2  # the headings of page and section are above those of a text
MAX_HEADING = 6
LINE_END = re.compile(r"\r\n?")
_BLANK_LINES = re.compile(r"(?:\n[ \t]*)+\n")
_PUNCTUATION = re.compile(r"[^\w\s]|_")
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_NO_SLUG = re.compile(r"[^\w\- ]")
ANCHOR_PREFIX = "user-content-"  # of the ids of headings, which must differ from those of the page
SCHEMES = ("http", "https", "mailto")
REL = "nofollow noopener noreferrer"


@dataclass(frozen=True, slots=True)
class RelativeAddresses:
    """Where the relative addresses of a text lead: ``links`` and ``images`` are paths of this server.

    Addresses are relative to ``folder``, those that begin with a slash to ``links`` or ``images`` itself; none leads
    above it.
    """

    links: str
    images: str
    folder: str = ""

    def link(self, address: str) -> str:
        """The address of a link; absolute addresses stay as they are, fragments refer to headings."""
        if address.startswith("#"):
            return f"#{ANCHOR_PREFIX}{address[1:]}"
        return self._resolve(self.links, address) or address

    def image(self, address: str) -> str | None:
        """The address of an image, ``None`` for one of another server."""
        return self._resolve(self.images, address)

    def _resolve(self, start: str, address: str) -> str | None:
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        path = unquote(parts.path)
        if parts.scheme or parts.netloc or not path or "\0" in path:
            return None
        inside = posixpath.normpath(posixpath.join("/", self.folder, path)).lstrip("/")
        return parts._replace(path=f"{start}/{quote(inside)}").geturl()


def init_app(environment: Environment) -> None:
    """Register the template filters ``markdown`` for texts and ``markdown_line`` for single lines."""
    environment.filters.update(markdown=block, markdown_line=line)


def block(text: str | None, addresses: RelativeAddresses | None = None) -> Markup:
    """Render a text; what exceeds the budget of the page follows unformatted.

    With ``addresses`` relative links lead there, and relative images are shown.
    """
    if text is None or not text.strip():
        return Markup()
    text = LINE_END.sub("\n", text)
    end = _spend(text)
    parts = []
    if end:
        rendered = _reader().render(text[:end], {"addresses": addresses})
        # long lines of code scroll, also by keyboard
        html = Markup(rendered.replace("<pre>", '<pre tabindex="0">'))  # noqa: S704  # escaped by the renderer
        parts.append(Markup('<div class="prose">{}</div>').format(html))
    if end < len(text):
        parts.append(Markup('<p class="muted">{}</p><div class="text">{}</div>').format(UNFORMATTED, text[end:]))
    return Markup().join(parts)


def line(text: str | None) -> Markup:
    """Render a single line without paragraphs or headings; unformatted if it exceeds the budget of the page."""
    text = LINE_END.sub("\n", text or "")
    if _spend(text) < len(text):
        return escape(text)
    return Markup(_reader().renderInline(text))  # noqa: S704  # escaped by the renderer


def _spend(text: str) -> int:
    """Subtract the cost of a text from the budget of the page; return the length of the part that fits.

    The part consists of whole paragraphs: only code blocks extend beyond a blank line.
    """
    budget: int = g.get("markdown_left", MAX_PAGE_COST)
    start = 0
    while start < len(text):
        blank = _BLANK_LINES.search(text, start)
        end = blank.end() if blank else len(text)
        cost = _cost(text[start:end])
        if cost > budget:
            break
        budget -= cost
        start = end
    g.markdown_left = budget
    return start


def _cost(paragraph: str) -> int:
    if len(paragraph) > MAX_PAGE_COST:
        return len(paragraph)
    lines = paragraph.split("\n")
    columns = max(row.count("|") for row in lines)
    quotes = min(max(row.count(">") for row in lines), MAX_NESTING)
    characters = len(paragraph) + PUNCTUATION_COST * len(_PUNCTUATION.findall(paragraph))
    return characters * (1 + paragraph.count("[") // BRACKETS_PER_PASS) + len(lines) * (
        LINE_COST + QUOTE_COST * quotes + CELL_COST * columns
    )


@functools.cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  # only processes that render pages need it

    # maxNesting limits the levels of inline elements, which the rule below does not see
    options = {"html": False, "linkify": False, "typographer": False, "maxNesting": MAX_NESTING + 1}
    reader = MarkdownIt("js-default", options)
    reader.validateLink = _is_allowed_link  # type: ignore[assignment]  # the documented way to replace it
    reader.block.ruler.before("table", "too_deep", _too_deep)
    reader.core.ruler.push("project_service", _adapt)
    reader.add_render_rule("image", _image)
    return reader


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Show what is nested too deeply as a code block; the library would omit it."""
    if state.level < MAX_NESTING or silent:
        return False
    token = state.push("code_block", "code", 0)
    token.content = state.getLines(start, end, state.blkIndent, keepLastLF=True)
    token.map = [start, end]
    state.line = end
    return True


def _is_allowed_link(address: str) -> bool:
    scheme = _SCHEME.match(address)
    return scheme is None or scheme[1].lower() in SCHEMES


def _adapt(state: StateCore) -> None:
    """Lower headings, adapt links, align columns by classes (the content security policy forbids styles)."""
    addresses: RelativeAddresses | None = state.env.get("addresses")
    if addresses is not None:
        _name_headings(state.tokens)
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + HEADING_OFFSET, MAX_HEADING)}"
        if style := token.attrs.pop("style", None):
            token.attrSet("class", f"aligned-{str(style).rpartition(':')[2]}")
        in_link = False
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrSet("rel", REL)
                if addresses is not None:
                    inner.attrSet("href", addresses.link(str(inner.attrGet("href") or "")))
            in_link = inner.type == "link_open" or (in_link and inner.type != "link_close")
            if inner.type == "image":
                inner.meta["in_link"] = in_link


def _name_headings(tokens: Sequence[Token]) -> None:
    """Give headings ids by their texts, as links in the same text name them."""
    counts: dict[str, int] = {}
    for position, token in enumerate(tokens):
        if token.type == "heading_open":
            slug = _NO_SLUG.sub("", tokens[position + 1].content.lower()).replace(" ", "-")
            count = counts[slug] = counts.get(slug, -1) + 1
            token.attrSet("id", f"{ANCHOR_PREFIX}{slug}-{count}" if count else f"{ANCHOR_PREFIX}{slug}")


def _image(
    _renderer: Any, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    token = tokens[index]
    address = str(token.attrGet("src") or "")
    addresses: RelativeAddresses | None = env.get("addresses")
    if addresses is not None and (own := addresses.image(address)) is not None:
        return Markup('<img src="{}" alt="{}" loading="lazy">').format(own, token.content)
    if token.meta.get("in_link"):
        return escape(token.content or address)
    return Markup('<a href="{}" rel="{}">{}</a>').format(address, REL, token.content or address)
