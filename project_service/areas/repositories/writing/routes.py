"""API that writes files and commits (repositories reference, sections 4.3 and 4.5)."""

from __future__ import annotations

from typing import Any

from flask import Response, jsonify

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import caller
from project_service.access.roles import find_project
from project_service.areas.repositories.code_reading import CommitRow
from project_service.areas.repositories.content import queries, schemas
from project_service.areas.repositories.writing import cherry_picks, commits, new_commits
from project_service.areas.repositories.writing import schemas as writing_schemas
from project_service.domain.projects import Project
from project_service.domain.repositories.reading.objects import is_addressable
from project_service.kit.http.errors import BadParameters, BadRequest, Forbidden

api = ApiBlueprint("repository_writing", __name__, description="Changes of files in the repository of a project.")

COMMITS = "/projects/<project>/repository/commits"
FILE = "/projects/<project>/repository/files/<file_path>"
UPDATED = "You are attempting to update a file that has changed since you started editing it."
DELETED = "You are attempting to delete a file that has been previously updated."


@api.post(COMMITS, reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.arguments(writing_schemas.CommitCreateSchema)
@api.response(201, schemas.CommitFullSchema)
def create_commit(project: Project, fields: dict[str, Any]) -> CommitRow:
    """Commit several changes of files, all or none of them."""
    new_commits.check_may_write(caller(), project, fields.get("branch") or "")
    _require(fields, "branch", "commit_message")
    _check_start_project(project, fields.pop("start_project", None))
    actions, allow_empty = fields.pop("actions", None) or [], fields.pop("allow_empty")
    if not actions and not allow_empty:
        raise BadRequest("400 Bad request - Provide at least one action, or set allow_empty to true")
    if len(actions) > commits.MAX_ACTIONS:
        raise BadRequest(f"400 Bad request - at most {commits.MAX_ACTIONS} actions are accepted")
    stats = fields.pop("stats")
    return queries.show_commit(project, commits.commit(caller(), project, actions, **fields), stats=stats)


@api.post(f"{COMMITS}/<sha>/cherry_pick", reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.arguments(writing_schemas.CherryPickSchema)
@api.response(201, schemas.CommitFullSchema)
def cherry_pick_commit(project: Project, fields: dict[str, Any], sha: str) -> CommitRow | Response:
    """Put the change of a commit on a branch; with `dry_run` only check whether that is possible."""
    return _applied(project, sha, cherry_picks.CHERRY_PICK, fields)


@api.post(f"{COMMITS}/<sha>/revert", reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.arguments(writing_schemas.RevertSchema)
@api.response(201, schemas.CommitFullSchema)
def revert_commit(project: Project, fields: dict[str, Any], sha: str) -> CommitRow | Response:
    """Put the reverse of a commit on a branch; with `dry_run` only check whether that is possible."""
    return _applied(project, sha, cherry_picks.REVERT, fields)


def _applied(project: Project, sha: str, kind: str, fields: dict[str, Any]) -> CommitRow | Response:
    new = cherry_picks.apply(caller(), project, sha, kind=kind, **fields)
    return jsonify({"dry_run": "success"}) if new is None else queries.show_commit(project, new, stats=False)


def _check_start_project(project: Project, start_project: str | None) -> None:
    """Refuse a start in another project: there are no forks."""
    if start_project and (start := find_project(start_project)).id != project.id:
        raise Forbidden(f"Project is not included in the fork network for {start.name_with_namespace}")


@api.post(FILE, reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.arguments(writing_schemas.FileWriteSchema)
@api.response(201, writing_schemas.WrittenFileSchema)
def create_file(project: Project, fields: dict[str, Any], file_path: str) -> dict[str, str]:
    """Create a file; in an empty repository also its first branch."""
    return _write(project, "create", file_path, fields)


@api.put(FILE, reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.arguments(writing_schemas.FileWriteSchema)
@api.response(200, writing_schemas.WrittenFileSchema)
def update_file(project: Project, fields: dict[str, Any], file_path: str) -> dict[str, str]:
    """Change a file."""
    return _write(project, "update", file_path, fields)


@api.delete(FILE, reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.arguments(writing_schemas.FileDeleteSchema)
@api.response(204)
def delete_file(project: Project, fields: dict[str, Any], file_path: str) -> None:
    """Delete a file."""
    if not new_commits.may_write(caller(), project, fields["branch"]):
        raise BadRequest(new_commits.NOT_ALLOWED)
    _commit(project, "delete", file_path, fields, DELETED)


def _write(project: Project, kind: str, file_path: str, fields: dict[str, Any]) -> dict[str, str]:
    _require(fields, "branch", "commit_message")
    if "content" not in fields:
        raise BadRequest("400 Bad request - content is required")
    commit_id = _commit(project, kind, file_path, fields, UPDATED)
    return {"file_path": file_path, "branch": fields["branch"], "commit_id": commit_id}


def _commit(project: Project, kind: str, file_path: str, fields: dict[str, Any], changed: str) -> str:
    if not is_addressable(file_path):
        raise BadParameters("file_path should be a valid file path")
    of_file = ("content", "encoding", "execute_filemode", "last_commit_id")
    action = {name: fields[name] for name in of_file if name in fields}
    about = {name: value for name, value in fields.items() if name not in of_file}
    actions = [action | {"action": kind, "file_path": file_path}]
    return commits.commit(caller(), project, actions, changed=changed, **about)


def _require(fields: dict[str, Any], *names: str) -> None:
    for name in names:
        if not fields.get(name):
            raise BadRequest(f"400 Bad request - {name} is required")
