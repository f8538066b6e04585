"""The list of dependencies: components of the newest bills of materials of a branch, with their open findings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, String, cast, exists, func, or_, select
from sqlalchemy.orm import aliased

from project_service.areas.vulnerabilities.findings.queries import default_branch
from project_service.areas.vulnerabilities.models import Component, Finding, Pipeline, SecurityReport
from project_service.areas.vulnerabilities.report_types import CONTAINER_SCANNING, DEPENDENCY_SCANNING
from project_service.domain.projects import Project
from project_service.kit import exact_json
from project_service.kit.db import large_texts
from project_service.kit.db.searching import contains
from project_service.kit.db.session import begin_search, db
from project_service.kit.http.pagination import ListedRows, Listing

BILL_FORMAT = "cyclonedx"
UNKNOWN_LICENSE = "unknown"
MAX_LICENSES = 1_000
_LICENSES = cast(Component.licenses, String)
PACKAGE_TYPES = DEPENDENCY_SCANNING, CONTAINER_SCANNING


@dataclass(frozen=True, slots=True)
class Dependency:
    """A component with the open findings about its package and version."""

    project: Project
    component: Component
    findings: list[Finding]


def components_of(
    project: Project,
    branch: str | None,
    *,
    search: str | None = None,
    package_manager: Collection[str] | None = None,
    license: Collection[str] | None = None,
) -> Select[Any] | Listing:
    """Return the components of the newest bill of each scanner and category, by name and version, each package once."""
    bills = _newest_reports(project, branch, SecurityReport.format == BILL_FORMAT)
    if not bills:
        return ListedRows([])
    within = Component.report_id == bills[0] if len(bills) == 1 else Component.report_id.in_(bills)
    statement = select(Component).where(within)
    if len(bills) > 1:
        other = aliased(Component)
        same = (
            other.name == Component.name,
            other.version == Component.version,
            func.coalesce(other.purl, "") == func.coalesce(Component.purl, ""),
        )
        newer = other.report_id.in_(bills), other.report_id > Component.report_id
        statement = statement.where(~exists().where(*same, *newer))
    if search:
        statement = statement.where(contains(search, Component.name))
    if package_manager:
        statement = statement.where(Component.package_manager.in_(package_manager))
    if license:
        statement = statement.where(or_(*map(_is_licensed, license)))
    return statement.order_by(Component.name, Component.version, Component.report_id, Component.position)


def managers_of(project: Project, branch: str | None) -> list[str]:
    """Return the package managers of the components of a branch."""
    bills = _newest_reports(project, branch, SecurityReport.format == BILL_FORMAT)
    statement = select(Component.package_manager).where(Component.report_id.in_(bills)).distinct()
    return sorted(db.session.scalars(statement))


def licenses_of(project: Project, branch: str | None) -> list[str]:
    """Return the names of the first ``MAX_LICENSES`` different licenses of the components of a branch, in order."""
    bills = _newest_reports(project, branch, SecurityReport.format == BILL_FORMAT)
    statement = select(_LICENSES).where(Component.report_id.in_(bills)).distinct().order_by(_LICENSES)
    names = {
        license_entry["name"]
        for text in db.session.scalars(statement.limit(MAX_LICENSES))
        for license_entry in exact_json.loads(text)
    }
    return sorted(names)


def _is_licensed(name: str) -> ColumnElement[bool]:
    """Whether a component has a license, or none for ``UNKNOWN_LICENSE``; the column is a list of objects in JSON."""
    if name == UNKNOWN_LICENSE:
        return _LICENSES == "[]"
    begin_search()
    return _LICENSES.contains(exact_json.dumps({"name": name}).decode()[1:-1], autoescape=True)


def with_findings(project: Project, branch: str | None, components: list[Component]) -> list[Dependency]:
    """Return components with the open findings of the newest reports of a branch about them, the worst first."""
    by_package: dict[str, list[Finding]] = {}
    if components:
        reports = _newest_reports(project, branch, SecurityReport.report_type.in_(PACKAGE_TYPES))
        packages = {f"{component.name}@{version}" for component in components for version in (component.version, "")}
        statement = select(Finding).where(
            Finding.report_id.in_(reports),
            Finding.package.in_(packages),
            Finding.kept.is_(True),
            Finding.dismissed.is_(False),
        )
        for finding in large_texts.load(statement.order_by(Finding.id)):
            by_package.setdefault(finding.package or "", []).append(finding)
    return [
        Dependency(project, component, sorted(_about(component, by_package), key=lambda finding: -finding.severity))
        for component in components
    ]


def _about(component: Component, found: dict[str, list[Finding]]) -> list[Finding]:
    """Return the findings about a component, also those without a version."""
    versions = dict.fromkeys((component.version, ""))
    return [finding for version in versions for finding in found.get(f"{component.name}@{version}", ())]


def _newest_reports(project: Project, branch: str | None, condition: Any) -> list[int]:
    """Return the newest report of each type, scanner and category on a branch."""
    series = (SecurityReport.report_type, SecurityReport.scanner, SecurityReport.category)
    newest = (
        select(func.max(SecurityReport.id))
        .join(Pipeline, Pipeline.id == SecurityReport.pipeline_id)
        .where(Pipeline.project_id == project.id, Pipeline.ref == (branch or default_branch(project)), condition)
        .group_by(*series)
    )
    return list(db.session.scalars(newest))
