"""What an import has brought, counted per kind when it ends."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from project_service.domain.memberships import Membership
from project_service.domain.repositories.releases import Release
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.labels import Label
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db

COUNTED: dict[str, Any] = {  # by the noun that pages show
    "issues": Issue,
    "merge requests": MergeRequest,
    "comments and system notes": Note,
    "labels": Label,
    "milestones": Milestone,
    "releases": Release,
    "members": Membership,
}


def counts_of(project_id: int) -> dict[str, int]:
    """Return the number of rows of a project per kind, each by an index."""
    counts = (
        select(func.count()).where(model.project_id == project_id).scalar_subquery() for model in COUNTED.values()
    )
    return dict(zip(COUNTED, db.session.execute(select(*counts)).one(), strict=True))
