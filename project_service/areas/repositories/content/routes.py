"""API of trees, blobs, archives and comparisons (repositories reference, section 4.4)."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from flask import Response

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.repositories.code_reading import (
    CommitRow,
    download_slots,
    find_commit,
    reading_code,
    streamed,
)
from project_service.areas.repositories.content import archives, parameter_schemas, queries, schemas
from project_service.domain.projects import Project
from project_service.domain.repositories.reading import history, trees
from project_service.domain.repositories.reading.history import Contributor
from project_service.domain.repositories.reading.repository import BLOB, CodeRepository
from project_service.kit.http import raw_content
from project_service.kit.http.errors import BadRequest, NotFound
from project_service.kit.http.pagination import ListedRows, Paging, PreparedPage

api = ApiBlueprint("repositories", __name__, description="The content of the repository of a project.")

REPOSITORY = "/projects/<project>/repository"
MAX_JSON_BYTES = 32 << 20  # of content in base64; larger content is only served raw
UNCACHED = "max-age=0, private, must-revalidate, no-store, no-cache"
RAW_SECONDS = 3600.0
MAX_REFS = 20


@api.get(f"{REPOSITORY}/tree", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.TreeListSchema)
@api.response(200, schemas.TreeEntrySchema(many=True))
@api.paged
@api.takes_paging
def list_tree(project: Project, fields: dict[str, Any], paging: Paging) -> PreparedPage | ListedRows:
    """List the files and folders of a folder."""
    listed = queries.tree_of(project, paging, **fields)
    return ListedRows(listed) if isinstance(listed, trees.Folder) else listed


@api.get(f"{REPOSITORY}/blobs/<sha>", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.response(200, schemas.BlobSchema)
def show_blob(project: Project, sha: str) -> dict[str, Any]:
    """Show a blob with its content in base64."""
    with reading_code(project, "Blob") as code:
        content = None if code.type_of(sha) != BLOB else code.content(sha, MAX_JSON_BYTES)
    if content is None:
        raise NotFound("Blob")
    return {"size": len(content), "encoding": "base64", "content": base64.b64encode(content).decode(), "sha": sha}


@api.get(f"{REPOSITORY}/blobs/<sha>/raw", reads_repository=True, is_long=True)
@api.allow(Ability.READ_CODE)
@api.response(200, content_type="*/*")
def download_blob(project: Project, sha: str) -> Response:
    """Download a blob."""

    def respond(code: CodeRepository) -> tuple[Iterable[bytes], Response]:
        if code.type_of(sha) != BLOB:
            raise NotFound("Blob")
        return raw_blob(code, sha, sha)

    return streamed(project, respond)


def raw_blob(code: CodeRepository, blob_id: str, name: str) -> tuple[Iterable[bytes], Response]:
    """The pieces of a blob and the response of the API for it."""
    headers = raw_content.headers(code.start_of(blob_id, raw_content.SNIFFED_BYTES), name)
    headers |= {"Content-Length": str(code.size_of(blob_id)), "Cache-Control": UNCACHED}
    return code.chunks(blob_id, RAW_SECONDS, download_slots()), Response(headers=headers)


@api.get(f"{REPOSITORY}/archive", reads_repository=True, is_long=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.ArchiveSchema)
@api.response(200, content_type="application/octet-stream")
def download_archive(project: Project, fields: dict[str, Any]) -> Response:
    """Download an archive of a revision."""
    return archives.respond(project, fields.get("format") or "tar.gz", fields.get("sha"), fields.get("path"))


@api.get(f"{REPOSITORY}/archive.<format>", reads_repository=True, is_long=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.ArchiveSchema)
@api.response(200, content_type="application/octet-stream")
def download_archive_in_format(project: Project, fields: dict[str, Any], format: str) -> Response:
    """Download an archive of a revision in a format: tar.gz, tar.bz2, tar or zip."""
    return archives.respond(project, format, fields.get("sha"), fields.get("path"))


@api.get(f"{REPOSITORY}/compare", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.CompareSchema)
@api.response(200, schemas.ComparisonSchema)
def compare(project: Project, fields: dict[str, Any]) -> queries.Comparison:
    """Compare two revisions."""
    return queries.compare(project, fields["start"], fields["to"], straight=fields["straight"])


@api.get(f"{REPOSITORY}/contributors", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.ContributorListSchema)
@api.response(200, schemas.ContributorSchema(many=True))
@api.paged
def list_contributors(project: Project, fields: dict[str, Any]) -> ListedRows:
    """List the authors of the commits of a history."""
    with reading_code(project) as code:
        contributors = history.contributors(code, find_commit(code, fields.get("ref"), "Repository"))

    def key(one: Contributor) -> str | int:
        value = getattr(one, fields["order_by"])
        return value.lower() if isinstance(value, str) else value

    return ListedRows(sorted(contributors, key=key, reverse=fields["sort"] == "desc"))


@api.get(f"{REPOSITORY}/merge_base", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.MergeBaseSchema)
@api.response(200, schemas.CommitSchema)
def show_merge_base(project: Project, fields: dict[str, Any]) -> CommitRow:
    """Show the best common ancestor of some revisions."""
    names = fields["refs"] or []
    if len(names) < 2:
        raise BadRequest("Provide at least 2 refs")
    with reading_code(project) as code:
        commits = {name: code.resolve(name) for name in names[:MAX_REFS]}
        if missing := [name for name, commit in commits.items() if commit is None]:
            raise BadRequest(f"Could not find ref{'s' if len(missing) > 1 else ''}: {', '.join(missing)}")
        base = history.merge_base(code, [commit.id for commit in commits.values() if commit is not None])
    if base is None:
        raise NotFound("Merge Base")
    return CommitRow(project, base)
