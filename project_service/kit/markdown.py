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
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

# How much of a page is read: about a second of it at worst. The time for brackets grows with their number times the
# length of the text: every 64 of them count as the whole text once more.
LARGEST_PAGE = 200_000
BRACKETS = 64
HEADING = 2  # the page and its sections come above what a text calls a heading
LOWEST = 6
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
SCHEMES = ("http", "https", "mailto")
REL = "nofollow noopener noreferrer"


def init_app(environment: Environment) -> None:
    """Give the templates ``| markdown`` for texts and ``| markdown_line`` for those within a line."""
    environment.filters.update(markdown=block, markdown_line=line)


def block(text: str | None) -> Markup:
    """A text in its box; what would take too long to be read stays as it was written."""
    if text is None or not text.strip():
        return Markup()
    if not _is_affordable(text):
        return Markup('<div class="text">{}</div>').format(text)
    return Markup('<div class="prose">{}</div>').format(Markup(_reader().render(text)))  # noqa: S704  # escaped by it


def line(text: str | None) -> Markup:
    """A text of one line, without paragraphs or headings."""
    if text is None or not _is_affordable(text):
        return escape(text or "")
    return Markup(_reader().renderInline(text))  # noqa: S704  # escaped by it


def _is_affordable(text: str) -> bool:
    """Whether a text can be read for the page that is being made, which has that much less for others then."""
    cost = len(text) * (1 + text.count("[") // BRACKETS)
    left: int = g.get("markdown_left", LARGEST_PAGE) - cost
    if left >= 0:
        g.markdown_left = left
    return left >= 0


@functools.cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  # only processes that show pages have a use for it

    reader = MarkdownIt("js-default", {"html": False, "linkify": False, "typographer": False})
    reader.validateLink = _leads_anywhere  # type: ignore[assignment]  # how the library is told
    reader.core.ruler.push("project_service", _adapt)
    reader.add_render_rule("image", _image)
    return reader


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
