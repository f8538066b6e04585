"""The events of an error: a list with search, and one event as Markdown or JSON to pass on."""

from __future__ import annotations

from flask import Response, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.api import json_response
from project_service.access.pages import PageBlueprint
from project_service.areas.error_tracking.errors import backends, queries
from project_service.areas.error_tracking.errors.models import TrackedErrorEvent
from project_service.areas.error_tracking.errors.pages import ONE
from project_service.areas.error_tracking.errors.schemas import ErrorEventDetailsSchema
from project_service.areas.error_tracking.errors.views import ErrorView
from project_service.areas.error_tracking.events import event_search, event_text, event_views
from project_service.domain.projects import Project
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("error_event_pages", __name__)

EVENT = f"{ONE}/events/<event_id>"
FILTERS = ("search", "environment", "release")


@pages.get(f"{ONE}/events")
@pages.signed_in
@pages.allow(Ability.READ_ERRORS)
def list_error_events(project: Project, error_id: str) -> ResponseReturnValue:
    """Show the stored events of an error."""
    backends.integrated_only(project)
    error = queries.find_error(project, error_id)
    wanted = {name: request.args.get(name, "").strip() for name in FILTERS}
    return render_template(
        "error_tracking/events.html",
        project=project,
        error=queries.views_of([error])[0],
        wanted=wanted,
        page=read_page(event_search.events_matching(error, **wanted), request.args.get("page")),
        releases=queries.releases_of(error),
        stored=error.stored_events,
        most_searched=event_search.MAX_SEARCHED_EVENTS,
        tags_of=event_search.tags_of,
    )


@pages.get(f"{EVENT}/event.json")
@pages.signed_in
@pages.allow(Ability.READ_ERRORS)
def show_event_as_json(project: Project, error_id: str, event_id: str) -> ResponseReturnValue:
    """Show one event as the API returns it."""
    return json_response(ErrorEventDetailsSchema.dump_value(_event(project, error_id, event_id)[1]))


@pages.get(f"{EVENT}/event.md")
@pages.signed_in
@pages.allow(Ability.READ_ERRORS)
def show_event_as_markdown(project: Project, error_id: str, event_id: str) -> ResponseReturnValue:
    """Show one event as Markdown, for an issue or a message."""
    error, event = _event(project, error_id, event_id)
    return Response(event_text.markdown_of(error, event_views.view_of(event)), mimetype="text/plain")


def _event(project: Project, error_id: str, event_id: str) -> tuple[ErrorView, TrackedErrorEvent]:
    backends.integrated_only(project)
    error = queries.find_error(project, error_id)
    return queries.views_of([error])[0], queries.find_event(error, event_id)
