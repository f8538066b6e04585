"""Dismissal of many findings: those that are selected in a list, or all that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from sqlalchemy import Select

from project_service.areas.vulnerabilities.findings import service
from project_service.areas.vulnerabilities.models import TrackedFindingState
from project_service.areas.vulnerabilities.tracking import queries, trend
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid

MAX_FINDINGS = 500  # of one request


@dataclass(frozen=True, slots=True)
class BulkDismissal:
    """How many findings were dismissed, and whether there are more; ``refused`` could not be recognised again."""

    dismissed: int
    refused: int
    is_cut: bool


def dismiss_findings(
    author: User, project: Project, selected: Select[TrackedFindingState], **fields: Unpack[service.DismissalFields]
) -> BulkDismissal:
    """Dismiss at most ``MAX_FINDINGS`` detected findings with the same reason and comment.

    Raises:
        Invalid: there is none.

    """
    rows = list(db.session.scalars(selected.limit(MAX_FINDINGS + 1)))
    queries.prepare(rows)
    chosen = rows[:MAX_FINDINGS]
    if not chosen:
        raise Invalid(base="Select findings that are not dismissed yet.")
    recognised = [row for row in chosen if service.is_recognised(row.finding)]
    for row in recognised:
        service.dismiss(author, project, row.finding, records_trend=False, **fields)
    trend.record(project.id, {row.ref for row in recognised})
    return BulkDismissal(len(recognised), len(chosen) - len(recognised), len(rows) > MAX_FINDINGS)
