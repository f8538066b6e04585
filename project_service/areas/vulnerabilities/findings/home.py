"""The panel of new findings on the home page, the page of a group and the wall; the health mark of findings."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select, true

from project_service.access.identity import Caller
from project_service.access.page_parts import health_marks, panels
from project_service.access.page_parts.home_scope import HomeScope
from project_service.access.rules import projects_with
from project_service.areas.vulnerabilities.findings.queries import FALLBACK_BRANCH
from project_service.areas.vulnerabilities.models import Finding, TrackedFinding, TrackedFindingState
from project_service.areas.vulnerabilities.severity_order import FindingRank
from project_service.areas.vulnerabilities.tracking.states import DETECTED
from project_service.domain import instance_settings
from project_service.domain.access_levels import Role
from project_service.domain.memberships import authorized_projects
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.first_rows import first_of_each
from project_service.kit.db.session import db

MAX_SHOWN, MAX_PER_PROJECT = 10, 20
NEW_FOR = dt.timedelta(days=7)
NEWEST_FIRST = (TrackedFinding.first_seen_at.desc(), TrackedFinding.id.desc())


def fill(scope: HomeScope) -> dict[str, Any]:
    """Return the findings of default branches that reports of the last week have found first, the newest first."""
    first = first_of_each(
        scope.projects(Role.DEVELOPER),
        TrackedFinding,
        TrackedFinding.project_id,
        [TrackedFinding.first_seen_at > clock.now() - NEW_FOR],
        NEWEST_FIRST,
        MAX_PER_PROJECT,
    )
    findings = (
        select(TrackedFinding.name, TrackedFinding.first_seen_at, Finding.id, Finding.sort, Project.full_path)
        .join(TrackedFindingState, TrackedFindingState.tracked_id == TrackedFinding.id)
        .join(Finding, Finding.id == TrackedFindingState.finding_id)
        .join(Project, Project.id == TrackedFinding.project_id)
        .where(TrackedFinding.id.in_(first), *_is_open(), projects_with(scope.caller, "security_and_compliance"))
    )
    rows = db.session.execute(findings.order_by(*NEWEST_FIRST).limit(MAX_SHOWN)).all()
    return {"findings": [(row, FindingRank.of(row.sort).severity) for row in rows]}


def _is_open() -> tuple[ColumnElement[bool], ...]:
    """The condition for findings of default branches that are neither resolved nor dismissed."""
    fallback = instance_settings.setting("default_branch_name") or FALLBACK_BRANCH
    is_default = TrackedFindingState.ref == func.coalesce(Project.default_branch, fallback)
    return TrackedFindingState.state == str(DETECTED), is_default, TrackedFindingState.dismissed.is_(False)


def _open_findings() -> Select[int]:
    findings = select(TrackedFindingState.tracked_id)
    return findings.where(TrackedFindingState.project_id == Project.id, *_is_open())


def _readable(caller: Caller) -> ColumnElement[bool]:
    """The condition for projects whose findings the caller may read: that of ``READ_VULNERABILITIES``."""
    is_developer = Project.id.in_(authorized_projects(caller.user_id or 0, Role.DEVELOPER))
    return and_(true() if caller.admin else is_developer, projects_with(caller, "security_and_compliance"))


for _page in ("home", "wall"):
    panels.add(panels.Panel(_page, 40, f"vulnerabilities/{_page}.html", fill))
health_marks.add(
    health_marks.HealthMark(
        noun="finding",
        tone="warn",
        order=30,
        path="/-/security/dashboard",
        counted=_open_findings,
        readable=_readable,
    )
)
