"""Record audit events of the caller of the current request."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from flask import has_request_context, request
from sqlalchemy import inspect

from project_service.access.identity import caller
from project_service.domain.access_levels import Visibility
from project_service.domain.accounts.users import User, user_by_login
from project_service.domain.audit import recording
from project_service.domain.audit.models import AuditEvent
from project_service.domain.audit.recording import SYSTEM, AuditTarget, Author, Entity
from project_service.kit.db.base import Base
from project_service.kit.db.session import db
from project_service.kit.security.key_ring import Encrypted

ANONYMOUS_NAME = "An unauthenticated user"
UNKNOWN_LOGIN = "unknown login"
VISIBILITY = "visibility_level"
TIMES = ("created_at", "updated_at")


def record(
    event_name: str,
    entity: Entity,
    message: str,
    *,
    target: AuditTarget | None = None,
    author: User | None = None,
    **details: Any,
) -> AuditEvent:
    """Add an audit event to the current transaction; see ``domain.audit.recording.record``.

    ``author`` replaces the caller where a request authenticates a user: sign-in, password reset.
    """
    return recording.record(event_name, entity, message, author=_author(author), target=target, **details)


def record_changes(
    kind: str, entity: Entity, before: dict[str, Any], after: dict[str, Any], *, target: AuditTarget | None = None
) -> None:
    """Add an audit event for each value that differs, with ``change``, ``from`` and ``to``.

    The event of a project's name is ``project_name_updated``, where ``kind`` is ``project``.
    """
    for name, value in after.items():
        former = before.get(name)
        if former != value and (former is not None or value):
            words = name.replace("_", " ")
            text = f"Changed {words} from {_shown(former)} to {_shown(value)}"
            details = {"change": words, "from": former, "to": value}
            record(f"{kind}_{name}_updated", entity, text, target=target, **details)


def record_failed_sign_in(login: str, method: str = "standard") -> None:
    """Add an audit event of a failed sign-in; ``login`` is not recorded unless it is that of a user.

    Users type passwords into the wrong field.
    """
    user = user_by_login(login)
    target = AuditTarget("User", None, UNKNOWN_LOGIN) if user is None else AuditTarget("User", user.id, user.username)
    text = f"Failed to login with {method.upper()} authentication"
    record(f"login_failed_with_{method}_authentication", user, text, target=target, failed_login=method.upper())


def values_of(row: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a row, for ``record_changes``; ``visibility_level`` is the name of ``visibility``."""
    values = {name: getattr(row, name) for name in names if name != VISIBILITY}
    if VISIBILITY in names:
        values[VISIBILITY] = visibility_text(row)
    return values


def settings_of(row: Base, unaudited: Collection[str] = ()) -> dict[str, Any]:
    """Return the values of all columns of a row, for ``record_changes``, except those that are excluded by name.

    Never among them: ids, times of creation and change, and encrypted columns.
    """
    columns = [
        attribute.key
        for attribute in inspect(type(row)).column_attrs
        for column in attribute.columns[:1]
        if not (column.primary_key or column.foreign_keys or isinstance(column.type, Encrypted))
    ]
    names = [name for name in columns if name not in {*TIMES, *unaudited}]
    return values_of(row, *(VISIBILITY if name == "visibility" else name for name in names))


def visibility_text(row: Any) -> str:
    """Return the name of the visibility of a project or group."""
    return Visibility(row.visibility).text


def _author(user: User | None) -> Author:
    if not has_request_context():
        return SYSTEM if user is None else Author(user.id, user.name, user.email)
    current, address = caller(), request.remote_addr
    if user is None and current.user_id is not None:
        user = db.session.get(User, current.user_id)
    if user is None:
        return Author(name=ANONYMOUS_NAME, address=address)
    name = f"{user.name} (by {current.impersonator})" if current.impersonator else user.name
    return Author(user.id, name, user.email, address)


def _shown(value: Any) -> str:
    return "nothing" if value in (None, "") else str(value)
