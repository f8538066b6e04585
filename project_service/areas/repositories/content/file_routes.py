"""API of files (repositories reference, section 4.5)."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterable
from typing import Any

from flask import Response

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, json_response
from project_service.areas.repositories.code_reading import find_commit, reading_code, streamed
from project_service.areas.repositories.content import parameter_schemas, routes, schemas
from project_service.domain.projects import Project
from project_service.domain.repositories.reading import blame, history
from project_service.domain.repositories.reading.blame import BlameGroup
from project_service.domain.repositories.reading.budget import ReadingFailed, ReadingTooLarge
from project_service.domain.repositories.reading.objects import Commit, Entry, is_addressable
from project_service.domain.repositories.reading.repository import BLOB, HEAD, CodeRepository
from project_service.kit.http import urls
from project_service.kit.http.errors import BadParameters, NotFound

api = ApiBlueprint("repository_files", __name__, description="Files of the repository of a project.")

FILE = "/projects/<project>/repository/files/<file_path>"
SCOPE = "read_repository"


@api.get(FILE, reads_repository=True)
@api.scopes(SCOPE)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.FileShowSchema)
@api.response(200, schemas.FileSchema)
def show_file(project: Project, fields: dict[str, Any], file_path: str) -> Response:
    """Show a file of a revision with its content in base64."""
    with reading_code(project, "File") as code:
        commit, entry = find_file(code, fields["ref"], file_path)
        content = code.content(entry.id, routes.MAX_JSON_BYTES)
        if content is None:
            raise NotFound("File")
        about = describe(code, commit, entry, fields["ref"], content)
    return json_response(about | {"content": base64.b64encode(content).decode()}, 200, as_headers(about))


@api.get(f"{FILE}/raw", reads_repository=True, is_long=True)
@api.scopes(SCOPE)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.FileRawSchema)
@api.response(200, content_type="*/*")
def download_file(project: Project, fields: dict[str, Any], file_path: str) -> Response:
    """Download a file of a revision."""
    ref = fields.get("ref") or HEAD

    def respond(code: CodeRepository) -> tuple[Iterable[bytes], Response]:
        commit, entry = find_file(code, ref, file_path)
        pieces, response = routes.raw_blob(code, entry.id, entry.name)
        response.headers.update(as_headers(describe_unread(code, commit, entry, ref)))
        return pieces, response

    return streamed(project, respond)


@api.get(f"{FILE}/blame", reads_repository=True)
@api.scopes(SCOPE)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.FileBlameSchema)
@api.response(200, schemas.BlameSchema(many=True))
def blame_file(project: Project, fields: dict[str, Any], file_path: str) -> Response:
    """List the lines of a file with the commits that changed them last."""
    lines = fields.get("range")
    if lines and lines["start"] > lines["end"]:
        raise BadParameters("range[start] must be less than or equal to range[end]")
    with reading_code(project, "File") as code:
        commit, entry = find_file(code, fields["ref"], file_path)
        about = describe_unread(code, commit, entry, fields["ref"])
        groups = _blame(code, commit, entry, file_path, lines)
    return json_response(schemas.BlameSchema.dump_value(groups), 200, as_headers(about))


def _blame(
    code: CodeRepository, commit: Commit, entry: Entry, path: str, lines: dict[str, int] | None
) -> list[BlameGroup]:
    limits = (max(lines["start"], 1), max(lines["end"], 1)) if lines else None
    if code.size_of(entry.id) > blame.MAX_FILE_BYTES:
        raise NotFound("File")
    try:
        return blame.blame(code, commit, path, limits)
    except ReadingTooLarge:
        raise
    except ReadingFailed:
        if limits:  # the file is shorter
            return []
        raise


def find_file(code: CodeRepository, ref: str, path: str) -> tuple[Commit, Entry]:
    """The commit of a revision and a file of it."""
    if not is_addressable(path):
        raise BadParameters("file_path should be a valid file path")
    commit = find_commit(code, ref)
    entry = code.entry(commit, path)
    if entry is None or entry.type != BLOB:
        raise NotFound("File")
    return commit, entry


def describe(code: CodeRepository, commit: Commit, entry: Entry, ref: str, content: bytes) -> dict[str, Any]:
    """What is known of a file, without its content."""
    return _facts(code, commit, entry, ref) | {
        "content_sha256": hashlib.sha256(content).hexdigest(),
        "last_commit_id": history.last_commit(code, commit, entry.shown_path).id,
    }


def describe_unread(code: CodeRepository, commit: Commit, entry: Entry, ref: str) -> dict[str, Any]:
    """The same of a file whose content is not needed.

    The digest of a large file is left out, and the last commit if that takes long to find.
    """
    facts = _facts(code, commit, entry, ref)
    content = code.content(entry.id, routes.MAX_JSON_BYTES)
    if content is not None:
        facts["content_sha256"] = hashlib.sha256(content).hexdigest()
    with contextlib.suppress(ReadingTooLarge):
        facts["last_commit_id"] = history.last_commit(code, commit, entry.shown_path).id
    return facts


def _facts(code: CodeRepository, commit: Commit, entry: Entry, ref: str) -> dict[str, Any]:
    return {
        "file_name": entry.name,
        "file_path": entry.shown_path,
        "size": code.size_of(entry.id),
        "encoding": "base64",
        "ref": ref,
        "blob_id": entry.id,
        "commit_id": commit.id,
        "execute_filemode": entry.executable,
    }


def as_headers(about: dict[str, Any]) -> dict[str, str]:
    """The same as headers; what is not ASCII is URL-encoded."""
    headers = {}
    for name, value in about.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        header = "X-Gitlab-" + "-".join(part.capitalize() for part in name.split("_"))
        headers[header] = text if text.isascii() and text.isprintable() else urls.encode(text)
    return headers
