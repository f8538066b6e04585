"""The API of issues and their notes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access import visible_notes
from project_service.access.abilities import Ability, allowed
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.issues import queries, schemas, service
from project_service.areas.issues.listing import IssueListing, listed
from project_service.areas.issues.queries import IssueFilter
from project_service.domain.accounts.users import User
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import closed_iids, find_merge_request
from project_service.domain.tracker.milestones import find_milestone
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.schemas import NoteFilterSchema, NoteSchema
from project_service.kit.http.errors import NotFound
from project_service.kit.http.pagination import ListedRows
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("issues", __name__, description="Issues of a project and the notes under them.")

ISSUES = "/projects/<project>/issues"
NOTES = f"{ISSUES}/<iid>/notes"


@api.get(ISSUES)
@api.signed_in
@api.arguments(schemas.IssueFilterSchema)
@api.allow(Ability.READ_ISSUES, access_only=True)
@api.response(200, schemas.IssueSchema(many=True))
@api.paged
def list_issues(project: ProjectAccess, fields: dict[str, Any]) -> Any:
    """List the issues of a project."""
    return listed(IssueFilter.of(caller(), project, **fields), project, details=fields["with_labels_details"])


@api.get("/projects/<project>/milestones/<milestone>/issues")
@api.signed_in
@api.allow(Ability.READ_ISSUES)
@api.response(200, schemas.IssueSchema(many=True))
@api.paged
def list_milestone_issues(project: Project, milestone: str) -> IssueListing:
    """List the issues of a milestone."""
    return IssueListing(IssueFilter.of_milestone(caller(), find_milestone(project, numeric(milestone))), project)


@api.get("/projects/<project>/merge_requests/<iid>/closes_issues")
@api.signed_in
@api.allow(Ability.READ_MERGE_REQUESTS)
@api.response(200, schemas.IssueSchema(many=True))
@api.paged
def list_issues_closed_by_merge_request(project: Project, iid: str) -> IssueListing | ListedRows:
    """List the issues of the project that a merge request closes, as its description says."""
    iids = closed_iids(find_merge_request(project, numeric(iid)))
    if not iids or not allowed(caller(), Ability.READ_ISSUES, project):
        return ListedRows([])
    return IssueListing(IssueFilter.of(caller(), project, iids=iids), project)


@api.get(f"{ISSUES}/<iid>")
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, schemas.IssueSchema)
def show_issue(issue: Issue) -> Issue:
    """Show one issue."""
    return issue


@api.post(ISSUES)
@api.signed_in
@api.arguments(schemas.IssueCreateSchema)
@api.allow(Ability.CREATE_ISSUES)
@api.response(201, schemas.IssueSchema)
def create_issue(project: Project, fields: dict[str, Any]) -> Issue:
    """Open an issue."""
    return service.create_issue(caller(), project, **fields)


@api.put(f"{ISSUES}/<iid>")
@api.signed_in
@api.arguments(schemas.IssueUpdateSchema)
@api.allow(Ability.CHANGE_ISSUE)
@api.response(200, schemas.IssueSchema)
def update_issue(issue: Issue, fields: dict[str, Any]) -> Issue:
    """Change, close or reopen an issue."""
    return service.update_issue(caller(), issue, **fields)


@api.delete(f"{ISSUES}/<iid>")
@api.signed_in
@api.allow(Ability.DELETE_ISSUE)
@api.response(204)
def delete_issue(issue: Issue) -> None:
    """Delete an issue."""
    issue_rules.delete_issue(unmodified(issue))


@api.get(f"{ISSUES}/<iid>/participants")
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, UserBasicSchema(many=True))
@api.paged
def list_participants(issue: Issue) -> Select[User]:
    """List the author, the assignees and those who commented, as far as they see the project."""
    return queries.participants_of(caller(), issue)


@api.get(f"{ISSUES}/<iid>/award_emoji")
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200)
@api.paged
def list_reactions(issue: Issue) -> ListedRows:  # the ability loads it
    """List no reactions: there are none here."""
    return ListedRows([])


@api.post(f"{ISSUES}/<iid>/award_emoji")
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(201)
def create_reaction(issue: Issue) -> None:  # the ability loads it
    """Refuse: reactions are not kept here."""
    raise NotFound("Award Emoji")


@api.get(f"{NOTES}/<note>/award_emoji")
@api.signed_in
@api.allow(Ability.READ_NOTE)
@api.response(200)
@api.paged
def list_note_reactions(note: Note) -> ListedRows:  # the ability loads it
    """List no reactions to a comment: there are none here."""
    return ListedRows([])


@api.post(f"{NOTES}/<note>/award_emoji")
@api.signed_in
@api.allow(Ability.READ_NOTE)
@api.response(201)
def create_note_reaction(note: Note) -> None:  # the ability loads it
    """Refuse: reactions are not kept here."""
    raise NotFound("Award Emoji")


@api.get(NOTES)
@api.signed_in
@api.arguments(NoteFilterSchema)
@api.allow(Ability.READ_ISSUE)
@api.response(200, NoteSchema(many=True))
@api.paged
def list_notes(issue: Issue, fields: dict[str, Any]) -> WithSchema:
    """List the notes of an issue."""
    return WithSchema(
        NoteSchema,
        visible_notes.notes_matching(caller(), issue, **fields),
        lambda rows: visible_notes.add_iids(issue, rows),
    )


@api.get(f"{NOTES}/<note>")
@api.signed_in
@api.allow(Ability.READ_NOTE)
@api.response(200, NoteSchema)
def show_note(note: Note) -> Note:
    """Show one note."""
    return note


@api.post(NOTES)
@api.signed_in
@api.arguments(schemas.NoteCreateSchema)
@api.allow(Ability.COMMENT_ON_ISSUE)
@api.response(201, NoteSchema)
def create_note(issue: Issue, fields: dict[str, Any]) -> Note:
    """Comment on an issue."""
    return service.create_note(caller(), issue, **fields)


@api.put(f"{NOTES}/<note>")
@api.signed_in
@api.arguments(schemas.NoteUpdateSchema)
@api.allow(Ability.CHANGE_NOTE)
@api.response(200, NoteSchema)
def update_note(note: Note, fields: dict[str, Any]) -> Note:
    """Change a note."""
    return service.update_note(caller(), note, **fields)


@api.delete(f"{NOTES}/<note>")
@api.signed_in
@api.allow(Ability.CHANGE_NOTE)
@api.response(204)
def delete_note(note: Note) -> None:
    """Delete a note."""
    issue_rules.delete_note(unmodified(note))
