"""Record audit events of the caller of the current request."""

from __future__ import annotations

from typing import Any

from flask import has_request_context, request

from project_service.access.identity import caller
from project_service.domain.audit import recording
from project_service.domain.audit.models import AuditEvent
from project_service.domain.audit.recording import SYSTEM, AuditTarget, Author, Entity
from project_service.domain.users import User
from project_service.kit.db.session import db

ANONYMOUS_NAME = "An unauthenticated user"


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

    ``author`` replaces the caller where a request authenticates somebody: sign-in, password reset.
    """
    return recording.record(event_name, entity, message, author=_author(author), target=target, **details)


def record_changes(
    event_name: str, entity: Entity, before: dict[str, Any], after: dict[str, Any], *, target: AuditTarget | None = None
) -> None:
    """Add an audit event for each value that differs, with ``change``, ``from`` and ``to``."""
    for name, value in after.items():
        former = before.get(name)
        if former != value:
            text = f"Changed {name} from {_shown(former)} to {_shown(value)}"
            record(event_name, entity, text, target=target, **{"change": name, "from": former, "to": value})


def _author(user: User | None) -> Author:
    if not has_request_context():
        return SYSTEM
    current, address = caller(), request.remote_addr
    if user is None and current.user_id is not None:
        user = db.session.get(User, current.user_id)
    if user is None:
        return Author(name=ANONYMOUS_NAME, address=address)
    name = f"{user.name} (by {current.impersonator})" if current.impersonator else user.name
    return Author(user.id, name, user.email, address)


def _shown(value: Any) -> str:
    return "nothing" if value in (None, "") else str(value)
