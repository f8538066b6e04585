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

from project_service.kit.known_secrets import without_known_secrets

FILTERED = "[Filtered]"
ELLIPSIS = "…"
MAX_TEXT_LENGTH = 8192
MAX_NAME_LENGTH = 255
MAX_KEY_LENGTH = 200
MAX_DEPTH = 10
MAX_ENTRIES = 200
MAX_ASSIGNED_KEY_LENGTH = 100
MIN_CARD_DIGITS = 13
MIN_CARD_NUMBER, MAX_CARD_NUMBER = 10**12, 10**19
CARD_FIRST_DIGITS = "23456"  # payment cards; milliseconds and nanoseconds since 1970 begin with 1
SCHEMES = ("bearer", "basic", "token", "digest", "apikey", "negotiate", "sentry")

SECRET_WORDS = frozenset(
    [
        "password",
        "passwd",
        "pwd",
        "pass",
        "pw",
        "passphrase",
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
        "jwt",
        "sig",
    ]
)
SECRET_PARTS = (
    "password",
    "passwd",
    "passphrase",
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
    "amzsignature",
    "googsignature",
)
SURROGATE = re.compile("[\ud800-\udfff]")
SEPARATOR = re.compile(r"[^0-9A-Za-z]+")
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
KEY_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.[]"
# what may stand between a key and the "=" or ":" behind it, and between that and the value
MARGIN_CHARACTERS = " \t\"'`\\"
MAX_MARGIN_LENGTH = 12
SEPARATORS = re.compile(r"""(?<=[\w\] \t"'`])(?::=|=>|={1,3}|:)""")
VALUE_START = re.compile(r"""[ \t]{0,8}+(?:[bBrRuUfF]{1,2}(?=["']))?(\\{0,4}["'`])?""")
VALUE_END = re.compile(r"""[&;\s"']""")
LINE_END = re.compile(r"""[\r\n"']""")
SCHEME = re.compile(r"[A-Za-z][\w-]{0,20}[ \t]{1,8}(?=[^\s])")
AGAIN = re.compile(r"[ \t]{0,8}+=(?!=)")  # of an annotation: "password: str = 'X'"
OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w-]{0,80})(?=[ \t]{1,8}(?!-)\S)")
# searched in lower case: a search without regard to case takes ten times as long
WORDS_OF_SECRETS = re.compile(
    "pass|pw|secret|token|auth|cred|bearer|session|cookie|csrf|xsrf|ssn|cv[vc]|key|card|jwt|sig"
)
HEADERS = ("authorization", "cookie")  # their value is the rest of the line
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
        text = as_text(value)
        return self.text(text, limit) or None if text else None

    def name(self, value: Any) -> str | None:
        """Return a short text, cut at 255 characters; ``None`` if it is no text or blank."""
        text = as_text(value)
        if text is None:
            return None
        return self.text(text[: 2 * MAX_NAME_LENGTH])[:MAX_NAME_LENGTH].strip() or None

    def data(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        """Return nested data with every text and list bounded, and the values of secret keys removed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return ELLIPSIS if depth == 0 else self._object(value, depth)
        if isinstance(value, list):
            return ELLIPSIS if depth == 0 else self._list(value, depth)
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return FILTERED if isinstance(value, int | float) and is_card_number(value) else value

    def is_secret(self, key: str) -> bool:
        """Whether the value of this key must not be stored."""
        return is_secret_key(key[:MAX_KEY_LENGTH], self._hidden)

    def _object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        cleaned: dict[str, Any] = {}
        for key, inner in list(value.items())[:MAX_ENTRIES]:
            hidden = inner is not None and self.is_secret(str(key))
            cleaned[self.text(str(key), MAX_KEY_LENGTH)] = FILTERED if hidden else self.data(inner, depth - 1)
        return cleaned

    def _list(self, values: list[Any], depth: int) -> list[Any]:
        """Clean a list; what follows the name of a secret in it is a secret, as in arguments of a command.

        So it is also in lists of names and values by turns.
        """
        cleaned: list[Any] = []
        is_by_turns = len(values) % 2 == 0
        for position, value in enumerate(values[:MAX_ENTRIES]):
            before = values[position - 1] if position else None
            is_pair = is_by_turns and position % 2 == 1
            if isinstance(before, str) and value is not None and self._names_next(before, value, is_pair=is_pair):
                cleaned.append(FILTERED)
            else:
                cleaned.append(self.data(value, depth - 1))
        return cleaned

    def _names_next(self, before: str, value: Any, *, is_pair: bool) -> bool:
        """Whether a text in a list is the name of a secret that follows it."""
        if len(before) > MAX_KEY_LENGTH or "=" in before or not self.is_secret(before):
            return False
        if before.startswith("-"):
            return not (isinstance(value, str) and value.startswith("--"))
        return is_pair

    def _scrub(self, text: str) -> str:
        if self._hidden or WORDS_OF_SECRETS.search(text.lower()):
            if "=" in text or ":" in text:
                text = self._without_assignments(text)
            if "-" in text:
                text = self._without_options(text)
        if "@" in text and "://" in text:
            text = USER_INFO.sub(_without_password, text)
        if "PRIVATE KEY-----" in text:
            text = _without_private_keys(text)
        text = without_known_secrets(text, FILTERED)
        return CARD.sub(_without_card, text) if len(text) >= MIN_CARD_DIGITS else text

    def _without_assignments(self, text: str) -> str:
        """Remove the values of ``key=value``, ``key: value`` and ``"key" => "value"`` with a secret key."""
        parts: list[str] = []
        last = 0
        for separator in SEPARATORS.finditer(text):
            at = separator.start()
            if at < last:
                continue
            key = _key_before(text, last, at)
            if not key or not self.is_secret(key) or (separator[0] == ":" and not _is_value_of(key, text, at)):
                continue
            is_header = separator[0] == ":" and any(name in squeezed(key) for name in HEADERS)
            start, end = _value_of(text, separator.end(), is_header=is_header)
            if end > start:
                parts += (text[last:start], FILTERED)
                last = end
        return "".join((*parts, text[last:])) if parts else text

    def _without_options(self, text: str) -> str:
        """Remove the values of ``--key value`` with a secret key."""
        parts: list[str] = []
        last = 0
        for option in OPTION.finditer(text):
            if option.start() < last or not self.is_secret(option[1]):
                continue
            start, end = _value_of(text, option.end(), is_header=False)
            if end > start:
                parts += (text[last:start], FILTERED)
                last = end
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


def is_card_number(value: float) -> bool:
    """Whether a number is that of a payment card: from its first digit on, so that times are none."""
    if not MIN_CARD_NUMBER <= value < MAX_CARD_NUMBER or value != int(value):
        return False
    digits = str(int(value))
    return digits[0] in CARD_FIRST_DIGITS and passes_luhn(digits)


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1)."""
    numbers = [int(digit) for digit in digits]
    doubled = (2 * digit - 9 if digit > 4 else 2 * digit for digit in numbers[-2::-2])
    return (sum(numbers[-1::-2]) + sum(doubled)) % 10 == 0


def _key_before(text: str, start: int, end: int) -> str:
    """Return the key that ends before a separator, without quotation marks and blanks."""
    before = text[max(start, end - MAX_ASSIGNED_KEY_LENGTH - MAX_MARGIN_LENGTH) : end]
    before = before[:-MAX_MARGIN_LENGTH] + before[-MAX_MARGIN_LENGTH:].rstrip(MARGIN_CHARACTERS)
    return before[len(before.rstrip(KEY_CHARACTERS)) :][-MAX_ASSIGNED_KEY_LENGTH:]


def _is_value_of(key: str, text: str, colon: int) -> bool:
    """Whether a value follows a colon: behind a blank or quotation mark, or after a key like ``password``.

    Behind other keys a colon without a blank is that of a port or a name, such as ``auth:8080``.
    """
    following = text[colon + 1 : colon + 2]
    if following == ":" or text[colon - 1 : colon] == ":" or text[colon + 1 : colon + 3] == "//":
        return False
    return following in (" ", "\t", "'", '"', "\\") or any(part in squeezed(key) for part in SECRET_PARTS)


def _value_of(text: str, position: int, *, is_header: bool) -> tuple[int, int]:
    """Return where the value behind a separator or option begins and ends, without its quotation marks."""
    quote = VALUE_START.match(text, position)
    start = position if quote is None else quote.end()
    if quote is not None and quote[1]:
        end = text.find(quote[1], start)
        end = len(text) if end == -1 else end
    elif is_header:
        ending = LINE_END.search(text, start)
        end = len(text) if ending is None else ending.start()
    else:
        scheme = SCHEME.match(text, start)
        is_scheme = scheme is not None and scheme[0].strip().lower() in SCHEMES
        ending = VALUE_END.search(text, scheme.end() if scheme is not None and is_scheme else start)
        end = len(text) if ending is None else ending.start()
    if end > start and (again := AGAIN.match(text, end)) is not None:
        return start, max(end, _value_of_assignment(text, again.end()))
    return start, end


def _value_of_assignment(text: str, position: int) -> int:
    """Return the end of the value of an annotated name."""
    quote = VALUE_START.match(text, position)
    start = position if quote is None else quote.end()
    if quote is not None and quote[1]:
        end = text.find(quote[1], start)
        return len(text) if end == -1 else end
    ending = VALUE_END.search(text, start)
    return len(text) if ending is None else ending.start()


def _without_password(match: re.Match[str]) -> str:
    return f"://{FILTERED}@" if ":" in match[0][3:] else match[0]


def _without_private_keys(text: str) -> str:
    parts: list[str] = []
    last = 0
    for key in PRIVATE_KEY.finditer(text):
        if key.start() < last:
            continue
        end = PRIVATE_KEY_END.search(text, key.end())
        parts += (text[last : key.start()], FILTERED)
        last = len(text) if end is None else end.end()
    return "".join((*parts, text[last:]))


def _without_card(match: re.Match[str]) -> str:
    digits = match[0].replace(" ", "").replace("-", "")
    return FILTERED if passes_luhn(digits) else match[0]
