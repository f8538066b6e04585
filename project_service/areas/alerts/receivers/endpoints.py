"""Receivers: integrations found by their URLs, each with one statement (alert ingestion reference, section 1)."""

from __future__ import annotations

import dataclasses
import datetime as dt
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, exists, false, func, or_, select, true

from project_service.areas.alerts.models import HTTP, PROMETHEUS, AlertIntegration, FormerAddress, IncidentSetting
from project_service.areas.alerts.payloads.elements import PROMETHEUS_TOOL
from project_service.areas.alerts.receivers.grouping import Mapping
from project_service.areas.alerts.receivers.reports import ParsedAlert, ReadingRules, rules_of
from project_service.domain.accounts.bots import ALERT_BOT, id_of_bot
from project_service.domain.heartbeats.models import ALERT, Heartbeat
from project_service.domain.hooks.hook_events import has_hooks
from project_service.domain.instance_settings import RECEIVERS_THROTTLE, value_of
from project_service.domain.namespaces import NamespaceAncestor
from project_service.domain.notifications.events import has_listeners
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project
from project_service.domain.silences.models import Silence
from project_service.kit import clock
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db, insert

DEFAULT_SOURCE = "Generic Alert Endpoint"
USES_NOTED_EVERY = dt.timedelta(minutes=1)
NO_INTEGRATION = 0  # the id of a receiver of alerts that the service itself reports
projects = Project.__table__.c
heartbeats, silences, ancestors = table_of(Heartbeat).c, table_of(Silence).c, table_of(NamespaceAncestor).c
HAS_TITLE = heartbeats.matcher_title.is_not(None)  # for the index
integrations, settings = AlertIntegration.__table__.c, IncidentSetting.__table__.c


@dataclass(frozen=True, slots=True)
class AlertReceiver:
    """An integration that receives alerts, with the settings of its project that apply to them."""

    project_id: int
    full_path: str
    id: int
    type: str
    name: str
    active: bool
    token: str
    mapping: Mapping
    create_issue: bool
    auto_close_incident: bool
    throttled: bool | None
    bot_id: int | None
    notifies: bool  # notifications of its alerts may be sent
    has_hooks: bool  # of the project, of groups above it, or of the instance
    preset: str | None = None
    severity_mapping: dict[str, Any] | None = None
    resolved_values: list[str] | None = None
    time_zone: str | None = None
    has_watchdogs: bool = False  # some alerts are calls of heartbeats
    has_silences: bool = False  # some alerts may be silenced
    former_path: str | None = None  # the request came to an address from before the project was renamed or moved

    @property
    def rate_limit_subject(self) -> str | int:
        """What its requests are counted under: all Prometheus integrations of a project share a URL."""
        return f"prometheus:{self.project_id}" if self.type == PROMETHEUS else self.id

    @property
    def rules(self) -> ReadingRules:
        """How it reads payloads."""
        return rules_of(self.mapping, self.preset, self.severity_mapping, self.resolved_values, self.time_zone)

    def source_of(self, parsed: ParsedAlert) -> str:
        """The name of the source of an alert, for notes."""
        if parsed.monitoring_tool == PROMETHEUS_TOOL:
            return self.name or PROMETHEUS_TOOL
        return parsed.monitoring_tool or self.name or DEFAULT_SOURCE


class UnknownProject(Exception):
    """There is no project with this path."""


def find_endpoint(full_path: str, identifier: str) -> AlertReceiver | None:
    """The HTTP endpoint of a project with this identifier; raises ``UnknownProject``."""
    return next(iter(_receivers(ENDPOINT, full_path, identifier=identifier)), None)


def prometheus_receivers(full_path: str) -> list[AlertReceiver]:
    """The Prometheus integrations of a project, newest first; raises ``UnknownProject``."""
    return _receivers(ALL_PROMETHEUS, full_path)


def receiver_of(integration: AlertIntegration) -> AlertReceiver:
    """The receiver of an integration, for test alerts."""
    [receiver] = _receivers(BY_ID, integration.project.full_path, integration=integration.id)
    return receiver


def receiver_of_service(project_id: int) -> AlertReceiver | None:
    """The receiver of alerts that the service itself reports; ``None`` if the project is being removed."""
    row = db.session.connection().execute(WITHOUT_INTEGRATION, {"project": project_id}).first()
    if row is None:
        return None
    blank: dict[str, Any] = {"type": HTTP, "name": "", "active": True, "token": "", "mapping": {}}
    return dataclasses.replace(AlertReceiver(*row), id=NO_INTEGRATION, **blank)


def note_former_address(receiver: AlertReceiver) -> None:
    """Record that an address from before the project moved is still used, at most once in ``USES_NOTED_EVERY``."""
    now, key = clock.now(), {"integration_id": receiver.id, "path": receiver.former_path}
    statement = select(FormerAddress.last_used_at).filter_by(**key)
    last = db.session.scalar(statement)
    if receiver.former_path is None or (last is not None and now - last < USES_NOTED_EVERY):
        return
    row = insert(FormerAddress).values(**key, last_used_at=now)
    db.session.execute(row.on_conflict_do_update(index_elements=list(key), set_={"last_used_at": now}))


def _receivers(statement: Select[Any], full_path: str, **parameters: Any) -> list[AlertReceiver]:
    path, former_path = full_path.lower(), None
    connection = db.session.connection()
    rows = connection.execute(statement, {"path": path, **parameters}).all()
    if not rows and (moved_to := path_registry.path_now_of(path)) is not None:
        former_path = path
        rows = connection.execute(statement, {"path": moved_to, **parameters}).all()
    if not rows:
        raise UnknownProject
    receivers = (AlertReceiver(*row) for row in rows if row.type is not None)
    return [
        dataclasses.replace(receiver, former_path=former_path) if former_path else receiver for receiver in receivers
    ]


def _receivers_where(condition: ColumnElement[bool], project: ColumnElement[bool] | None = None) -> Select[Any]:
    """A row for each integration of a project under a condition; one without an integration when it has none.

    ``project`` selects the project, by default by its path.
    """
    by_path = func.lower(projects.full_path) == bindparam("path")
    tables = (
        Project.__table__.outerjoin(AlertIntegration.__table__, (integrations.project_id == projects.id) & condition)
    ).outerjoin(IncidentSetting.__table__, settings.project_id == projects.id)
    return (
        select(
            projects.id,
            projects.full_path,
            *(integrations[name] for name in ("id", "type", "name", "active", "token", "mapping")),
            func.coalesce(settings.create_issue, false()),
            func.coalesce(settings.auto_close_incident, true()),
            value_of(f"{RECEIVERS_THROTTLE}_enabled").scalar_subquery(),
            id_of_bot(ALERT_BOT).scalar_subquery(),
            has_listeners(projects.id, projects.namespace_id),
            has_hooks(projects.id, projects.namespace_id),
            *(integrations[name] for name in ("preset", "severity_mapping", "resolved_values", "time_zone")),
            exists().where(heartbeats.project_id == projects.id, heartbeats.kind == ALERT, HAS_TITLE),
            or_(
                exists().where(silences.project_id == projects.id, silences.finished_at.is_(None)),
                exists().where(
                    ancestors.namespace_id == projects.namespace_id,
                    silences.group_id == ancestors.ancestor_id,
                    silences.finished_at.is_(None),
                ),
            ),
        )
        .select_from(tables)
        .where(projects.deleting_since.is_(None), by_path if project is None else project)
        .order_by(integrations.id.desc())
    )


# Statements of nearly every request are built once.
ENDPOINT = _receivers_where((integrations.endpoint_identifier == bindparam("identifier")) & (integrations.type == HTTP))
ALL_PROMETHEUS = _receivers_where(integrations.type == PROMETHEUS)
BY_ID = _receivers_where(integrations.id == bindparam("integration"))
WITHOUT_INTEGRATION = _receivers_where(false(), projects.id == bindparam("project"))
