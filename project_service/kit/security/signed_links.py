"""Links that are mailed to somebody: a value signed for one purpose, with the time of signing."""

from __future__ import annotations

import datetime as dt

from itsdangerous import BadData, URLSafeTimedSerializer

from project_service.kit.security import key_ring


def sign(purpose: str, number: int) -> str:
    """Return the text of a link for a number, such as the id of a row."""
    return _serializer(purpose).dumps(number)


def read(purpose: str, text: str, lifetime: dt.timedelta) -> int | None:
    """Return the number of a link; ``None`` if it is forged, for another purpose, or older than its lifetime."""
    try:
        number = _serializer(purpose).loads(text, max_age=int(lifetime.total_seconds()))
    except BadData:
        return None
    return number if isinstance(number, int) else None


def _serializer(purpose: str) -> URLSafeTimedSerializer:
    keyring = key_ring.keyring()
    return URLSafeTimedSerializer([*reversed(keyring.signing_key_fallbacks), keyring.signing_key], salt=purpose)
