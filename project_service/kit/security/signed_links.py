"""Links that are mailed: a value signed for one purpose, with the time of signing."""

from __future__ import annotations

import datetime as dt
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer

from project_service.kit.security import key_ring


def sign(purpose: str, number: int) -> str:
    """Return the text of a link for a number, such as the id of a row."""
    return _serializer(purpose).dumps(number)


def read(purpose: str, text: str, lifetime: dt.timedelta) -> int | None:
    """Return the number of a link; ``None`` if it is forged, for another purpose, or older than its lifetime."""
    number = _read(purpose, text, lifetime)
    return number if isinstance(number, int) else None


def sign_values(purpose: str, values: list[Any]) -> str:
    """Return the text of a link for several values."""
    return _serializer(purpose).dumps(values)


def read_values(purpose: str, text: str, lifetime: dt.timedelta) -> list[Any] | None:
    """Return the values of a link; ``None`` if it is forged, for another purpose, or older than its lifetime."""
    values = _read(purpose, text, lifetime)
    return values if isinstance(values, list) else None


def _read(purpose: str, text: str, lifetime: dt.timedelta) -> Any:
    try:
        return _serializer(purpose).loads(text, max_age=int(lifetime.total_seconds()))
    except BadData:
        return None


def _serializer(purpose: str) -> URLSafeTimedSerializer:
    keyring = key_ring.keyring()
    return URLSafeTimedSerializer([*reversed(keyring.signing_key_fallbacks), keyring.signing_key], salt=purpose)
