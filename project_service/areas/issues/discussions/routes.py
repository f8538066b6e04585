"""The API of discussions of issues."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import caller
from project_service.areas.issues import service
from project_service.areas.issues.discussions import queries, schemas
from project_service.areas.issues.discussions.queries import Discussion, DiscussionListing
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.schemas import NoteSchema
from project_service.kit.http.errors import Forbidden, NotFound
from project_service.kit.http.pagination import ListedRows
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("discussions", __name__, description="Discussions of an issue: comments with their replies.")

DISCUSSIONS = "/projects/<project>/issues/<iid>/discussions"
ONE = f"{DISCUSSIONS}/<discussion>"
NOTES = f"{ONE}/notes"


@api.get(DISCUSSIONS)
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, schemas.DiscussionSchema(many=True))
@api.paged
def list_discussions(issue: Issue) -> DiscussionListing:
    """List the discussions of an issue, the oldest first; a plain comment is one of its own."""
    return DiscussionListing(caller(), issue)


@api.post(DISCUSSIONS)
@api.signed_in
@api.arguments(schemas.DiscussionCreateSchema)
@api.allow(Ability.COMMENT_ON_ISSUE)
@api.response(201, schemas.DiscussionSchema)
def create_discussion(issue: Issue, fields: dict[str, Any]) -> Discussion:
    """Begin a discussion."""
    return Discussion([service.create_discussion(caller(), issue, **fields)])


@api.get(ONE)
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, schemas.DiscussionSchema)
def show_discussion(issue: Issue, discussion: str) -> Discussion:
    """Show one discussion."""
    return queries.find_discussion(caller(), issue, discussion)


@api.get(NOTES)
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, NoteSchema(many=True))
@api.paged
def list_discussion_notes(issue: Issue, discussion: str) -> ListedRows:
    """List the notes of a discussion, the oldest first."""
    return ListedRows(queries.find_discussion(caller(), issue, discussion, "Notes").notes)


@api.post(NOTES)
@api.signed_in
@api.arguments(schemas.DiscussionNoteCreateSchema)
@api.allow(Ability.COMMENT_ON_ISSUE)
@api.response(201, NoteSchema)
def create_discussion_note(issue: Issue, fields: dict[str, Any], discussion: str) -> Note:
    """Reply in a discussion; a plain comment becomes the first of a discussion."""
    first = queries.find_first_note(caller(), issue, discussion)
    return service.reply(caller(), issue, first, **fields)


@api.get(f"{NOTES}/<note>")
@api.signed_in
@api.allow(Ability.READ_NOTE)
@api.response(200, NoteSchema)
def show_discussion_note(note: Note, discussion: str) -> Note:
    """Show one note of a discussion."""
    return _within(note, discussion)


@api.put(f"{NOTES}/<note>")
@api.signed_in
@api.arguments(schemas.DiscussionNoteUpdateSchema)
@api.allow(Ability.CHANGE_NOTE)
@api.response(200, NoteSchema)
def update_discussion_note(note: Note, fields: dict[str, Any], discussion: str) -> Note:
    """Change a note of a discussion."""
    if "body" not in fields:
        raise Forbidden  # discussions of issues are not resolved
    return service.update_note(caller(), _within(note, discussion), body=fields["body"])


@api.delete(f"{NOTES}/<note>")
@api.signed_in
@api.allow(Ability.CHANGE_NOTE)
@api.response(204)
def delete_discussion_note(note: Note, discussion: str) -> None:
    """Delete a note of a discussion."""
    issue_rules.delete_note(unmodified(_within(note, discussion)))


def _within(note: Note, discussion: str) -> Note:
    if note.discussion != discussion:
        raise NotFound("Discussion")
    return note
