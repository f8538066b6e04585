"""Payloads of errors for web hooks (webhooks reference, section 18)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from project_service.areas.error_tracking.errors import queries
from project_service.areas.error_tracking.errors.models import ErrorStatus, TrackedError
from project_service.areas.error_tracking.errors.schemas import TrackedErrorSchema
from project_service.domain.accounts.users import User
from project_service.domain.hooks import hook_events
from project_service.domain.hooks.hook_payloads import project_of, user_of
from project_service.domain.projects import Project
from project_service.kit.db.session import db

FLAG = "error_events"
OPEN, REOPEN = "open", "reopen"
ACTIONS = {ErrorStatus.UNRESOLVED: REOPEN, ErrorStatus.RESOLVED: "resolve", ErrorStatus.IGNORED: "ignore"}


def announce(error: TrackedError, action: str, user: User | None = None) -> None:
    """Announce that an error is new, occurred again after it was resolved, or got another status by a user."""
    project = db.session.get_one(Project, error.project_id)

    def payload() -> dict[str, Any]:
        db.session.flush()
        return _payload(project, error.id, action, user)

    hook_events.announce(FLAG, project, payload)


def _payload(project: Project, error_id: int, action: str, user: User | None) -> dict[str, Any]:
    [view] = queries.views_of([queries.find_error(project, str(error_id))])
    attributes = TrackedErrorSchema.dump_value(view)
    return {
        "object_kind": "error",
        "event_type": "error",
        **({} if user is None else {"user": user_of(user)}),
        "project": project_of(project),
        "object_attributes": attributes | {"url": view.web_url, "action": action},
    }


def _sample(project: Project) -> dict[str, Any] | None:
    newest = select(TrackedError.id).where(TrackedError.project_id == project.id).order_by(TrackedError.id.desc())
    error_id = db.session.scalar(newest.limit(1))
    return None if error_id is None else _payload(project, error_id, OPEN, None)


hook_events.add_sample(FLAG, _sample)
