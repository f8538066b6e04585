"""Levels and quiet hours of users (notifications reference, section 8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack
from zoneinfo import available_timezones

from sqlalchemy import Select, select

from project_service.areas.notifications.models import QuietHours
from project_service.areas.notifications.personal import quiet_hours
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace
from project_service.domain.notifications.models import (
    ALERT_RESOLVED,
    ALERT_TRIGGERED,
    CUSTOM,
    ERROR_REGRESSION,
    GLOBAL,
    INCIDENT_OPENED,
    LEVELS,
    NEW_ERROR,
    NEW_FINDING,
    NotificationSetting,
)
from project_service.domain.projects import Project
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, insert
from project_service.kit.http.errors import BadRequest, Invalid

PARTICIPATING = "participating"
OWN_EVENTS = (ALERT_TRIGGERED, ALERT_RESOLVED, NEW_ERROR, ERROR_REGRESSION, NEW_FINDING, INCIDENT_OPENED)
EVENTS = (
    *("new_release", "new_note", "new_issue", "reopen_issue", "close_issue", "reassign_issue", "issue_due"),
    *("new_merge_request", "push_to_merge_request", "reopen_merge_request", "close_merge_request"),
    *("reassign_merge_request", "change_reviewer_merge_request", "merge_merge_request", "failed_pipeline"),
    *("fixed_pipeline", "success_pipeline", "moved_project", "merge_when_pipeline_succeeds"),
)
PIPELINES = (
    "service_account_failed_pipeline",
    "service_account_success_pipeline",
    "service_account_fixed_pipeline",
)
FURTHER = {
    "project": ("approver", *PIPELINES),
    "group": ("new_epic", *PIPELINES),
    "global": ("new_epic", *PIPELINES, "approver"),
}
TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
Place = Project | Namespace | None


def kind_of(place: Place) -> str:
    """Return ``project``, ``group`` or ``global``."""
    return "global" if place is None else "project" if isinstance(place, Project) else "group"


def events_of(place: Place) -> tuple[str, ...]:
    """Return the events of a place, in the order of answers."""
    return (*EVENTS, *FURTHER[kind_of(place)], *OWN_EVENTS)


def find_setting(user: User, place: Place) -> NotificationSetting | None:
    """Return the setting that a user has made for a project, a group or everywhere."""
    return db.session.scalar(_setting(user, place))


def shown_setting(user: User, place: Place) -> dict[str, Any]:
    """Return a setting as clients see it; nothing is written for one that was never made."""
    setting = find_setting(user, place)
    level = setting.level if setting is not None else PARTICIPATING if place is None else GLOBAL
    level = PARTICIPATING if place is None and level == GLOBAL else level
    fields: dict[str, Any] = {"level": level}
    if level == CUSTOM and setting is not None:
        fields["events"] = {name: setting.events.get(name) for name in events_of(place)}
    if place is None:
        return fields | {"notification_email": (setting and setting.notification_email) or user.email}
    if setting is None:
        return fields
    return fields | {"notification_email": setting.notification_email, "notification_channel_id": None}


def save_setting(
    user: User, place: Place, *, level: str | None = None, notification_email: str | None = None, **events: bool | None
) -> dict[str, Any]:
    """Change a setting; without parameters nothing is written."""
    if level is not None and level not in LEVELS:
        raise BadRequest(f"'{level}' is not a valid level")
    if notification_email and notification_email.lower() != user.email.lower():
        raise Invalid(notification_email="must be an email you have verified")
    chosen = {name: value for name, value in events.items() if name in events_of(place) and value is not None}
    if level is None and notification_email is None and not chosen:
        return shown_setting(user, place)
    setting = _stored(user, place)
    if level is not None:
        setting.level = level
    if notification_email is not None:
        setting.notification_email = notification_email or None
    setting.events = setting.events | chosen
    db.session.flush()
    return shown_setting(user, place)


def settings_of(user: User) -> list[NotificationSetting]:
    """Return the settings that a user has made for projects and groups, the newest first."""
    statement = select(NotificationSetting).where(
        NotificationSetting.user_id == user.id,
        NotificationSetting.project_id.is_not(None) | NotificationSetting.group_id.is_not(None),
    )
    return list(db.session.scalars(statement.order_by(NotificationSetting.id.desc()).limit(100)))


def shown_quiet_hours(user: User) -> dict[str, Any]:
    """Return the quiet hours of a user, or the defaults."""
    hours = quiet_hours.of_user(user.id) or QuietHours(
        enabled=False, time_zone="UTC", days=quiet_hours.ALL_DAYS, starts="22:00", ends="07:00", except_critical=True
    )
    return {
        "enabled": hours.enabled,
        "time_zone": hours.time_zone,
        "days": hours.days,
        "starts": hours.starts,
        "ends": hours.ends,
        "except_critical": hours.except_critical,
    }


class QuietHoursFields(TypedDict, total=False):
    """What may be given of quiet hours; times such as 22:00, days from 1 (Monday) to 7."""

    enabled: bool | None
    time_zone: str | None
    days: Sequence[int] | None
    starts: str | None
    ends: str | None
    except_critical: bool | None


def save_quiet_hours(user: User, **fields: Unpack[QuietHoursFields]) -> dict[str, Any]:
    """Change the quiet hours of a user."""
    changed = {name: value for name, value in fields.items() if value is not None}
    values = shown_quiet_hours(user) | changed
    problems = {}
    if values["time_zone"] not in available_timezones():
        problems["time_zone"] = "is not included in the list"
    for attribute, name in (("starts", "from"), ("ends", "to")):
        if not TIME.fullmatch(values[attribute]):
            problems[name] = "must be a time such as 22:00"
    if not values["days"]:
        problems["days"] = "is empty"
    if problems:
        raise Invalid(**problems)
    values["days"] = sorted(set(values["days"]))
    row = insert(QuietHours).values(user_id=user.id, **values)
    db.session.execute(row.on_conflict_do_update(index_elements=["user_id"], set_=values))
    db.session.expire_all()
    return shown_quiet_hours(user)


def _setting(user: User, place: Place) -> Select[NotificationSetting]:
    setting = NotificationSetting
    own = select(setting).where(setting.user_id == user.id)
    if place is None:
        return own.where(setting.project_id.is_(None), setting.group_id.is_(None))
    return own.where(setting.project_id == place.id if isinstance(place, Project) else setting.group_id == place.id)


def _stored(user: User, place: Place) -> NotificationSetting:
    """Return the row of a setting, locked; a new one has the default level."""
    values: dict[str, Any] = {
        "user_id": user.id,
        "project_id": place.id if isinstance(place, Project) else None,
        "group_id": place.id if isinstance(place, Namespace) else None,
        "level": PARTICIPATING if place is None else GLOBAL,
        "events": {},
    }
    db.session.execute(insert(NotificationSetting).values(**values).on_conflict_do_nothing())
    setting = db.session.scalars(_setting(user, place)).one()
    lock_row(setting, "level", "events", "notification_email")
    return setting
