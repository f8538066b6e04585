"""Cleaning of what events say: limits of size and depth, removal of secrets.

Error collection reference, sections 9 and 10.

Texts are cut before any pattern is tried on them, and every pattern needs time linear in the length of the text.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection
from typing import Any

FILTERED = "[Filtered]"
ELLIPSIS = "…"
MAX_TEXT_LENGTH = 8192
MAX_NAME_LENGTH = 255
MAX_KEY_LENGTH = 200
MAX_DEPTH = 10
MAX_ENTRIES = 200
MAX_ASSIGNED_KEY_LENGTH = 100
MIN_CARD_DIGITS = 13

SECRET_WORDS = frozenset(
    [
        "password",
        "passwd",
        "pwd",
        "secret",
        "secrets",
        "token",
        "auth",
        "authorization",
        "credential",
        "credentials",
        "bearer",
        "session",
        "cookie",
        "cookies",
        "csrf",
        "xsrf",
        "ssn",
        "cvv",
        "cvc",
    ]
)
SECRET_PARTS = (
    "password",
    "passwd",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "credential",
    "sessionid",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "creditcard",
    "cardnumber",
)
SURROGATE = re.compile("[\ud800-\udfff]")
SEPARATOR = re.compile(r"[^0-9A-Za-z]+")
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
KEY_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.[]"
VALUE_END = re.compile(r"""[&;\s"']""")
QUOTED_PAIR = re.compile(r"""["']([\w.-]{1,100})["'] ?: ?(["'])""")
USER_INFO = re.compile(r"""://[^\s/"'<>]{1,500}@""")
CARD = re.compile(r"(?<![0-9])[0-9](?:[ -]?[0-9]){12,18}(?![0-9])")
PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")
PRIVATE_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")


class Cleaner:
    """Cuts and scrubs values of an event. ``hidden_keys`` are further names whose values are removed."""

    def __init__(self, hidden_keys: Collection[str] = ()) -> None:
        self._hidden = tuple(sorted(filter(None, (squeezed(name) for name in hidden_keys))))

    def text(self, value: str, limit: int = MAX_TEXT_LENGTH) -> str:
        """Return a text without NUL, lone surrogates and secrets, of at most ``limit`` characters (then ``…``)."""
        if "\0" in value:
            value = value.replace("\0", "")
        if len(value) > limit:
            value = value[:limit] + ELLIPSIS
        if not value.isascii():
            value = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
        return self._scrub(value)

    def optional_text(self, value: Any, limit: int = MAX_TEXT_LENGTH) -> str | None:
        """Return a text or number as text; ``None`` for everything else and for an empty text."""
        found = as_text(value)
        return self.text(found, limit) or None if found else None

    def name(self, value: Any) -> str | None:
        """Return a short text, cut at 255 characters; ``None`` if it is no text or blank."""
        found = as_text(value)
        if found is None:
            return None
        return self.text(found[: 2 * MAX_NAME_LENGTH])[:MAX_NAME_LENGTH].strip() or None

    def data(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        """Return nested data with every text and list bounded, and the values of secret keys removed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return ELLIPSIS if depth == 0 else self._object(value, depth)
        if isinstance(value, list):
            return ELLIPSIS if depth == 0 else [self._element(one, depth) for one in value[:MAX_ENTRIES]]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    def is_secret(self, key: str) -> bool:
        """Whether the value of this key must not be stored."""
        return is_secret_key(key[:MAX_KEY_LENGTH], self._hidden)

    def _object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        cleaned: dict[str, Any] = {}
        for key, inner in list(value.items())[:MAX_ENTRIES]:
            hidden = inner is not None and self.is_secret(str(key))
            cleaned[self.text(str(key), MAX_KEY_LENGTH)] = FILTERED if hidden else self.data(inner, depth - 1)
        return cleaned

    def _element(self, value: Any, depth: int) -> Any:
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and self.is_secret(value[0]):
            return [self.text(value[0], MAX_KEY_LENGTH), FILTERED]
        return self.data(value, depth - 1)

    def _scrub(self, text: str) -> str:
        if "=" in text:
            text = self._without_assignments(text)
        if ":" in text:
            text = self._without_quoted_pairs(text)
            if "@" in text and "://" in text:
                text = USER_INFO.sub(_without_password, text)
        if "PRIVATE KEY-----" in text:
            text = _without_private_keys(text)
        return CARD.sub(_without_card, text) if len(text) >= MIN_CARD_DIGITS else text

    def _without_assignments(self, text: str) -> str:
        """Remove the value of every ``key=value`` with a secret key."""
        parts: list[str] = []
        last, at = 0, text.find("=")
        while at != -1:
            before = text[max(last, at - MAX_ASSIGNED_KEY_LENGTH) : at]
            key = before[len(before.rstrip(KEY_CHARACTERS)) :]
            following = at + 1
            if key and self.is_secret(key):
                end = _value_end(text, at + 1)
                if end > at + 1:
                    parts += (text[last : at + 1], FILTERED)
                    last = following = end
            at = text.find("=", following)
        return "".join((*parts, text[last:])) if parts else text

    def _without_quoted_pairs(self, text: str) -> str:
        """Remove the value of every ``"key": "value"`` with a secret key, as in JSON and in Python's ``repr``."""
        parts: list[str] = []
        last = 0
        for found in QUOTED_PAIR.finditer(text):
            if found.start() < last or not self.is_secret(found[1]):
                continue
            end = text.find(found[2], found.end())
            parts += (text[last : found.end()], FILTERED)
            last = len(text) if end == -1 else end
        return "".join((*parts, text[last:])) if parts else text


def as_text(value: Any) -> str | None:
    """Return texts as they are, numbers and booleans as text, ``None`` for everything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def squeezed(key: str) -> str:
    """Return a key in lower case without separators."""
    return SEPARATOR.sub("", key).lower()


@functools.lru_cache(maxsize=4096)
def is_secret_key(key: str, hidden: tuple[str, ...] = ()) -> bool:
    """Whether one of the words of a key says that its value is a secret."""
    together = squeezed(key)
    if any(part in together for part in (*SECRET_PARTS, *hidden)):
        return True
    words = SEPARATOR.split(CAPITAL.sub(" ", key))
    return not SECRET_WORDS.isdisjoint(word.lower() for word in words)


def _value_end(text: str, start: int) -> int:
    """Return where the value that begins at ``start`` ends; a quoted value ends with its quotation mark."""
    if text[start : start + 1] in ("'", '"'):
        end = text.find(text[start], start + 1)
        return len(text) if end == -1 else end + 1
    found = VALUE_END.search(text, start)
    return len(text) if found is None else found.start()


def _without_password(found: re.Match[str]) -> str:
    return f"://{FILTERED}@" if ":" in found[0][3:] else found[0]


def _without_private_keys(text: str) -> str:
    parts: list[str] = []
    last = 0
    for found in PRIVATE_KEY.finditer(text):
        if found.start() < last:
            continue
        end = PRIVATE_KEY_END.search(text, found.end())
        parts += (text[last : found.start()], FILTERED)
        last = len(text) if end is None else end.end()
    return "".join((*parts, text[last:]))


def _without_card(found: re.Match[str]) -> str:
    digits = [int(character) for character in found[0] if character not in " -"]
    doubled = (2 * digit - 9 if digit > 4 else 2 * digit for digit in digits[-2::-2])
    return FILTERED if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 else found[0]
