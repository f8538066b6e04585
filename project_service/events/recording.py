"""The one door: called inside the transaction of whatever happened."""

from __future__ import annotations

import datetime as dt
from typing import Any

from project_service.core.projects import Project
from project_service.core.users import User
from project_service.events.models import Action, Event
from project_service.kit import clock
from project_service.kit.database import Model, db

ACTIVITY_EVERY = dt.timedelta(hours=1)


def record(
    author: User,
    action: Action,
    project: Project,
    target: Model | None = None,
    *,
    target_type: str | None = None,
    data: dict[str, Any] | None = None,
) -> Event:
    """Write that ``author`` did ``action`` in ``project``, to ``target`` if it has one.

    The project counts as active from then on; its row is touched at most once an hour (events reference, section 8).
    """
    now = clock.now()
    event = Event(
        author_id=author.id,
        action=action,
        project_id=project.id,
        target_type=target_type,
        target_id=None if target is None else target.id,
        data=data,
        created_at=now,
    )
    db.session.add(event)
    if project.last_activity_at < now - ACTIVITY_EVERY:
        project.last_activity_at = now
    return event
