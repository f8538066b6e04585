"""The API of merge requests and their notes, which are read-only: they are created by imports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from project_service.access import visible_notes
from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.merge_requests import queries, schemas
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.tracker.merge_requests import MergeRequest, find_merge_request
from project_service.domain.tracker.milestones import find_milestone
from project_service.domain.tracker.notes import Note, add_resolutions
from project_service.domain.tracker.schemas import NoteFilterSchema, NoteSchema

api = ApiBlueprint("merge_requests", __name__, description="Merge requests of a project and the notes under them.")

MERGE_REQUESTS = "/projects/<project>/merge_requests"


@api.get(MERGE_REQUESTS)
@api.signed_in
@api.arguments(schemas.MergeRequestFilterSchema)
@api.allow(Ability.READ_MERGE_REQUESTS)
@api.response(200, schemas.MergeRequestSchema(many=True))
@api.paged
def list_merge_requests(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the merge requests of a project."""
    return _list(project, **fields)


@api.get("/projects/<project>/milestones/<milestone>/merge_requests")
@api.signed_in
@api.allow(Ability.READ_MERGE_REQUESTS)
@api.response(200, schemas.MergeRequestSchema(many=True))
@api.paged
def list_milestone_merge_requests(project: Project, milestone: str) -> WithSchema:
    """List the merge requests of a milestone."""
    return _list(project, milestone_id=find_milestone(project, numeric(milestone)).id)


@api.get("/groups/<group>/milestones/<milestone>/merge_requests")
@api.signed_in
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.MergeRequestSchema(many=True))
@api.paged
def list_group_milestone_merge_requests(group: Group, milestone: str) -> WithSchema:
    """List the merge requests of a milestone of a group, in all projects below that you see."""
    matching = queries.merge_requests_of_milestone(caller(), find_milestone(group, numeric(milestone)))
    return WithSchema(schemas.MergeRequestSchema, matching, queries.add_notes_counts)


@api.get("/projects/<project>/repository/commits/<sha>/merge_requests")
@api.allow(Ability.READ_MERGE_REQUESTS)
@api.response(200, schemas.MergeRequestSchema(many=True))
@api.paged
def list_commit_merge_requests(project: Project, sha: str) -> WithSchema:
    """List the merge requests whose last commit, merge commit or squashed commit has this id; none is no error."""
    return _list(project, sha=sha)


@api.get(f"{MERGE_REQUESTS}/<iid>")
@api.signed_in
@api.allow(Ability.READ_MERGE_REQUESTS)
@api.response(200, schemas.MergeRequestFullSchema)
def show_merge_request(project: Project, iid: str) -> MergeRequest:
    """Show one merge request."""
    merge_request = find_merge_request(project, numeric(iid))
    queries.add_notes_counts([merge_request])
    return merge_request


@api.get(f"{MERGE_REQUESTS}/<iid>/notes")
@api.signed_in
@api.arguments(NoteFilterSchema)
@api.allow(Ability.READ_MERGE_REQUESTS)
@api.response(200, NoteSchema(many=True))
@api.paged
def list_merge_request_notes(project: Project, fields: dict[str, Any], iid: str) -> WithSchema:
    """List the notes of a merge request."""
    merge_request = find_merge_request(project, numeric(iid))
    matching = visible_notes.notes_matching(caller(), merge_request, **fields)

    def prepare(notes: Sequence[Note]) -> None:
        visible_notes.add_iids(merge_request, notes)
        add_resolutions(notes)

    return WithSchema(NoteSchema, matching, prepare)


def _list(project: Project, **options: Any) -> WithSchema:
    matching = queries.merge_requests_matching(caller(), project, **options)
    return WithSchema(schemas.MergeRequestSchema, matching, queries.add_notes_counts)
