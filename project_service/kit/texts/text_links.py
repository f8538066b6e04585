"""Link what texts refer to, in HTML that was sanitized: one pass, outside of code and of links."""

from __future__ import annotations

import re
from collections.abc import Callable

LEFT_ALONE = frozenset({"a", "code", "pre", "kbd", "samp", "tt"})  # what is in these elements is not linked
# a tag, whose values in quotes may have any character but the quote, or a character reference; the sanitizer writes
# both in full. Python's parser of HTML takes ten times as long, which one page of a hostile text shows.
_MARKUP = re.compile(r'(<(?:[^"<>]|"[^"]*")*>|&[#\w]+;)')
_LEFT_ALONE_TAG = re.compile(rf"<(/?)(?:{'|'.join(sorted(LEFT_ALONE))})[\s>]")


def link(html: str, replace: Callable[[str], str]) -> str:
    """Return sanitized HTML with the result of ``replace`` in place of each text outside of code and links.

    A text is passed as it stands in the HTML, up to the next tag or character reference; the result is HTML.
    """
    parts = _MARKUP.split(html)
    depth = 0
    for position, part in enumerate(parts):
        if position % 2:
            if tag := _LEFT_ALONE_TAG.match(part):
                depth += -1 if tag[1] else 1
        elif part and not depth:
            parts[position] = replace(part)
    return "".join(parts)
