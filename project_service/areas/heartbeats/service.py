"""Create, change, pause and delete heartbeats (heartbeats reference, section 1)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from project_service.access import audit
from project_service.areas.heartbeats import queries
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.heartbeats import pings
from project_service.domain.heartbeats.models import ALERT, CRON, INTERVAL, NEW, PAUSED, UP, Heartbeat
from project_service.domain.heartbeats.schedules import is_expression
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import add_unique, db, unique
from project_service.kit.http.errors import BadParameters, Invalid
from project_service.kit.security.tokens import digest
from project_service.kit.time_words import zone_named

MAX_HEARTBEATS = 100  # of a project
MAX_CHARACTERS = {"name": 100, "environment": 255, "matcher_title": 200, "runbook": 1024}
MIN_SECONDS, MAX_SECONDS = 60, 31_536_000
KEY_BYTES = 16
DEFAULT_PERIOD_SECONDS, DEFAULT_GRACE_SECONDS = 86_400, 3_600
DEFAULT_TITLE = "Watchdog"
TAKEN = Invalid(name="has already been taken")
UNAUDITED = ("state", "stored_state", "last_ping_at", "last_status", "started_at", "due_at", "missing_at", "alert_iid")
TIMING = ("kind", "period_seconds", "schedule", "time_zone", "grace_seconds")


class HeartbeatFields(TypedDict, total=False):
    """What may be given of a heartbeat; ``period`` and ``grace`` are seconds."""

    name: str
    kind: str
    period: int | None
    schedule: str | None
    time_zone: str | None
    matcher_title: str | None
    grace: int | None
    severity: str
    environment: str | None
    runbook: str | None


def create_heartbeat(project: Project, **fields: Unpack[HeartbeatFields]) -> Heartbeat:
    """Create a heartbeat, which waits for its first call for ever.

    Raises:
        Invalid: a value is not valid, the name is taken, or the project has too many.

    """
    if queries.number_of_heartbeats(project) >= MAX_HEARTBEATS:
        raise Invalid(base=f"Maximum number of heartbeats ({MAX_HEARTBEATS}) exceeded")
    heartbeat = Heartbeat(
        project_id=project.id,
        kind=INTERVAL,
        period_seconds=DEFAULT_PERIOD_SECONDS,
        grace_seconds=DEFAULT_GRACE_SECONDS,
        time_zone="UTC",
        severity="critical",
        stored_state=NEW,
    )
    _set_key(heartbeat)
    _assign(heartbeat, fields)
    add_unique(heartbeat, TAKEN)
    _record(project, heartbeat, "created", f"Added heartbeat {heartbeat.name}")
    return heartbeat


def update_heartbeat(project: Project, heartbeat: Heartbeat, **fields: Unpack[HeartbeatFields]) -> Heartbeat:
    """Change a heartbeat; with another schedule the next call is due by it."""
    if not fields:
        raise BadParameters("No parameters provided")
    heartbeat = _locked(heartbeat)
    before = audit.settings_of(heartbeat, UNAUDITED)
    timing = [getattr(heartbeat, name) for name in TIMING]
    with unique(TAKEN), db.session.no_autoflush:
        _assign(heartbeat, fields)
    if heartbeat.stored_state == UP and timing != [getattr(heartbeat, name) for name in TIMING]:
        pings.expect_next(heartbeat, heartbeat.last_ping_at or clock.now())
        if heartbeat.missing_at is not None and heartbeat.missing_at <= clock.now():
            pings.expect_next(heartbeat, clock.now())  # the caller has not heard of the shorter period yet
    target = AuditTarget("Heartbeat", heartbeat.id, heartbeat.name)
    audit.record_changes("heartbeat", project, before, audit.settings_of(heartbeat, UNAUDITED), target=target)
    db.session.flush()
    return heartbeat


def delete_heartbeat(project: Project, heartbeat: Heartbeat) -> None:
    """Remove a heartbeat with its calls; an alert of it stays."""
    delete_locked(heartbeat)
    _record(project, heartbeat, "destroyed", f"Removed heartbeat {heartbeat.name}")


def pause_heartbeat(project: Project, heartbeat: Heartbeat) -> Heartbeat:
    """Expect no calls until the next one, or until it is resumed."""
    heartbeat = _locked(heartbeat)
    heartbeat.stored_state = PAUSED
    pings.expect_none(heartbeat)
    _record(project, heartbeat, "paused", f"Paused heartbeat {heartbeat.name}")
    return heartbeat


def resume_heartbeat(project: Project, heartbeat: Heartbeat) -> Heartbeat:
    """End a pause: a whole period begins now; one that was never called waits for its first call."""
    heartbeat = _locked(heartbeat)
    if heartbeat.stored_state == PAUSED:
        heartbeat.stored_state = NEW if heartbeat.last_ping_at is None else UP
        if heartbeat.stored_state == UP:
            pings.expect_next(heartbeat, clock.now())
        _record(project, heartbeat, "resumed", f"Resumed heartbeat {heartbeat.name}")
    return heartbeat


def rotate_key(project: Project, heartbeat: Heartbeat) -> Heartbeat:
    """Replace the key: the former URL is unknown at once."""
    heartbeat = _locked(heartbeat)
    _set_key(heartbeat)
    _record(project, heartbeat, "key_rotated", f"Replaced the key of heartbeat {heartbeat.name}")
    return heartbeat


def _locked(heartbeat: Heartbeat) -> Heartbeat:
    return db.session.scalars(pings.with_id(heartbeat.id)).one()


def _set_key(heartbeat: Heartbeat) -> None:
    heartbeat.key = secrets.token_hex(KEY_BYTES)
    heartbeat.key_digest = digest(heartbeat.key)


def _assign(heartbeat: Heartbeat, fields: Mapping[str, Any]) -> None:
    """Set the fields, or raise ``Invalid`` and set none."""
    renamed = {"period": "period_seconds", "grace": "grace_seconds"}
    values = {renamed.get(name, name): value for name, value in fields.items()}
    values = {name: (value or None) if name in ("environment", "runbook") else value for name, value in values.items()}
    merged = {name: values.get(name, getattr(heartbeat, name)) for name in (*TIMING, "matcher_title")}
    if merged["kind"] == ALERT:
        values["matcher_title"] = (merged["matcher_title"] or "").strip() or DEFAULT_TITLE
    else:
        values["matcher_title"] = None
    if merged["kind"] == CRON:
        values["schedule"] = " ".join((merged["schedule"] or "").split())
        merged["schedule"] = values["schedule"]
    if problems := _problems(values, merged):
        raise Invalid(**problems)
    for name, value in values.items():
        setattr(heartbeat, name, value)


def _problems(values: dict[str, Any], merged: dict[str, Any]) -> dict[str, str]:
    problems = {
        name: f"is too long (maximum is {limit} characters)"
        for name, limit in MAX_CHARACTERS.items()
        if len(values.get(name) or "") > limit
    }
    if "name" in values and not (values["name"] or "").strip():
        problems["name"] = "can't be blank"
    for name in ("period", "grace"):
        if not MIN_SECONDS <= (merged[f"{name}_seconds"] or 0) <= MAX_SECONDS:
            problems[name] = f"must be between {MIN_SECONDS} and {MAX_SECONDS} seconds"
    if zone_named(merged["time_zone"] or "") is None:
        problems["time_zone"] = "is not a known time zone"
    if merged["kind"] == CRON and not is_expression(merged["schedule"]):
        problems["schedule"] = "is not a valid cron expression"
    runbook = values.get("runbook") or ""
    if runbook and not runbook.startswith(("http://", "https://")):
        problems["runbook"] = "must be an HTTP URL"
    return problems


def _record(project: Project, heartbeat: Heartbeat, change: str, text: str) -> None:
    db.session.flush()
    audit.record(f"heartbeat_{change}", project, text, target=AuditTarget("Heartbeat", heartbeat.id, heartbeat.name))
