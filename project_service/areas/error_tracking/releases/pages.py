"""Pages of releases and uploaded source maps (source maps reference, section 22)."""

from __future__ import annotations

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.error_tracking.errors import queries as error_queries
from project_service.areas.error_tracking.releases import arrivals, queries, release_history
from project_service.areas.error_tracking.releases.models import SourceMapBundle
from project_service.areas.error_tracking.sentry_cli import upload_guides
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import db
from project_service.kit.http.forms import Form, confirmation

pages = PageBlueprint("error_release_pages", __name__)

MAX_BUNDLES = 50
MAX_NEW_ERRORS = 50
MAX_SHOWN_COMMITS = 100
MAX_SHOWN_DEPLOYS = 50


@pages.get("/<path:project>/-/error_tracking/releases")
@pages.signed_in
@pages.allow(Ability.READ_ERRORS)
def list_error_releases(project: Project) -> ResponseReturnValue:
    """Show the releases of a project, and what was uploaded for them."""
    search = request.args.get("search", "")
    rows = db.session.scalars(queries.releases_of(project, search).limit(queries.PAGE_SIZE)).all()
    releases = queries.summaries_of(project, rows)
    return render_template(
        "error_tracking/releases.html",
        project=project,
        search=search,
        releases=releases,
        chart=queries.errors_by_release(releases),
        bundles=db.session.scalars(queries.bundles_of(project).limit(MAX_BUNDLES)).all(),
        **upload_guides.variables(project),
    )


@pages.get("/<path:project>/-/error_tracking/releases/<path:version>")
@pages.signed_in
@pages.allow(Ability.READ_ERRORS)
def show_error_release(project: Project, version: str) -> ResponseReturnValue:
    """Show one release: its new errors, deploys, commits and uploads."""
    release = queries.find_release(project, version)
    tags = queries.tag_names(project, [version]) if allowed(caller(), Ability.READ_CODE, project) else {}
    of_release = queries.bundles_of(project).where(SourceMapBundle.release == version)
    return render_template(
        "error_tracking/release.html",
        project=project,
        release=release,
        tag_name=tags.get(version),
        new_errors=db.session.scalars(queries.new_errors_of(release).limit(MAX_NEW_ERRORS)).all(),
        commits=(release.commits or [])[:MAX_SHOWN_COMMITS],
        deploys=db.session.scalars(release_history.deploys_of([release.id]).limit(MAX_SHOWN_DEPLOYS)).all(),
        bundles=db.session.scalars(of_release.limit(MAX_BUNDLES)).all(),
    )


@pages.get("/<path:project>/-/error_tracking/source_maps/<int:bundle_id>/delete")
@pages.signed_in
@pages.allow(Ability.DELETE_ERRORS)
def ask_delete_source_map(project: Project, bundle_id: int) -> ResponseReturnValue:
    """Ask before an upload is removed."""
    bundle = queries.find_bundle(project, bundle_id)
    named = f"of the release {bundle.release}" if bundle.release else "that is found by debug id"
    question = f"The upload {named} is removed with its files. Stacks that were resolved with it stay as they are."
    return confirmation("Remove upload?", question, "Remove upload", _releases(project), project=project)


@pages.post("/<path:project>/-/error_tracking/source_maps/<int:bundle_id>/delete")
@pages.signed_in
@pages.allow(Ability.DELETE_ERRORS)
def delete_source_map(project: Project, bundle_id: int) -> ResponseReturnValue:
    """Remove an upload."""
    delete_locked(queries.find_bundle(project, bundle_id))
    return redirect(_releases(project))


@pages.post("/<path:project>/-/error_tracking/<error_id>/events/<event_id>/resolve")
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def resolve_event_again(project: Project, error_id: str, event_id: str) -> ResponseReturnValue:
    """Resolve the stack of an event with the source maps that there are now."""
    event = error_queries.find_event(error_queries.find_error(project, error_id), event_id)
    form = Form()
    if form.accepted(lambda: arrivals.resolve_again(current_user(), event)):
        flash("The source maps are applied: reload this page in a few seconds.")
    else:
        flash(" ".join(form.problems) or "The form has expired: try it again.")
    return redirect(f"/{project.full_path}{page_paths.error(error_id)}?event={event.event_id}")


def _releases(project: Project) -> str:
    return f"/{project.full_path}/-/error_tracking/releases"
