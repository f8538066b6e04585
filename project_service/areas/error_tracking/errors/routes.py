"""The API of errors and their events (error collection reference, section 17)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access import visible_notes
from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.error_tracking.effects import issues
from project_service.areas.error_tracking.errors import (
    backends,
    comments,
    merging,
    queries,
    schemas,
    separation,
    service,
)
from project_service.areas.error_tracking.errors.models import ErrorStatus, MergedError, TrackedErrorEvent
from project_service.areas.error_tracking.errors.views import ErrorView
from project_service.areas.error_tracking.events import event_search
from project_service.domain.projects import Project
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.schemas import NoteFilterSchema, NoteSchema
from project_service.kit.db.locking import delete_locked
from project_service.kit.http.pagination import Paging

api = ApiBlueprint("errors", __name__, description="The errors of a project and their events.")

ERRORS = "/projects/<project>/error_tracking/errors"
ONE = f"{ERRORS}/<error_id>"
MAX_NAMED_ERRORS = merging.MAX_MERGED_ERRORS + 1


@api.get(ERRORS, sends_requests=True)
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.arguments(schemas.ErrorFilterSchema)
@api.response(200, schemas.TrackedErrorSchema(many=True))
@api.paged
@api.takes_paging
def list_errors(project: Project, fields: dict[str, Any], paging: Paging) -> WithSchema:
    """List the errors of a project."""
    return backends.backend_of(project).matching(fields, paging)


@api.get(ONE, sends_requests=True)
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, schemas.TrackedErrorSchema)
def show_error(project: Project, error_id: str) -> ErrorView:
    """Show one error."""
    return backends.backend_of(project).show(error_id)


@api.put(ONE, sends_requests=True)
@api.signed_in
@api.allow(Ability.UPDATE_ERRORS)
@api.arguments(schemas.ErrorUpdateSchema)
@api.response(200, schemas.ChangedErrorSchema)
def update_error(project: Project, fields: dict[str, Any], error_id: str) -> ErrorView:
    """Change the status of an error, or assign it; resolving it closes its issue."""
    backend = backends.backend_of(project)
    if fields.get("assignee_id") is not None:
        backends.integrated_only(project)
        service.assign_to_id(current_user(), queries.find_error(project, error_id), fields["assignee_id"])
    if fields.get("status") is None:
        return backend.show(error_id)
    status = ErrorStatus.of(fields["status"])
    return backend.change_status(current_user(), error_id, status, in_next_release=fields["in_next_release"])


@api.delete(ONE)
@api.signed_in
@api.allow(Ability.DELETE_ERRORS)
@api.response(204)
def delete_error(project: Project, error_id: str) -> None:
    """Remove an error with its events; the next event makes a new error."""
    backends.integrated_only(project)
    service.delete_error(queries.find_error(project, error_id))


@api.post(f"{ONE}/issue", sends_requests=True)
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


@api.delete(f"{ONE}/issue", sends_requests=True)
@api.signed_in
@api.allow(Ability.CREATE_ERROR_ISSUES)
@api.response(204)
def delete_error_issue(project: Project, error_id: str) -> None:
    """Remove the link of an error to its issue; the issue stays."""
    backends.backend_of(project).unlink_issue(error_id)


@api.get(f"{ONE}/events")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.arguments(schemas.ErrorEventFilterSchema)
@api.response(200, schemas.ErrorEventSchema(many=True))
@api.paged
def list_error_events(project: Project, fields: dict[str, Any], error_id: str) -> Select[TrackedErrorEvent]:
    """List the stored events of an error, newest first."""
    backends.integrated_only(project)
    return event_search.events_matching(queries.find_error(project, error_id), **fields)


@api.get(f"{ONE}/events/<event_id>")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, schemas.ErrorEventDetailsSchema)
def show_error_event(project: Project, error_id: str, event_id: str) -> TrackedErrorEvent:
    """Show one stored event of an error: by its id, ``latest`` or ``oldest``."""
    backends.integrated_only(project)
    return queries.find_event(queries.find_error(project, error_id), event_id)


@api.get(f"{ONE}/notes")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.arguments(NoteFilterSchema)
@api.response(200, NoteSchema(many=True))
@api.paged
def list_error_notes(project: Project, fields: dict[str, Any], error_id: str) -> Select[Note]:
    """List the comments on an error."""
    backends.integrated_only(project)
    return visible_notes.filtered(comments.comments_on(queries.find_error(project, error_id)), **fields)


@api.post(f"{ONE}/notes")
@api.signed_in
@api.allow(Ability.UPDATE_ERRORS)
@api.arguments(schemas.ErrorNoteSchema)
@api.response(201, NoteSchema)
def create_error_note(project: Project, fields: dict[str, Any], error_id: str) -> Note:
    """Comment on an error."""
    backends.integrated_only(project)
    return comments.comment(current_user(), queries.find_error(project, error_id), fields["body"])


@api.get(f"{ONE}/notes/<note_id>")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, NoteSchema)
def show_error_note(project: Project, error_id: str, note_id: str) -> Note:
    """Show one comment on an error."""
    backends.integrated_only(project)
    return comments.find_comment(queries.find_error(project, error_id), numeric(note_id))


@api.put(f"{ONE}/notes/<note_id>")
@api.signed_in
@api.allow(Ability.UPDATE_ERRORS)
@api.arguments(schemas.ErrorNoteSchema)
@api.response(200, NoteSchema)
def update_error_note(project: Project, fields: dict[str, Any], error_id: str, note_id: str) -> Note:
    """Change a comment on an error: its author and maintainers."""
    note = _changeable_note(project, error_id, note_id)
    return comments.edit(current_user(), queries.find_error(project, error_id), note, fields["body"])


@api.delete(f"{ONE}/notes/<note_id>")
@api.signed_in
@api.allow(Ability.UPDATE_ERRORS)
@api.response(204)
def delete_error_note(project: Project, error_id: str, note_id: str) -> None:
    """Remove a comment on an error: its author and maintainers."""
    delete_locked(_changeable_note(project, error_id, note_id))


@api.get(f"{ONE}/merges")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, schemas.MergedErrorSchema(many=True))
@api.paged
def list_merged_errors(project: Project, error_id: str) -> Select[MergedError]:
    """List the errors that users merged into an error, newest first."""
    backends.integrated_only(project)
    return separation.merges_of(queries.find_error(project, error_id))


@api.post(f"{ONE}/merges", sends_requests=True)
@api.signed_in
@api.allow(Ability.UPDATE_ERRORS)
@api.arguments(schemas.ErrorMergeSchema)
@api.response(201, schemas.TrackedErrorSchema)
def merge_errors(project: Project, fields: dict[str, Any], error_id: str) -> ErrorView:
    """Merge other errors into an error."""
    backends.integrated_only(project)
    others = [queries.find_error(project, other_id) for other_id in fields["error_ids"][:MAX_NAMED_ERRORS]]
    merging.merge_chosen(current_user(), queries.find_error(project, error_id), others)
    return backends.backend_of(project).show(error_id)


@api.delete(f"{ONE}/merges/<merged_id>", sends_requests=True)
@api.signed_in
@api.allow(Ability.UPDATE_ERRORS)
@api.response(200, schemas.TrackedErrorSchema)
def separate_error(project: Project, error_id: str, merged_id: str) -> ErrorView:
    """Undo the newest merge into an error; return the error that is there again."""
    backends.integrated_only(project)
    source = separation.separate(queries.find_error(project, error_id), numeric(merged_id))
    return backends.backend_of(project).show(str(source.id))


def _changeable_note(project: Project, error_id: str, note_id: str) -> Note:
    backends.integrated_only(project)
    return comments.find_changeable(caller(), queries.find_error(project, error_id), numeric(note_id))
