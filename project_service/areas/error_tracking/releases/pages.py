"""Pages of releases and uploaded source maps (source maps reference, section 22)."""

from __future__ import annotations

from typing import Any

from flask import render_template, request

from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.error_tracking.releases import queries
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http import urls

pages = PageBlueprint("error_release_pages", __name__)

MAX_BUNDLES = 50


@pages.get("/<path:project>/-/error_tracking/releases")
@pages.signed_in
@pages.allow(Ability.READ_ERRORS)
def list_error_releases(project: Project) -> Any:
    """Show the releases of a project, and what was uploaded for them."""
    search = request.args.get("search", "")
    return render_template(
        "error_tracking/releases.html",
        project=project,
        search=search,
        releases=queries.summaries_of(project, search),
        bundles=db.session.scalars(queries.bundles_of(project).limit(MAX_BUNDLES)).all(),
        base_url=urls.base_url(),
        organization=project.full_path.partition("/")[0],
    )
