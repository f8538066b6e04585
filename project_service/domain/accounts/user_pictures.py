"""The address of the picture of a user: an upload, Gravatar if it is switched on, or initials drawn by this server.

It is never null: some clients refuse answers in which it is (uploads reference, section 4).
"""

from __future__ import annotations

import hashlib
from typing import Any

from flask import g, has_request_context
from sqlalchemy import ScalarSelect

from project_service.domain.instance_settings import setting, value_of
from project_service.kit.http import urls

GRAVATAR = "https://secure.gravatar.com/avatar/{}?s=80&d=identicon"
DRAWN = "/-/avatars/user"
SETTING = "gravatar_enabled"


def picture_address(user: Any) -> str:
    """Return the absolute address of the picture of a user; ``user`` has ``id``, ``avatar_url`` and ``email``."""
    if user.avatar_url:
        return urls.absolute_or_none(user.avatar_url) or ""
    return gravatar_of(user.email) or urls.absolute(f"{DRAWN}/{user.id}")


def gravatar_of(email: str) -> str | None:
    """Return the address of the picture that Gravatar has for an e-mail address; ``None`` while that is off."""
    if not email or not _is_switched_on():
        return None
    return GRAVATAR.format(hashlib.sha256(email.strip().lower().encode()).hexdigest())


def switch() -> ScalarSelect[Any]:
    """Return the setting as a column, for a statement after which users are shown; ``note_switch`` takes its value."""
    return value_of(SETTING).scalar_subquery()


def note_switch(value: bool | None) -> None:
    """Set the value of ``switch`` for the current request."""
    if has_request_context():
        g.setdefault(SETTING, bool(value))


def _is_switched_on() -> bool:
    if not has_request_context():
        return bool(setting(SETTING))
    if SETTING not in g:
        g.setdefault(SETTING, bool(setting(SETTING)))
    return bool(g.get(SETTING))
