"""The message of an event: its text, and the template that groups it (error collection reference, section 9)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from project_service.areas.error_tracking.collection.scrubbing import MAX_TEXT_LENGTH, Cleaner, as_text

RAVEN = "sentry.interfaces.Message"
PLACEHOLDER = re.compile(r"%(?:\(([^()%]{1,100})\))?(.?)", re.DOTALL)
TEXT_CONVERSIONS, NUMBER_CONVERSIONS = frozenset("sr"), frozenset("di")
NUMBER = re.compile(r"([+-]?[0-9]{1,100})(?:\.[0-9]{0,100})?")
MAX_PARAMETERS = 100


@dataclass(frozen=True, slots=True)
class Message:
    """``text`` has the parameters filled in; ``template`` is what messages have in common."""

    text: str | None
    template: str | None


class _Unfit(Exception):
    """A template does not fit its parameters."""


def message_of(raw: dict[str, Any], cleaner: Cleaner) -> Message:
    """Return the message of an event; both texts are ``None`` without one."""
    logentry = _object(raw.get("logentry")) or _object(raw.get(RAVEN))
    message = raw.get("message")
    parts = _object(message)
    plain = message if isinstance(message, str) else None
    quoted = RAVEN in raw
    texts = (
        as_text(logentry.get("formatted")),
        as_text(parts.get("formatted")),
        _filled(logentry, quoted),
        _filled(parts, quoted),
        plain,
    )
    templates = (
        as_text(logentry.get("message")),
        as_text(parts.get("message")),
        plain,
        as_text(parts.get("formatted")),
        as_text(logentry.get("formatted")),
    )
    return Message(_first(texts, cleaner), _first(templates, cleaner))


def filled_in(template: str, parameters: list[Any] | dict[str, Any]) -> str:
    """Fill in the parameters of a template with ``%s``, ``%d`` and ``%(name)s``; one that does not fit is returned."""
    rest = iter(parameters[:MAX_PARAMETERS] if isinstance(parameters, list) else ())

    def replace(placeholder: re.Match[str]) -> str:
        if placeholder[2] == "%" and not placeholder[1]:
            return "%"
        if placeholder[2] in NUMBER_CONVERSIONS:
            return _whole_number(_parameter(placeholder[1], rest, parameters))
        if placeholder[2] not in TEXT_CONVERSIONS:
            raise _Unfit
        return _parameter(placeholder[1], rest, parameters)

    try:
        filled = PLACEHOLDER.sub(replace, template)
    except _Unfit:
        return template
    return template if next(rest, None) is not None else filled


def _parameter(name: str | None, rest: Iterator[Any], parameters: list[Any] | dict[str, Any]) -> str:
    named = parameters if isinstance(parameters, dict) else {}
    value = next(rest, None) if name is None else named.get(name)
    text = as_text(value)
    if text is None:
        raise _Unfit
    return text[:MAX_TEXT_LENGTH]


def _whole_number(text: str) -> str:
    """Return a number as ``%d`` shows it: without its fraction."""
    number = NUMBER.fullmatch(text.strip())
    if number is None:
        raise _Unfit
    return number[1]


def _filled(parts: dict[str, Any], quoted: bool) -> str | None:
    template = as_text(parts.get("message"))
    if template is None:
        return None
    template, parameters = template[:MAX_TEXT_LENGTH], parts.get("params")
    if quoted and isinstance(parameters, list):
        parameters = [_unquoted(parameter) for parameter in parameters]
    return filled_in(template, parameters) if isinstance(parameters, list | dict) and parameters else template


def _unquoted(value: Any) -> Any:
    """Remove the quotation marks that raven puts around text parameters."""
    is_quoted = isinstance(value, str) and len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value


def _first(texts: tuple[str | None, ...], cleaner: Cleaner) -> str | None:
    return next((cleaner.text(text) for text in texts if text), None)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
