"""Queries of alerts and integrations."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Row, Select, func, select, union_all
from sqlalchemy.orm import joinedload, load_only, selectinload

from project_service.areas.alerts.models import (
    TARGET,
    Alert,
    AlertIntegration,
    FormerAddress,
    IncidentSetting,
    Status,
)
from project_service.domain import page_paths
from project_service.domain.access_levels import Role
from project_service.domain.memberships import MAX_CHOICES, active_members_for_choice, choice_in
from project_service.domain.projects import Project, RedirectRoute
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note, Subject, add_finder
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import RecordNotFound
from project_service.kit.http.pagination import MAX_COUNTED_ROWS

LEGACY = "legacy"
RELATED = tuple(joinedload(shown) for shown in (Alert.environment, Alert.issue, Alert.integration))
OPEN = (Status.TRIGGERED, Status.ACKNOWLEDGED)


def has_alerts(project: Project) -> bool:
    """Whether the project has any alert."""
    return db.session.scalar(select(Alert.id).where(Alert.project_id == project.id).limit(1)) is not None


def find_alert(project: Project, iid: int) -> Alert:
    """One alert by its ``iid``, with what its answer, its hooks and its events show."""
    statement = select(Alert).where(Alert.project_id == project.id, Alert.iid == iid)
    return one(statement.options(*RELATED), RecordNotFound())


def alerts_numbered(project: Project, iids: Sequence[int]) -> Select[Alert]:
    """The alerts of a project with these numbers."""
    statement = select(Alert).where(Alert.project_id == project.id, Alert.iid.in_(iids))
    return statement.order_by(Alert.iid).options(NO_LAZY_LOADING)


def add_open_alerts(environments: Sequence[Environment], most: int) -> None:
    """Set ``open_alerts`` and ``open_alerts_count`` on each environment of a page, with two statements for all.

    They are the newest alerts; the count goes up to ``MAX_COUNTED_ROWS``.
    """
    ids = [environment.id for environment in environments]
    newest = union_all(*(select(_newest_open(number).limit(most).subquery().c.id) for number in ids))
    by_environment: dict[int | None, list[Alert]] = {}
    alerts = select(Alert).where(Alert.id.in_(newest)).order_by(Alert.started_at.desc(), Alert.id.desc())
    for alert in db.session.scalars(alerts.options(NO_LAZY_LOADING)):
        by_environment.setdefault(alert.environment_id, []).append(alert)
    opened = select(1).where(Alert.environment_id == Environment.id, Alert.status.in_(OPEN)).correlate(Environment)
    counted = select(func.count()).select_from(opened.limit(MAX_COUNTED_ROWS).subquery()).scalar_subquery()
    counts: dict[int, int] = dict(
        db.session.execute(select(Environment.id, counted).where(Environment.id.in_(ids))).all()
    )
    for environment in environments:
        environment.open_alerts = by_environment.get(environment.id, [])
        environment.open_alerts_count = counts.get(environment.id, 0)


def _newest_open(environment_id: int) -> Select[int]:
    statement = select(Alert.id).where(Alert.environment_id == environment_id, Alert.status.in_(OPEN))
    return statement.order_by(Alert.started_at.desc(), Alert.id.desc())


def alerts_of_issue(issue: Issue) -> Select[Alert]:
    """The alerts of an incident."""
    return select(Alert).where(Alert.issue_id == issue.id).order_by(Alert.id)


def integrations_of(project: Project) -> Select[AlertIntegration]:
    """The integrations of a project, newest first."""
    statement = select(AlertIntegration).where(AlertIntegration.project_id == project.id)
    return statement.order_by(AlertIntegration.id.desc())


def integration_names(project: Project) -> Sequence[AlertIntegration]:
    """The integrations of a project with their names only, newest first."""
    columns = load_only(AlertIntegration.name, AlertIntegration.type, AlertIntegration.active, raiseload=True)
    return db.session.scalars(integrations_of(project).options(columns)).all()


def find_integration(project: Project, integration_id: int) -> AlertIntegration:
    """One integration of a project by its id."""
    return one(integrations_of(project).where(AlertIntegration.id == integration_id), RecordNotFound())


def has_short_address(project: Project) -> bool:
    """Whether the project has an endpoint with the legacy URL."""
    here = select(AlertIntegration.id).where(AlertIntegration.project_id == project.id)
    return db.session.scalar(here.where(AlertIntegration.endpoint_identifier == LEGACY)) is not None


def has_environment(project: Project, name: str) -> bool:
    """Whether the project has an environment of exactly this name."""
    statement = select(Environment.id).where(Environment.project_id == project.id, Environment.name == name)
    return db.session.scalar(statement.limit(1)) is not None


def incident_setting_of(project_id: int) -> IncidentSetting:
    """The incident settings of a project, or the defaults."""
    stored = db.session.scalar(select(IncidentSetting).where(IncidentSetting.project_id == project_id))
    return stored or IncidentSetting(
        project_id=project_id,
        create_issue=False,
        auto_close_incident=True,
    )


def assignable_users(project: Project, most: int = MAX_CHOICES) -> Sequence[Row[int, str, str]]:
    """The people to whom alerts of a project can be assigned: id, name and username."""
    return db.session.execute(active_members_for_choice(), choice_in(project, Role.DEVELOPER, most)).all()


def former_addresses(project: Project, integrations: Sequence[AlertIntegration]) -> dict[str, list[FormerAddress]]:
    """The former paths of a project, each with what integrations received there."""
    paths = select(RedirectRoute.path).where(RedirectRoute.project_id == project.id).order_by(RedirectRoute.path)
    addresses: dict[str, list[FormerAddress]] = {path: [] for path in db.session.scalars(paths)}
    uses = select(FormerAddress).where(
        FormerAddress.integration_id.in_([integration.id for integration in integrations])
    )
    for use in db.session.scalars(uses.order_by(FormerAddress.integration_id).options(NO_LAZY_LOADING)):
        if use.path in addresses:
            addresses[use.path].append(use)
    return addresses


def notes_of(alert: Alert) -> Select[Note]:
    """The notes of an alert, oldest first."""
    statement = select(Note).where(Note.noteable_type == TARGET, Note.noteable_id == alert.id)
    return statement.order_by(Note.created_at, Note.id).options(selectinload(Note.author), NO_LAZY_LOADING)


def subjects(ids: Collection[int]) -> dict[int, Subject]:
    """Load alerts as subjects of feeds, without their payloads, which may be large."""
    rows = db.session.execute(select(Alert.id, Alert.iid, Alert.title).where(Alert.id.in_(ids)))
    return {number: Subject(title, "alert", page_paths.alert(iid)) for number, iid, title in rows}


add_finder(TARGET, subjects)
