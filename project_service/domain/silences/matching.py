"""Comparison of alerts and events with the matchers of silences and rules (silences reference, section 2).

They are given as facts: its attributes by the names of matchers, with ``hosts`` and ``payload``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from project_service.domain.repositories import wildcards

PAYLOAD = "payload."
FIELDS = ("title", "severity", "environment", "service", "monitoring_tool", "host", "integration", "fingerprint")
IS, IS_NOT, MATCHES, NOT_MATCHES = "is", "is_not", "matches", "not_matches"
OPERATORS = (IS, IS_NOT, MATCHES, NOT_MATCHES)
MAX_MATCHERS = 10
MAX_VALUE_CHARACTERS = 255

Facts = Mapping[str, Any]
Matcher = Mapping[str, Any]


def holds_all(matchers: Sequence[Matcher], facts: Facts) -> bool:
    """Whether all matchers hold for an alert; without any it is true."""
    return all(holds(matcher, facts) for matcher in matchers)


def holds(matcher: Matcher, facts: Facts) -> bool:
    """Whether a matcher holds for an alert; of several values, such as hosts, one is enough."""
    values = values_of(facts, matcher["field"])
    operator, wanted = matcher["operator"], matcher["value"]
    if operator in (IS, IS_NOT):
        matches = (wanted.lower() if matcher["field"] == "severity" else wanted) in values
    else:
        matches = any(_matches(wanted.casefold(), value.casefold()) for value in values)
    return matches if operator in (IS, MATCHES) else not matches


def problem_of(matchers: Sequence[Matcher]) -> str | None:
    """Return what is wrong with matchers; ``None`` if they are valid."""
    if len(matchers) > MAX_MATCHERS:
        return f"are too many (maximum is {MAX_MATCHERS})"
    for matcher in matchers:
        field = matcher["field"]
        if field not in FIELDS and not (field.startswith(PAYLOAD) and field != PAYLOAD):
            return f"have an unknown field: {field[:MAX_VALUE_CHARACTERS]}"
        if max(len(field), len(matcher["value"])) > MAX_VALUE_CHARACTERS:
            return f"have a value that is too long (maximum is {MAX_VALUE_CHARACTERS} characters)"
    return None


def described(matchers: Sequence[Matcher]) -> str:
    """Return matchers in words."""
    words = {IS: "is", IS_NOT: "is not", MATCHES: "matches", NOT_MATCHES: "does not match"}
    parts = (
        f"{matcher['field'].replace('_', ' ')} {words[matcher['operator']]} “{matcher['value']}”"
        for matcher in matchers
    )
    return " and ".join(parts) or "all alerts"


def values_of(facts: Facts, field: str) -> list[str]:
    """Return the values of a field, at least one; what is missing is the empty text."""
    if field.startswith(PAYLOAD):
        return _texts(_at(facts.get("payload"), field.removeprefix(PAYLOAD).split(".")))
    return _texts(facts.get("hosts" if field == "host" else field))


def _at(value: Any, path: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_at(item, path) for item in value]
    if not path:
        return value
    return _at(value.get(path[0]), path[1:]) if isinstance(value, dict) else None


def _texts(value: Any) -> list[str]:
    """Return the texts in a value, at least one; what is missing is the empty text."""
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)] or [""]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return ["" if value is None or isinstance(value, dict) else str(value)]


def _matches(pattern: str, value: str) -> bool:
    return wildcards.matches(pattern, value) or (not value and pattern.strip("*") == "")
