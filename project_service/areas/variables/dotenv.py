"""Reading dotenv files, as shells and dotenv libraries agree on them.

A line is empty, a comment, or ``KEY=value``, with or without ``export`` before it. A value is bare to the end of its
line, or quoted, which may span lines: nothing is special in single quotes; in double quotes a backslash escapes what
``ESCAPES`` has, and nothing else. Quoted parts may follow each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_FILE_BYTES = 10 << 20
NOTHING = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
NAME = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z0-9_]+)=[ \t]*")
SINGLE_QUOTED = re.compile(r"'([^']*)'")
DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"\\": "\\", '"': '"', "$": "$", "`": "`", "n": "\n", "r": "\r", "t": "\t"}
BARE = re.compile(r"[^\r\n]*")
COMMENT_AFTER_BARE = re.compile(r"(?<![ \t])[ \t]+#.*")
NEEDS_QUOTES = re.compile(r"[\"'`\\]")


@dataclass(frozen=True, slots=True)
class DotenvEntry:
    """A variable of a file, and the number of the line on which it begins."""

    line: int
    key: str
    value: str


class DotenvProblem(Exception):
    """A file that cannot be read; the text names the line and nothing of its content, which may be secret."""


def parse(content: bytes) -> list[DotenvEntry]:
    """Return the variables of a file.

    Raises:
        DotenvProblem: the first thing that cannot be read.

    """
    if len(content) > MAX_FILE_BYTES:
        raise DotenvProblem(f"the file is larger than {MAX_FILE_BYTES >> 20} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _problem(content[: error.start].decode("utf-8", "replace"), error.start, "is not UTF-8") from error
    if "\0" in text:
        raise _problem(text, text.index("\0"), "has a NUL character")
    position, entries = 0, []
    lines: dict[str, int] = {}
    while position < len(text):
        if (nothing := NOTHING.match(text, position)) is not None:
            position = nothing.end()
            continue
        name = NAME.match(text, position)
        if name is None:
            raise _problem(text, position, "is not KEY=value, with a key of letters, digits and “_”")
        line, key = _line(text, position), name[1]
        if key in lines:
            raise DotenvProblem(f"line {line}: {key} is on line {lines[key]}, too")
        lines[key] = line
        value, position = _value(text, name.end())
        entries.append(DotenvEntry(line, key, value))
    return entries


def _value(text: str, start: int) -> tuple[str, int]:
    """Return the value that begins at a position, and the position after its line."""
    if text[start : start + 1] not in ("'", '"'):
        return _bare(text, start)
    parts, position = [], start
    while text[position : position + 1] in ("'", '"', "\\"):
        if text.startswith("\\'", position):
            parts.append("'")
            position += 2
            continue
        quoted = (SINGLE_QUOTED if text[position] == "'" else DOUBLE_QUOTED).match(text, position)
        if quoted is None:
            raise _problem(text, position, "has a quote that is not closed")
        parts.append(quoted[1] if text[position] == "'" else _unescaped(text, quoted))
        position = quoted.end()
    end = NOTHING.match(text, position)
    if end is None:
        raise _problem(text, position, "has text after the closing quote")
    return "".join(parts), end.end()


def _bare(text: str, start: int) -> tuple[str, int]:
    bare = BARE.match(text, start)
    value = "" if bare is None else bare[0]
    end = NOTHING.match(text, start + len(value))
    value = COMMENT_AFTER_BARE.sub("", value).rstrip(" \t")
    if NEEDS_QUOTES.search(value) or end is None:
        raise _problem(text, start, "has a value that needs single quotes around it")
    return value, end.end()


def _unescaped(text: str, quoted: re.Match[str]) -> str:
    for escape in ESCAPE.finditer(quoted[1]):
        if escape[1] not in ESCAPES:
            raise _problem(text, quoted.start(1) + escape.start(), "has a backslash that escapes nothing")
    return ESCAPE.sub(lambda escape: ESCAPES[escape[1]], quoted[1])


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _problem(text: str, position: int, why: str) -> DotenvProblem:
    return DotenvProblem(f"line {_line(text, position)} {why}")
