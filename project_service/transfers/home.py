"""The panel of failed imports and exports of the caller, on the home page."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import select

from project_service.access.page_parts import panels
from project_service.access.page_parts.home_scope import HomeScope
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.transfers.models import FAILED, ProjectExport, ProjectImport

MAX_SHOWN = 5
SHOWN_FOR = dt.timedelta(days=14)


def fill(scope: HomeScope) -> dict[str, Any]:
    """Return the imports and exports that the caller has started and that failed in the last days."""
    user_id, since, projects = scope.caller.user_id or 0, clock.now() - SHOWN_FOR, scope.projects(Role.MAINTAINER)
    imports = (
        select(Project.full_path, Project.import_error, ProjectImport.updated_at)
        .join(Project, Project.id == ProjectImport.project_id)
        .where(ProjectImport.user_id == user_id, Project.import_status == FAILED, Project.id.in_(projects))
        .order_by(ProjectImport.id.desc())
        .limit(MAX_SHOWN)
    )
    exports = (
        select(Project.full_path, ProjectExport.error, ProjectExport.updated_at)
        .join(Project, Project.id == ProjectExport.project_id)
        .where(
            ProjectExport.user_id == user_id,
            ProjectExport.state == FAILED,
            ProjectExport.updated_at > since,
            Project.id.in_(projects),
        )
        .order_by(ProjectExport.id.desc())
        .limit(MAX_SHOWN)
    )
    return {"imports": db.session.execute(imports).all(), "exports": db.session.execute(exports).all()}


panels.add(panels.Panel("home_own", 70, "transfers/home.html", fill))
