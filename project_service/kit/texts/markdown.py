"""Rendering of Markdown as HTML (``docs/decisions/markdown.md``).

GitHub's Markdown by comrak, sanitized by nh3 as the last step: what a text may contain is decided by the lists of
elements and attributes below. Images are shown from this server and by HTTPS.
"""

from __future__ import annotations

import html
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import nh3
from comrak import ExtensionOptions, RenderOptions, render_markdown
from flask import g
from jinja2 import Environment
from markupsafe import Markup, escape

from project_service.kit.texts import text_links
from project_service.kit.texts.safe_html import as_markup

if TYPE_CHECKING:
    from collections.abc import Callable

# What all texts of a page may have together; what is beyond is shown as it was written. The rest of the limits keep the
# parser of HTML from quadratic time (tests/kit/test_markdown.py has the texts).
MAX_PAGE_CHARACTERS = 256 << 10
MAX_GROWTH = 8  # characters of HTML for one of the text: tables repeat cells that are left out
MAX_MARKUP = 40_000  # tags and character references that a page may have: what sanitizing and linking take time for
MAX_NESTED_MARKERS = 100  # of quotes and lists at the beginning of a line
# e-mail addresses in a line: comrak calls itself for each, and the process ends when the stack does (some 20,000)
MAX_LINE_ADDRESSES = 1_000
MAX_OPEN_ELEMENTS = 30_000_000  # elements of HTML in a text, times places where one may be reopened or looked for
MAX_REOPENED_ELEMENTS = 300_000  # elements that paragraphs reopen, times paragraphs
UNFORMATTED = "What follows is shown as it was written, because it would take too long to format all of it."
HEADING_OFFSET = 2  # the headings of page and section are above those of a text
MAX_HEADING = 6
ANCHOR_PREFIX = "user-content-"  # of ids in texts, which must differ from those of the page
SCHEMES = {"http", "https", "mailto"}
REL = "nofollow noopener noreferrer"
ELEMENTS = {
    *("a", "abbr", "b", "blockquote", "br", "cite", "code", "dd", "del", "details", "dfn", "div", "dl", "dt", "em"),
    *("figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "input", "ins", "kbd", "li"),
    *("mark", "ol", "p", "picture", "pre", "q", "rp", "rt", "ruby", "s", "samp", "small", "source", "span", "strike"),
    *("strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "time", "tr", "tt", "u"),
    *("ul", "var", "wbr"),
}
LINE_ELEMENTS = {"a", "code", "del", "em", "strong"}
ATTRIBUTES = {
    "*": {"align", "dir", "id", "lang", "title"},
    "a": {"href", "name"},
    "code": {"class"},
    "details": {"open"},
    "img": {"alt", "height", "src", "srcset", "width"},
    "input": {"checked"},
    "ol": {"reversed", "start", "type"},
    "source": {"media", "srcset", "type"},
    "td": {"colspan", "rowspan", "valign"},
    "th": {"colspan", "rowspan", "scope", "valign"},
    "time": {"datetime"},
}
SET_ATTRIBUTES = {
    "img": {"loading": "lazy", "referrerpolicy": "no-referrer"},
    "input": {"type": "checkbox", "disabled": ""},
    "pre": {"tabindex": "0"},  # long lines of code scroll, also by keyboard
}
UPLOAD = re.compile(r"/uploads/[0-9a-fA-F]{10,64}/[^/]+\Z")
SOURCE_LINES = "data-sourcepos"
TASK = re.compile(r"([\s>]*(?:[-*+]|[0-9]{1,9}[.)])\s+\[)([ xX])(\]\s.*)", re.DOTALL)
_NO_TASK = re.compile(r'<li data-sourcepos="[^"]*">(?!\s*(?:<p>)?\s*<input)')
LINE_END = re.compile(r"\r\n?")
_NESTED_MARKERS = re.compile(
    rf"^(?>[ \t]*(?:>|[*+-][ \t]|[0-9]{{1,9}}[.)][ \t])){{{MAX_NESTED_MARKERS}}}", re.MULTILINE
)
_DELIMITER_ROW = re.compile(r"[ \t>*+\d.)]*[|:-][|:\- \t]*\Z")  # of a table, also inside of quotes and lists
# elements that the parser of HTML opens again in each later paragraph until they are closed, when they have attributes
_REOPENED = re.compile(r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/]", re.IGNORECASE)
_HEADING_TAG = re.compile(r"<(/?)[hH]([1-6])(?=[\s>])")
_HEADING_LINE = re.compile(r"^<h([1-6])([^<>]*)>(.*)</h\1>", re.MULTILINE)
# images of other servers without encryption become links: the content security policy does not show them
_INSECURE_IMAGE = re.compile(r'<img src="(http://[^"<>]*)" alt="([^"<>]*)"(?: title="[^"<>]*")? />')
_TAG = re.compile(r"<[^<>]*>")
_TAG_START = re.compile(r"<(?=/?([a-zA-Z][^\s/>]*))")
_NO_SLUG = re.compile(r"[^\w\- ]")


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
    """Register the template filters ``markdown`` for texts, ``markdown_line`` for lines, ``linked`` for plain texts."""
    environment.filters.update(markdown=block, markdown_line=line, linked=linked)


def block(text: str | None, addresses: RelativeAddresses | None = None, *, tasks: bool = False) -> Markup:
    """Render a text; what exceeds the limits of the page follows unformatted.

    With ``addresses`` relative links and images lead there, and headings have ids. With ``tasks`` items of lists have
    the lines that they stand on in the text, so that tasks can be ticked (``toggled``).
    """
    if text is None or not text.strip():
        return Markup()
    text = LINE_END.sub("\n", text)
    end = _length_within_limits(text)
    rendered = _spend(text[:end], _render(text[:end], addresses, lines=tasks)) if end else None
    if rendered is None:
        end = 0
    parts = [Markup('<div class="prose">{}</div>').format(rendered)] if rendered is not None else []
    if end < len(text):
        parts.append(Markup('<p class="muted">{}</p><div class="text">{}</div>').format(UNFORMATTED, text[end:]))
    return Markup().join(parts)


def linked(text: str) -> Markup:
    """Return a text without formatting, with what it refers to as links."""
    return as_markup(_linked(str(escape(text))))


def toggled(text: str, number: int, *, checked: bool) -> str | None:
    """Return a text with the task on a line ticked or not; ``None`` if there is no such task, or it is so already."""
    lines = LINE_END.sub("\n", text).split("\n")
    match = TASK.match(lines[number - 1]) if 0 < number <= len(lines) else None
    if match is None or (match[2] != " ") == checked:
        return None
    lines[number - 1] = f"{match[1]}{'x' if checked else ' '}{match[3]}"
    return "\n".join(lines)


def line(text: str | None) -> Markup:
    """Render a single line without paragraphs, headings or HTML; unformatted if it exceeds the limits of the page."""
    text = " ".join((text or "").split())
    if _length_within_limits(text) < len(text):
        return escape(text)
    # the bracket keeps a number sign, a hyphen and the like from beginning a heading or a list
    rendered = _spend(text, _render("(" + text.replace("<", "&lt;"), None, LINE_ELEMENTS))
    return escape(text) if rendered is None else rendered.strip()[1:]


def _characters_left() -> int:
    left: int = g.get("markdown_characters_left", MAX_PAGE_CHARACTERS)
    return left


def _length_within_limits(text: str) -> int:
    """The length of the part that can be formatted: whole paragraphs, nothing if HTML or nesting is hostile."""
    left = _characters_left()
    if len(text) > left:
        text = text[: text.rfind("\n\n", 0, left) + 1]
    elements, places = text.count("<"), text.count("<") + text.count("\n")
    reopened = len(_REOPENED.findall(text)) if elements else 0
    if (
        elements * places > MAX_OPEN_ELEMENTS
        or reopened * places > MAX_REOPENED_ELEMENTS
        or _NESTED_MARKERS.search(text)
        or _has_too_many_addresses(text)
        or _cells_of_tables(text) > MAX_MARKUP // 2
    ):
        return 0
    return len(text)


def _has_too_many_addresses(text: str) -> bool:
    """Whether a line may have more e-mail addresses than comrak can link; character references may be signs of them."""
    signs = text.count("@") + text.count("&")
    return signs > MAX_LINE_ADDRESSES and any(
        line.count("@") + line.count("&") > MAX_LINE_ADDRESSES for line in text.split("\n")
    )


def _cells_of_tables(text: str) -> int:
    """The number of cells that tables may have, with those that short rows leave out: comrak writes all of them."""
    if "|" not in text:
        return 0
    cells = columns = 0
    for line in text.split("\n"):
        if not line or line.isspace():
            columns = 0
        elif "|" in line and _DELIMITER_ROW.match(line):
            columns = max(columns, line.count("|") + 1)
        cells += columns
    return cells


def _spend(text: str, rendered: str | None) -> Markup | None:
    """Subtract a text from what the page may have; ``None`` if its HTML is beyond that.

    A text that is shown as it was written is subtracted, too, since it took time: a page may have many of them.
    """
    left = _characters_left()
    cost = len(text)
    if rendered is not None:
        cost = max(cost, len(rendered) // MAX_GROWTH, _markup_of(rendered) * MAX_PAGE_CHARACTERS // MAX_MARKUP)
    g.markdown_characters_left = left - min(cost if cost <= left else len(text), left)
    return None if rendered is None or cost > left else as_markup(rendered)


def _render(
    text: str, addresses: RelativeAddresses | None, elements: set[str] = ELEMENTS, *, lines: bool = False
) -> str | None:
    """Return sanitized HTML, ``None`` if it would be longer than a page may be; ``lines`` keeps those of list items."""
    raw = _to_html(text, lines=lines)
    if len(raw) > MAX_GROWTH * MAX_PAGE_CHARACTERS or _markup_of(raw) > MAX_MARKUP:
        return None
    if addresses is not None:
        raw = _name_headings(raw)
    linked = _INSECURE_IMAGE.sub(lambda image: f'<a href="{image[1]}">{image[2] or image[1]}</a>', raw)
    escaped = _TAG_START.sub(lambda start: "<" if start[1].lower() in ELEMENTS else "&lt;", linked)
    sanitized: str = nh3.clean(
        _HEADING_TAG.sub(_lower_heading, escaped),
        tags=elements,
        attributes=ATTRIBUTES | {"li": {SOURCE_LINES}} if lines else ATTRIBUTES,
        attribute_filter=_attribute_filter(addresses),
        set_tag_attribute_values=SET_ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel=REL,
        id_prefix=ANCHOR_PREFIX,
    )
    return _linked(_NO_TASK.sub("<li>", sanitized) if lines else sanitized)


def _to_html(text: str, *, lines: bool) -> str:
    """Return the HTML of a text in GitHub's Markdown, not sanitized; ``lines`` adds those of the text."""
    extensions, options = ExtensionOptions(), RenderOptions()
    extensions.table = extensions.strikethrough = extensions.tasklist = extensions.autolink = extensions.tagfilter = (
        True
    )
    options.unsafe_ = options.github_pre_lang = options.gfm_quirks = True
    options.sourcepos = lines
    return render_markdown(text, extension_options=extensions, render_options=options)


def _markup_of(html: str) -> int:
    """The number of tags and character references."""
    return html.count("<") + html.count("&")


def _linked(sanitized: str) -> str:
    """Link what HTML refers to, by the function that the view has set for its page."""
    linker: Callable[[str], str] | None = g.get("text_linker")
    return sanitized if linker is None else text_links.link(sanitized, linker)


def _lower_heading(tag: re.Match[str]) -> str:
    return f"<{tag[1]}h{min(int(tag[2]) + HEADING_OFFSET, MAX_HEADING)}"


def _name_headings(raw: str) -> str:
    """Give headings ids by their texts, as links in the same text name them."""
    counts: dict[str, int] = {}

    def with_id(heading: re.Match[str]) -> str:
        level, attributes, content = heading.groups()
        slug = _NO_SLUG.sub("", html.unescape(_TAG.sub("", content)).strip().lower()).replace(" ", "-")
        count = counts[slug] = counts.get(slug, -1) + 1
        name = f"{slug}-{count}" if count else slug
        return f'<h{level} id="{name}"{attributes}>{content}</h{level}>'

    return _HEADING_LINE.sub(with_id, raw)


def _attribute_filter(addresses: RelativeAddresses | None) -> Callable[[str, str, str], str | None]:
    """Return the filter of the attributes of a text: the value that is shown, or ``None`` to remove it."""

    def value_of(element: str, name: str, value: str) -> str | None:
        if name in ("id", "name"):  # several texts without addresses stand on one page
            prefix = ANCHOR_PREFIX if name == "name" else ""
            return f"{prefix}{value}" if addresses is not None else None
        if name == "class":
            return value if value.startswith("language-") else None
        if name in ("href", "src") and addresses is None and UPLOAD.match(value):
            return f"{g.get('uploads_base', '')}{value}"
        if name == "href" and addresses is not None:
            return addresses.link(value)
        if name == "src":
            return _image(value, addresses)
        if name == "srcset":
            return _image_set(value, addresses)
        return value

    return value_of


def _image(address: str, addresses: RelativeAddresses | None) -> str | None:
    """The address of an image that is shown: of this server or by HTTPS."""
    if address.lower().startswith("https://"):
        return address
    if addresses is not None:
        return addresses.image(address)
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else None


def _image_set(candidates: str, addresses: RelativeAddresses | None) -> str | None:
    sources = []
    for candidate in candidates.split(","):
        address, _, descriptor = candidate.strip().partition(" ")
        if (source := _image(address, addresses)) is None:
            return None
        sources.append(f"{source} {descriptor}".strip())
    return ", ".join(sources)
