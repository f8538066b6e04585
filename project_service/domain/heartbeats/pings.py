"""Calls of heartbeats, and the changes of state that they make (heartbeats reference, sections 2 to 4)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import Select, delete, select

from project_service.domain.alerts.own_alerts import OwnAlert, report
from project_service.domain.heartbeats.models import CRON, DOWN, START, SUCCESS, UP, Heartbeat, HeartbeatPing
from project_service.domain.heartbeats.schedules import next_run, words_of
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.time_words import zone_named

MONITORING_TOOL = "Heartbeat"
STORED_PINGS = 100  # of each heartbeat
MAX_BODY_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class Ping:
    """A call: ``status`` is ``success``, ``fail`` or ``start``."""

    status: str
    exit_status: int | None = None
    body: bytes = b""
    method: str | None = None
    remote_address: str | None = None
    user_agent: str | None = None

    @property
    def text(self) -> str | None:
        """What is stored of the body."""
        text = self.body[:MAX_BODY_BYTES].decode("utf-8", "replace").replace("\x00", "").strip()
        return text or None


def with_id(heartbeat_id: int) -> Select[Heartbeat]:
    """Select a heartbeat, locked against other calls and checks."""
    statement = select(Heartbeat).where(Heartbeat.id == heartbeat_id)
    return statement.with_for_update().execution_options(populate_existing=True)


def record(heartbeat: Heartbeat, ping: Ping) -> None:
    """Apply a call to a locked heartbeat: open or resolve its alert if the state changes, and store the call."""
    now = clock.now()
    duration = None
    if ping.status != START and heartbeat.started_at is not None:
        duration = (now - heartbeat.started_at).total_seconds()
    if ping.status == START:
        _start(heartbeat, now)
    elif ping.status == SUCCESS:
        _succeed(heartbeat, now)
    else:
        _fail(heartbeat, now, ping)
    heartbeat.last_ping_at, heartbeat.last_status = now, ping.status
    db.session.add(
        HeartbeatPing(
            heartbeat_id=heartbeat.id,
            created_at=now,
            status=ping.status,
            exit_status=ping.exit_status,
            duration=duration,
            method=ping.method,
            remote_address=ping.remote_address,
            user_agent=ping.user_agent,
            body=ping.text,
        )
    )
    db.session.flush()
    _prune(heartbeat)


def expect_next(heartbeat: Heartbeat, after: dt.datetime) -> None:
    """Set when the next call is due, and when it is missing."""
    heartbeat.due_at = due_after(heartbeat, after)
    heartbeat.missing_at = heartbeat.due_at + heartbeat.grace


def due_after(heartbeat: Heartbeat, moment: dt.datetime) -> dt.datetime:
    """Return when a call is due that follows one at this moment."""
    if heartbeat.kind == CRON:
        return next_run(heartbeat.schedule or "", zone_named(heartbeat.time_zone) or dt.UTC, moment)
    return moment + dt.timedelta(seconds=heartbeat.period_seconds)


def expect_none(heartbeat: Heartbeat) -> None:
    """Expect no call: the heartbeat is down or paused."""
    heartbeat.due_at = heartbeat.missing_at = heartbeat.started_at = None


def open_missing(heartbeat: Heartbeat) -> None:
    """Set a locked heartbeat down whose call did not come, and open its alert."""
    title, started_at = f"Heartbeat missing: {heartbeat.name}", heartbeat.due_at or clock.now()
    grace = words_of(heartbeat.grace_seconds)
    if heartbeat.started_at is not None and heartbeat.missing_at == heartbeat.started_at + heartbeat.grace:
        description = f"Started at {_shown(heartbeat.started_at)}; no success within {grace}."
        started_at = heartbeat.started_at
    else:
        description = (
            f"No call since {_shown(heartbeat.last_ping_at)}; expected {expectation(heartbeat)}, grace {grace}."
        )
    _set_down(heartbeat, title, description, started_at)


def expectation(heartbeat: Heartbeat) -> str:
    """Return how often calls are expected, in words."""
    if heartbeat.kind == CRON:
        return f"by the schedule {heartbeat.schedule} ({heartbeat.time_zone})"
    return f"every {words_of(heartbeat.period_seconds)}"


def _start(heartbeat: Heartbeat, now: dt.datetime) -> None:
    heartbeat.started_at = now
    if heartbeat.stored_state == DOWN:
        return
    if heartbeat.due_at is None:  # new, or paused
        expect_next(heartbeat, now)
    heartbeat.stored_state = UP
    # no success within the grace counts as missing
    heartbeat.missing_at = min(heartbeat.missing_at or now + heartbeat.grace, now + heartbeat.grace)


def _succeed(heartbeat: Heartbeat, now: dt.datetime) -> None:
    heartbeat.started_at, heartbeat.stored_state = None, UP
    expect_next(heartbeat, now)
    if heartbeat.alert_iid is not None:
        report(_alert(heartbeat, f"Heartbeat is back: {heartbeat.name}", None, now, ended_at=now))
        heartbeat.alert_iid = None


def _fail(heartbeat: Heartbeat, now: dt.datetime, ping: Ping) -> None:
    if heartbeat.stored_state == DOWN:
        heartbeat.started_at = None
        return
    lines = [f"Exit status {ping.exit_status}." if ping.exit_status else "", ping.text or ""]
    _set_down(heartbeat, f"Heartbeat failed: {heartbeat.name}", "\n\n".join(filter(None, lines)) or None, now)


def _set_down(heartbeat: Heartbeat, title: str, description: str | None, started_at: dt.datetime) -> None:
    heartbeat.alert_iid = report(_alert(heartbeat, title, description, started_at))
    heartbeat.stored_state = DOWN
    expect_none(heartbeat)


def _alert(
    heartbeat: Heartbeat,
    title: str,
    description: str | None,
    started_at: dt.datetime,
    ended_at: dt.datetime | None = None,
) -> OwnAlert:
    payload = {
        "title": title,
        "monitoring_tool": MONITORING_TOOL,
        "severity": heartbeat.severity,
        "heartbeat_id": heartbeat.id,
        "heartbeat": heartbeat.name,
        "runbook": heartbeat.runbook,
        "gitlab_environment_name": heartbeat.environment,
    }
    return OwnAlert(
        project_id=heartbeat.project_id,
        fingerprint=heartbeat.fingerprint,
        title=title,
        monitoring_tool=MONITORING_TOOL,
        started_at=started_at,
        severity=heartbeat.severity,
        description=description,
        environment=heartbeat.environment,
        ended_at=ended_at,
        payload={name: value for name, value in payload.items() if value is not None},
    )


def _prune(heartbeat: Heartbeat) -> None:
    """Remove all calls but the last ones."""
    own = select(HeartbeatPing.id).where(HeartbeatPing.heartbeat_id == heartbeat.id)
    last_removed = own.order_by(HeartbeatPing.id.desc()).offset(STORED_PINGS).limit(1).scalar_subquery()
    old = delete(HeartbeatPing).where(HeartbeatPing.heartbeat_id == heartbeat.id, HeartbeatPing.id <= last_removed)
    db.session.execute(old.execution_options(synchronize_session=False))


def _shown(moment: dt.datetime | None) -> str:
    return "ever" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"
