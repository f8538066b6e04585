"""Find the project and key that events are sent to, with all settings that apply to them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Text, and_, bindparam, exists, select, type_coerce

from project_service.areas.error_tracking.collection import event_limits
from project_service.areas.error_tracking.settings.models import ClientKey, ErrorIgnoreRule, ErrorTrackingSetting
from project_service.domain.instance_settings import SETTINGS, some_settings, value_of
from project_service.domain.projects import Project
from project_service.domain.rate_limits import NOW, WINDOWS
from project_service.kit import clock
from project_service.kit.db.base import Base
from project_service.kit.db.session import db
from project_service.kit.security import key_ring

EVENT_LIMIT = "error_tracking_event_limit"
RETENTION_DAYS = "error_tracking_retention_days"
EVENTS_PER_ERROR = "error_tracking_events_per_error"
ERRORS_PER_PROJECT = "error_tracking_errors_per_project"
MAX_EVENT_BYTES = "error_tracking_max_event_size"
LIMITS = {
    EVENT_LIMIT: "event_limit",
    EVENTS_PER_ERROR: "events_per_error",
    ERRORS_PER_PROJECT: "errors_per_project",
    MAX_EVENT_BYTES: "max_event_bytes",
}


@dataclass(frozen=True, slots=True)
class EventReceiver:
    """A project that takes events, and its limits: events a minute, stored events of an error, errors, bytes.

    ``wait`` is the time until it takes events again, if it has had too many in this minute.
    """

    project_id: int
    stores_addresses: bool
    hidden_keys: tuple[str, ...]
    encrypted_digest_key: str | None
    event_limit: int
    events_per_error: int
    errors_per_project: int
    max_event_bytes: int
    has_ignore_rules: bool = False
    wait: dt.timedelta | None = None

    @property
    def user_digest_key(self) -> str | None:
        """The key of the digests of users; decrypted where it is needed, since most events name no user."""
        return None if self.encrypted_digest_key is None else key_ring.decrypt(self.encrypted_digest_key)


def find_receiver(project_id: int, public_key: str) -> EventReceiver | None:
    """Return the receiver of a project and one of its keys; ``None`` if anything is missing or switched off."""
    now = clock.now()
    values = {"project": project_id, "key": public_key, "window": event_limits.counter_of(project_id).key, "now": now}
    row: Any = db.session.connection().execute(FIND, values).first()
    if row is None:
        return None
    addresses, hidden, digest_key, has_rules, calls, until, *stored = row
    limits = {
        field: SETTINGS[name].default if value is None else value
        for (name, field), value in zip(LIMITS.items(), stored, strict=True)
    }
    wait = until - now if calls is not None and 0 < limits["event_limit"] <= calls else None
    return EventReceiver(
        project_id, addresses, tuple(hidden or ()), digest_key, has_ignore_rules=has_rules, wait=wait, **limits
    )


def settings_of_project(project_id: int) -> EventReceiver:
    """Return the limits of a project whose event was accepted before, whatever its settings are now."""
    rules = select(ErrorIgnoreRule.id).where(ErrorIgnoreRule.project_id == project_id).limit(1)
    has_rules = db.session.scalar(rules) is not None
    limits = dict(zip(LIMITS.values(), some_settings(*LIMITS), strict=True))
    return EventReceiver(project_id, False, (), None, has_ignore_rules=has_rules, **limits)


# Core tables: the ORM takes twice the time, and every event asks this.
KEYS, PROJECTS, TRACKING, RULES = (
    Base.metadata.tables[model.__tablename__] for model in (ClientKey, Project, ErrorTrackingSetting, ErrorIgnoreRule)
)
FIND = (
    select(
        TRACKING.c.store_addresses,
        TRACKING.c.hidden_keys,
        type_coerce(TRACKING.c.user_digest_key, Text).label("digest_key"),
        exists().where(RULES.c.project_id == KEYS.c.project_id).label("has_ignore_rules"),
        WINDOWS.c.calls,
        WINDOWS.c.until,
        *(value_of(name).scalar_subquery() for name in LIMITS),
    )
    .select_from(KEYS)
    .join(PROJECTS, PROJECTS.c.id == KEYS.c.project_id)
    .join(TRACKING, TRACKING.c.project_id == KEYS.c.project_id)
    .outerjoin(WINDOWS, and_(WINDOWS.c.subject == bindparam("window"), WINDOWS.c.until > NOW))
    .where(
        KEYS.c.public_key == bindparam("key"),
        KEYS.c.project_id == bindparam("project"),
        KEYS.c.active.is_(True),
        PROJECTS.c.deleting_since.is_(None),
        TRACKING.c.enabled.is_(True),
        TRACKING.c.integrated.is_(True),
    )
)
