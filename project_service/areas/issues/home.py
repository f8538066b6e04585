"""The panel of issues and incidents that are assigned to the caller, on the home page and the page of a group."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from project_service.access.page_parts import panels
from project_service.access.page_parts.home_scope import HomeScope
from project_service.domain.access_levels import Role
from project_service.domain.projects import DISABLED, Project
from project_service.domain.tracker.issues import INCIDENT, OPENED, Issue, IssueAssignee
from project_service.kit.db.session import db

MAX_SHOWN = 10


def fill(scope: HomeScope) -> dict[str, Any]:
    """Return the open issues that are assigned to the caller: incidents first, then those changed last."""
    columns = Issue.iid, Issue.title, Issue.issue_type, Issue.severity, Issue.due_date, Issue.updated_at
    issues = (
        select(*columns, Project.full_path)
        .join(IssueAssignee, IssueAssignee.issue_id == Issue.id)
        .join(Project, Project.id == Issue.project_id)
        .where(
            IssueAssignee.user_id == (scope.caller.user_id or 0),
            Issue.state == OPENED,
            Project.id.in_(scope.projects(Role.GUEST)),
            Project.issues_access_level != DISABLED,
            Project.loading.is_(False),
        )
    )
    order = (Issue.issue_type != INCIDENT, Issue.updated_at.desc(), Issue.id.desc())
    rows = db.session.execute(issues.order_by(*order).limit(MAX_SHOWN + 1)).all()
    return {"issues": rows[:MAX_SHOWN], "is_more": len(rows) > MAX_SHOWN}


panels.add(panels.Panel("home_own", 50, "issues/home.html", fill))
