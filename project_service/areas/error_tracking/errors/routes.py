"""The API of errors and their events (error collection reference, section 17)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.identity import current_user
from project_service.areas.error_tracking.errors import backends, issues, queries, schemas, service
from project_service.areas.error_tracking.errors.models import ErrorStatus, TrackedErrorEvent
from project_service.areas.error_tracking.errors.views import ErrorView
from project_service.domain.projects import Project
from project_service.kit.http.pagination import Paging

api = ApiBlueprint("errors", __name__, description="The errors of a project and their events.")

ERRORS = "/projects/<project>/error_tracking/errors"
ONE = f"{ERRORS}/<error_id>"


@api.get(ERRORS)
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.arguments(schemas.ErrorFilterSchema)
@api.response(200, schemas.TrackedErrorSchema(many=True))
@api.paged
@api.takes_paging
def list_errors(project: Project, fields: dict[str, Any], paging: Paging) -> WithSchema:
    """List the errors of a project."""
    return backends.backend_of(project).matching(fields, paging)


@api.get(ONE)
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, schemas.TrackedErrorSchema)
def show_error(project: Project, error_id: str) -> ErrorView:
    """Show one error."""
    return backends.backend_of(project).show(error_id)


@api.put(ONE)
@api.signed_in
@api.allow(Ability.UPDATE_ERRORS)
@api.arguments(schemas.ErrorUpdateSchema)
@api.response(200, schemas.ChangedErrorSchema)
def update_error(project: Project, fields: dict[str, Any], error_id: str) -> ErrorView:
    """Change the status of an error; resolving it closes its issue."""
    status = ErrorStatus.of(fields["status"])
    return backends.backend_of(project).change_status(current_user(), error_id, status)


@api.delete(ONE)
@api.signed_in
@api.allow(Ability.DELETE_ERRORS)
@api.response(204)
def delete_error(project: Project, error_id: str) -> None:
    """Remove an error with its events; the next event makes a new error."""
    backends.integrated_only(project)
    service.delete_error(queries.find_error(project, error_id))


@api.post(f"{ONE}/issue")
@api.signed_in
@api.allow(Ability.CREATE_ERROR_ISSUES)
@api.arguments(schemas.ErrorIssueSchema)
@api.response(201, schemas.TrackedErrorSchema)
def create_error_issue(project: Project, fields: dict[str, Any], error_id: str) -> ErrorView:
    """Create an issue about an error, or link an existing one."""
    backend = backends.backend_of(project)
    if fields.get("issue_iid") is None:
        backends.open_issue(current_user(), backend, error_id)
    else:
        backend.show(error_id)
        backend.link_issue(error_id, issues.find_linkable_issue(project, fields["issue_iid"]))
    return backend.show(error_id)


@api.delete(f"{ONE}/issue")
@api.signed_in
@api.allow(Ability.CREATE_ERROR_ISSUES)
@api.response(204)
def delete_error_issue(project: Project, error_id: str) -> None:
    """Remove the link of an error to its issue; the issue stays."""
    backends.backend_of(project).unlink_issue(error_id)


@api.get(f"{ONE}/events")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, schemas.ErrorEventSchema(many=True))
@api.paged
def list_error_events(project: Project, error_id: str) -> Select[TrackedErrorEvent]:
    """List the stored events of an error, newest first."""
    backends.integrated_only(project)
    return queries.events_of(queries.find_error(project, error_id))


@api.get(f"{ONE}/events/<event_id>")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, schemas.ErrorEventDetailsSchema)
def show_error_event(project: Project, error_id: str, event_id: str) -> TrackedErrorEvent:
    """Show one stored event of an error: by its id, ``latest`` or ``oldest``."""
    backends.integrated_only(project)
    return queries.find_event(queries.find_error(project, error_id), event_id)
