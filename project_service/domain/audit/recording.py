"""Record audit events, in the transaction of the action they describe.

Areas call ``access.audit.record``, which knows the caller; this module serves code without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from project_service.domain.accounts.users import User
from project_service.domain.audit.models import AuditEvent
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit.db.session import db

INSTANCE_TYPE = "Gitlab::Audit::InstanceScope"
INSTANCE_ID = 1
INSTANCE_PATH = "gitlab_instance"
ENTITY_TYPES = ("Project", "User", "Group", INSTANCE_TYPE)
NO_USER_ID = -1
MAX_TEXT_LENGTH = 255

Entity = Project | Namespace | User | None


@dataclass(frozen=True, slots=True)
class Author:
    """The user an action is attributed to, and the network address it came from."""

    id: int = NO_USER_ID
    name: str = "(System)"
    email: str | None = None
    address: str | None = None


SYSTEM = Author()


@dataclass(frozen=True, slots=True)
class AuditTarget:
    """What an action changed: the GitLab class name, the id, and a name that users recognise."""

    type: str
    id: int | str | None
    name: str


def record(
    event_name: str,
    entity: Entity,
    message: str,
    *,
    author: Author = SYSTEM,
    target: AuditTarget | None = None,
    **details: Any,
) -> AuditEvent:
    """Add an audit event to the current transaction.

    Args:
        event_name: The kind of action in snake case, as GitLab names it: ``project_archived``.
        entity: The project, group or user that the event belongs to; ``None`` is the whole instance.
        message: A sentence for readers (``custom_message``).
        author: The user who acted.
        target: What was changed, if it is not the entity itself.
        details: More keys of ``details``, such as ``change``, ``from`` and ``to``; never secrets.

    """
    kind, entity_id, path = _entity_columns(entity)
    target = target or AuditTarget(kind, entity_id, path)
    stored_details = {
        **details,
        "event_name": event_name,
        "author_name": author.name,
        "author_email": author.email,
        "author_class": "User" if author.id != NO_USER_ID else "Gitlab::Audit::UnauthenticatedAuthor",
        "target_id": target.id,
        "target_type": target.type,
        "target_details": _cut(target.name),
        "custom_message": _cut(message),
        "ip_address": author.address,
        "entity_path": path,
    }
    event = AuditEvent(
        event_name=event_name, author_id=author.id, entity_type=kind, entity_id=entity_id, details=stored_details
    )
    db.session.add(event)
    return event


def _entity_columns(entity: Entity) -> tuple[str, int, str]:
    if entity is None:
        return INSTANCE_TYPE, INSTANCE_ID, INSTANCE_PATH
    if isinstance(entity, User):
        return "User", entity.id, entity.username
    return ("Project" if isinstance(entity, Project) else "Group"), entity.id, entity.full_path


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[: MAX_TEXT_LENGTH - 1]}…"
