"""Messages of SARIF results (scanner formats reference, section 5)."""

from __future__ import annotations

import re
from typing import Any

from project_service.areas.vulnerabilities.formats.shapes import (
    MAX_CODE_LENGTH,
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
    SECTION_PARAGRAPHS,
    Data,
    obj,
    text,
)

PLACEHOLDER = re.compile(r"\{([0-9]{1,3})\}|\{\{|\}\}")
# [text](3): the number of a related location
LINK = re.compile(r"(?<!\\)\[((?:[^\[\]\\]|\\.)*)\]\(([0-9]{1,9})\)")
PACKAGE = re.compile(r"^[ \t]*Package:[ \t]*(\S.*)", re.MULTILINE)
VERSION = re.compile(r"^[ \t]*(?:Installed )?Version:[ \t]*(\S.*)", re.MULTILINE)
FIXED = re.compile(r"^[ \t]*(?:Fixed|Fix) Version:[ \t]*(\S.*)", re.MULTILINE)
MESSAGE = re.compile(r"^[ \t]*Message:[ \t]*(\S.*)", re.MULTILINE)
KEY_AND_VALUE = re.compile(r"[A-Z][A-Za-z ]{0,40}:(?:[ \t]|$)")
SENTENCE_END = re.compile(r"(?<=[.!?])\s")
TYPE = re.compile(r"^[ \t]*Type:[ \t]*(\S.*)", re.MULTILINE)


def message_of(message: Data, strings: Data, shared: Data) -> tuple[str, str]:
    """Return the text and the Markdown of a message, with its arguments put in; either may be empty."""
    plain, marked = text(message.get("text")), text(message.get("markdown"))
    name = text(message.get("id"))
    if not plain.strip() and name:
        template = obj(strings.get(name)) or obj(shared.get(name))
        # of a rule: every result repeats it
        plain, marked = (
            text(template.get("text"))[:MAX_DESCRIPTION_LENGTH],
            marked or text(template.get("markdown"))[:MAX_DESCRIPTION_LENGTH],
        )
    arguments = message.get("arguments")
    if isinstance(arguments, list) and arguments:
        plain, marked = _filled(plain, arguments), _filled(marked, arguments)
    return plain, marked if marked.strip() else ""


def without_links(message: str, places: dict[str, str]) -> tuple[str, str]:
    """Return a message for a name and for a description: links to locations are their text, there with the place."""
    if "[" not in message:
        return message, message
    placed = LINK.sub(lambda match: f"{match[1]} ({places[match[2]]})" if match[2] in places else match[1], message)
    return _unescaped(LINK.sub(r"\1", message)), _unescaped(placed)


def summary_of(message: str, short: str) -> str:
    """Return the text from which a finding gets its name.

    That is the message; of one that consists of lines with keys and values the short description of the rule, else the
    line of the message itself; of one whose paragraph is too long for a name its first sentence.
    """
    first = SECTION_PARAGRAPHS.split(message[:MAX_DESCRIPTION_LENGTH].strip().replace("\r\n", "\n"), 1)[0]
    lines = first.split("\n")
    if len(lines) > 1 and 2 * sum(KEY_AND_VALUE.match(line.strip()) is not None for line in lines) >= len(lines):
        return short.strip() or value_of(MESSAGE, first) or message
    sentence = SENTENCE_END.split(first, 1)[0]
    return sentence if len(first) > MAX_NAME_LENGTH >= len(sentence) else message


def value_of(line: re.Pattern[str], *texts: str) -> str:
    """Return the value of the first line of that form in the first text that has one; empty without any."""
    value_match = next((match for text_ in texts if (match := line.search(text_))), None)
    return value_match[1].rstrip() if value_match else ""


def _unescaped(message: str) -> str:
    return message.replace("\\[", "[").replace("\\]", "]") if "\\" in message else message


def _filled(message: str, arguments: list[Any]) -> str:
    """Put arguments in the place of their numbers, up to ``MAX_DESCRIPTION_LENGTH`` characters."""
    parts: list[str] = []
    last = length = 0
    for match in PLACEHOLDER.finditer(message):
        parts += (message[last : match.start()], _value_of_placeholder(match, arguments))
        last, length = match.end(), length + len(parts[-1]) + len(parts[-2])
        if length > MAX_DESCRIPTION_LENGTH:
            break
    return "".join((*parts, message[last:]))[:MAX_DESCRIPTION_LENGTH]


def _value_of_placeholder(found: re.Match[str], arguments: list[Any]) -> str:
    if found[1] is None:
        return found[0][0]
    number = int(found[1])
    return text(arguments[number])[:MAX_CODE_LENGTH] if number < len(arguments) else found[0]
