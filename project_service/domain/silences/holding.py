"""Which silences match an alert now, and the record of what they matched and held back (silences reference, 3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blinker import Namespace
from sqlalchemy import ColumnElement, Select, and_, select, update
from sqlalchemy.orm import joinedload

from project_service.domain.alerts import alert_actions
from project_service.domain.namespaces import NamespaceAncestor, descendants_of
from project_service.domain.notifications.models import (
    ALERT,
    ALERT_ACKNOWLEDGED,
    ALERT_REOPENED,
    ALERT_TRIGGERED,
    OPENING,
    NotificationEvent,
)
from project_service.domain.projects import Project
from project_service.domain.silences.matching import Facts, holds_all
from project_service.domain.silences.models import Silence, SilencedAlert
from project_service.kit import clock
from project_service.kit.db.base import Base
from project_service.kit.db.session import NO_LAZY_LOADING, db, insert

_signals = Namespace()
begun = _signals.signal("silence-begun", doc="Sent with a ``Silence``: receivers match the alerts that are open.")
ended = _signals.signal("silence-ended", doc="Sent with a ``Silence`` and ``alert_ids``, which it held back.")
ROWS_AT_ONCE = 500
CLEARED_TIME = dt.timedelta(minutes=10)
HELD_KINDS = (ALERT_TRIGGERED, ALERT_REOPENED, ALERT_ACKNOWLEDGED)


def is_active() -> ColumnElement[bool]:
    """Return the condition that a silence is active now."""
    now = clock.now()
    return and_(Silence.finished_at.is_(None), Silence.starts_at <= now, Silence.ends_at > now)


def applies_to(project_id: int) -> ColumnElement[bool]:
    """Return the condition for the silences of a project and of the groups above it."""
    above = select(NamespaceAncestor.ancestor_id).join(Project, Project.namespace_id == NamespaceAncestor.namespace_id)
    ids = select(Silence.id)
    # PostgreSQL would read them all for a condition with OR
    of_groups = ids.where(Silence.group_id.in_(above.where(Project.id == project_id)))
    return Silence.id.in_(ids.where(Silence.project_id == project_id).union_all(of_groups))


def projects_of(silence: Silence) -> Select[int]:
    """Select the ids of the projects that a silence concerns."""
    if silence.group is None:
        return select(Project.id).where(Project.id == silence.project_id)
    return select(Project.id).where(Project.namespace_id.in_(descendants_of(silence.group)))


def has_active(project_id: int) -> bool:
    """Whether a silence concerns a project now."""
    return db.session.scalar(select(Silence.id).where(applies_to(project_id), is_active()).limit(1)) is not None


def silences_matching(project_id: int, alerts: Mapping[int, Facts]) -> dict[int, list[Silence]]:
    """Return the active silences that match alerts of a project, by the id of the alert; others have no entry."""
    active = select(Silence).where(applies_to(project_id), is_active()).order_by(Silence.ends_at, Silence.id)
    silences = list(db.session.scalars(active))
    matching_silences = {
        number: [silence for silence in silences if holds_all(silence.matchers, facts)]
        for number, facts in alerts.items()
    }
    return {number: matching for number, matching in matching_silences.items() if matching}


def record(matched: Mapping[int, Iterable[Silence]], *, held_back: bool) -> None:
    """Store which alerts silences have matched; that one was held back is never taken back."""
    rows: list[dict[str, Any]] = [
        {"silence_id": silence.id, "alert_id": alert_id, "held_back": held_back}
        for alert_id in sorted(matched)
        for silence in matched[alert_id]
    ]
    statement = insert(SilencedAlert)
    if held_back:
        keys = ["silence_id", "alert_id"]
        statement = statement.on_conflict_do_update(index_elements=keys, set_={"held_back": True})
    else:
        statement = statement.on_conflict_do_nothing()
    for start in range(0, len(rows), ROWS_AT_ONCE):
        db.session.execute(statement, rows[start : start + ROWS_AT_ONCE])


def held(events: Sequence[NotificationEvent]) -> dict[int, list[int]]:
    """Return the ids of the silences that hold back events of alerts of one project, by the id of the event.

    Ends of alerts are not held back: they are sent to those who were notified of the opening.
    """
    wanted = [event for event in events if event.subject_type == ALERT and event.kind in HELD_KINDS]
    if not wanted:
        return {}
    facts = {event.id: event.snapshot | {"severity": event.severity} for event in wanted}
    matched = silences_matching(wanted[0].project_id, facts)
    openings = [event for event in wanted if event.id in matched and event.kind in OPENING]
    existing = select(Base.metadata.tables["alerts"].c.id)
    existing = existing.where(existing.selected_columns.id.in_([event.subject_id for event in openings]))
    stored_ids = set(db.session.scalars(existing)) if openings else set[int]()
    record(
        {event.subject_id: matched[event.id] for event in openings if event.subject_id in stored_ids}, held_back=True
    )
    return {number: [silence.id for silence in silences] for number, silences in matched.items()}


def silences_of(alert_ids: Iterable[int]) -> dict[int, Silence]:
    """Return the active silence that lasts longest of each alert that is silenced, by the id of the alert."""
    silenced = (
        select(SilencedAlert.alert_id, Silence)
        .join(Silence, Silence.id == SilencedAlert.silence_id)
        .where(SilencedAlert.alert_id.in_(list(alert_ids)), is_active())
        .order_by(Silence.ends_at, Silence.id.desc())
        .options(joinedload(Silence.created_by), NO_LAZY_LOADING)
    )
    rows: Any = db.session.execute(silenced).all()
    return dict(rows)


def finish(silence: Silence) -> None:
    """End a silence that has expired: have announced what it held back, unless another silence goes on holding it."""
    held = select(SilencedAlert.alert_id).where(
        SilencedAlert.silence_id == silence.id, SilencedAlert.held_back.is_(True)
    )
    alert_ids = list(db.session.scalars(held.order_by(SilencedAlert.alert_id)))
    silence.finished_at = clock.now()
    db.session.flush()
    for start in range(0, len(alert_ids), ROWS_AT_ONCE):
        some = alert_ids[start : start + ROWS_AT_ONCE]
        others = select(Silence.id).where(is_active())
        by_others = SilencedAlert.alert_id.in_(some) & SilencedAlert.silence_id.in_(others)
        still_held = set(db.session.scalars(select(SilencedAlert.alert_id).where(by_others)))
        held_on = update(SilencedAlert).where(by_others).values(held_back=True)
        db.session.execute(held_on.execution_options(synchronize_session=False))
        ended.send(silence, alert_ids=[number for number in some if number not in still_held])


def end_when_resolved(silence: Silence) -> None:
    """End a silence for which nothing that it matched has been open for ``CLEARED_TIME``."""
    now = clock.now()
    matched = select(SilencedAlert.alert_id).where(SilencedAlert.silence_id == silence.id)
    alert_ids = list(db.session.scalars(matched.order_by(SilencedAlert.alert_id.desc())))
    portions = (alert_ids[start : start + ROWS_AT_ONCE] for start in range(0, len(alert_ids), ROWS_AT_ONCE))
    if any(alert_actions.open_among(some, acknowledged=True) for some in portions):
        silence.cleared_at = None
    elif silence.cleared_at is None:
        silence.cleared_at = now
    elif now - silence.cleared_at >= CLEARED_TIME:
        silence.ends_at = silence.ended_at = now
