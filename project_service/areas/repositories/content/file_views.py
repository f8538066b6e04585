"""What the page of a file shows: highlighted lines, rendered Markdown, an image, or the reason why not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from project_service.areas.repositories.content.readmes import MAX_README_BYTES, is_markdown
from project_service.domain.repositories.reading.objects import Entry, text_of
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.kit.http import raw_content
from project_service.kit.texts import highlighting

MAX_SHOWN_BYTES, MAX_SHOWN_LINES = 1 << 20, 10_000  # each line is an element of the page
# characters that change the order in which others are shown, so that code reads other than it runs
_BIDIRECTIONAL = re.compile("[\u202a-\u202e\u2066-\u2069]")
TEXT, LINK, IMAGE, BINARY, LARGE = "text", "link", "image", "binary", "large"


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as its page shows it.

    ``kind`` is ``text``, ``link`` (``text`` is the target), ``image``, ``binary`` or ``large``; ``lines`` are HTML, the
    first ``highlighted_lines`` of them highlighted.
    """

    kind: str
    size: int  # bytes
    text: str = ""
    lines: list[Markup] = field(default_factory=list)
    language: str | None = None
    highlighted_lines: int = 0
    is_markdown: bool = False

    @property
    def is_bidirectional(self) -> bool:
        """Whether the text has bidirectional control characters."""
        return _BIDIRECTIONAL.search(self.text) is not None


def view_of(code: CodeRepository, entry: Entry, *, as_source: bool = False) -> FileView:
    """What is shown of a file; ``as_source`` shows the source of Markdown."""
    size = code.size_of(entry.id)
    content = code.content(entry.id, MAX_SHOWN_BYTES)
    if content is None:
        kind = (
            IMAGE
            if raw_content.type_of(code.start_of(entry.id, raw_content.SNIFFED_BYTES)) in raw_content.IMAGES
            else LARGE
        )
        return FileView(kind, size)
    if entry.is_link:
        return FileView(LINK, size, text_of(content))
    if raw_content.type_of(content) in raw_content.IMAGES:
        return FileView(IMAGE, size)
    if not raw_content.is_text(content):
        return FileView(BINARY, size)
    if content.count(b"\n") > MAX_SHOWN_LINES:
        return FileView(LARGE, size)
    text = text_of(content)
    if is_markdown(entry.name) and not as_source and size <= MAX_README_BYTES:
        return FileView(TEXT, size, text, is_markdown=True)
    lines = lines_of(text)
    language = highlighting.language_of(entry.name)
    marked = highlighting.highlight(lines, language) if language is not None and text else []
    html_lines = [*marked, *map(escape, lines[len(marked) :])]
    return FileView(TEXT, size, text, html_lines, language, len(marked))


def lines_of(text: str) -> list[str]:
    """The lines of a text as editors and scanners number them."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
