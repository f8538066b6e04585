"""Link what texts refer to, in HTML that was sanitized: one pass, outside of code and of links."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser

LEFT_ALONE = frozenset({"a", "code", "pre", "kbd", "samp", "tt"})  # what is in these elements is not linked


class _Linker(HTMLParser):
    """Copies HTML, with the texts between tags replaced."""

    def __init__(self, replace: Callable[[str], str]) -> None:
        super().__init__(convert_charrefs=False)
        self._replace = replace
        self._left_alone = 0
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._left_alone += tag in LEFT_ALONE
        self.parts.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self._left_alone -= tag in LEFT_ALONE
        self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.parts.append(data if self._left_alone else self._replace(data))

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")


def link(html: str, replace: Callable[[str], str]) -> str:
    """Return sanitized HTML with the result of ``replace`` in place of each text outside of code and links.

    A text is passed as it stands in the HTML, up to the next tag or character reference; the result is HTML.
    """
    linker = _Linker(replace)
    linker.feed(html)
    linker.close()
    return "".join(linker.parts)
