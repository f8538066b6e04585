"""Reads of web hooks and their log."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import joinedload

from project_service.areas.webhooks.models import FAILURES_OF_DISABLING, WebHook, WebHookLog
from project_service.areas.webhooks.requests import INTERNAL_ERROR
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit import clock, exact_json
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import RecordNotFound

Owner = Project | Group | None  # None: the instance
LISTED_FOR = dt.timedelta(days=7)
WORDS = {"successful": "2%", "client_failure": "4%", "server_failure": "5%"}
STATUSES = (*WORDS, *map(str, range(100, 600)))
ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
REDACTED = "[REDACTED]"


def hooks_of(owner: Owner) -> Select[WebHook]:
    """Select the hooks of a project, a group or the instance, oldest first."""
    if isinstance(owner, Project):
        return select(WebHook).where(WebHook.project_id == owner.id).options(NO_LAZY_LOADING).order_by(WebHook.id)
    group_id = None if owner is None else owner.id
    own = select(WebHook).where(WebHook.project_id.is_(None), WebHook.group_id == group_id)
    if owner is None:
        own = select(WebHook).where(WebHook.project_id.is_(None), WebHook.group_id.is_(None))
    return own.options(NO_LAZY_LOADING).order_by(WebHook.id)


def find_hook(owner: Owner, hook_id: int) -> WebHook:
    """Return one hook of a project, a group or the instance."""
    return one(hooks_of(owner).where(WebHook.id == hook_id), RecordNotFound())


def number_of_hooks(owner: Owner) -> int:
    """Return how many hooks there are."""
    return db.session.scalar(select(func.count()).select_from(hooks_of(owner).order_by(None).subquery())) or 0


def attempts_of(hook: WebHook, statuses: list[str] | None = None) -> Select[WebHookLog]:
    """Select the attempts of the last week, newest first."""
    recent = select(WebHookLog).where(WebHookLog.hook_id == hook.id)
    recent = recent.where(WebHookLog.created_at > clock.now() - LISTED_FOR)
    if statuses:
        conditions = [
            WebHookLog.response_status.like(WORDS[status]) if status in WORDS else WebHookLog.response_status == status
            for status in statuses
        ]
        if "server_failure" in statuses:
            conditions.append(WebHookLog.response_status == INTERNAL_ERROR)
        recent = recent.where(or_(*conditions))
    return recent.options(joinedload(WebHookLog.payload), NO_LAZY_LOADING).order_by(WebHookLog.id.desc())


def find_attempt(hook: WebHook, log_id: int) -> WebHookLog:
    """Return one attempt of a hook."""
    attempt = select(WebHookLog).where(WebHookLog.hook_id == hook.id, WebHookLog.id == log_id)
    return one(attempt.options(joinedload(WebHookLog.payload)), RecordNotFound())


def request_data(attempt: WebHookLog) -> Any:
    """Return what was sent, with e-mail addresses replaced."""
    if attempt.payload is None:
        return {"oversize": True}
    return _redacted(exact_json.loads(attempt.payload.body))


def disabled_hooks_of(project: Project) -> int:
    """Return how many hooks of a project are disabled, for a while or for good."""
    is_disabled = or_(WebHook.recent_failures >= FAILURES_OF_DISABLING, WebHook.disabled_until > clock.now())
    counted = select(func.count()).select_from(WebHook).where(WebHook.project_id == project.id, is_disabled)
    return db.session.scalar(counted) or 0


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _redacted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    return REDACTED if isinstance(value, str) and ADDRESS.fullmatch(value) else value
