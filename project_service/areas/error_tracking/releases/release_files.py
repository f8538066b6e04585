"""Single files of a release, as old clients upload, list and remove them (source maps reference, section 21)."""

from __future__ import annotations

import hashlib
from typing import Any

from flask import Response, request
from sqlalchemy import Select, delete, select
from sqlalchemy.orm import joinedload

from project_service.access.abilities import Ability, judge
from project_service.access.api import json_response
from project_service.access.identity import caller
from project_service.areas.error_tracking.releases import uploads
from project_service.areas.error_tracking.releases.bundles import MAX_URL_LENGTH, debug_id_of
from project_service.areas.error_tracking.releases.models import (
    OK,
    SOURCE,
    SOURCE_MAP,
    SourceMapArtifact,
    SourceMapBundle,
)
from project_service.areas.error_tracking.releases.uploads import UploadRefused
from project_service.areas.error_tracking.sentry_cli import sentry_views
from project_service.areas.error_tracking.sentry_cli.sentry_requests import (
    UNKNOWN,
    ClientRefused,
    SentryBlueprint,
    existing_releases,
    find_organization,
    find_sentry_project,
)
from project_service.domain.projects import Project
from project_service.kit.db import searching
from project_service.kit.db.session import db
from project_service.kit.http.fields import whole_number

FILES = "/projects/<organization>/<project>/releases/<version>/files/"
MAX_LISTED = 1000
MAX_DIST_LENGTH = 64
MAX_HEADERS = 20
MEBIBYTE = 1 << 20
MAX_SINGLE_FILE_BYTES = 16 * MEBIBYTE  # it is held in memory


def register(api: SentryBlueprint) -> None:
    """Add the routes to the API of clients."""
    api.at("GET", FILES)(list_release_files)
    api.at("POST", FILES, writes=False, body_bytes=MAX_SINGLE_FILE_BYTES + MEBIBYTE)(create_release_file)
    api.at("DELETE", f"{FILES}<file_id>/")(delete_release_file)
    api.at("DELETE", "/projects/<organization>/<project>/files/source-maps/")(delete_release_files)


def list_release_files(organization: str, project: str, version: str) -> list[dict[str, Any]]:
    """List the files of a release: those with a SHA-1, which clients then leave out, or with a part of a name."""
    project_row = find_sentry_project(find_organization(organization), project, Ability.READ_ERRORS)
    existing_releases([project_row.id], version)
    mine = _files_of(project_row, version)
    if checksums := request.args.getlist("checksum"):
        mine = mine.where(SourceMapArtifact.sha1.in_(checksums[:MAX_LISTED]))
    if query := request.args.get("query"):
        mine = mine.where(searching.has_part(query[:MAX_URL_LENGTH], SourceMapArtifact.url))
    return [_shown(artifact) for artifact in db.session.scalars(mine.limit(MAX_LISTED))]


def create_release_file(organization: str, project: str, version: str) -> Response:
    """Store one file of a release; the same file again is fine, another one of this name is refused."""
    project_row = find_sentry_project(find_organization(organization), project, Ability.UPDATE_ERRORS)
    existing_releases([project_row.id], version)
    part = request.files.get("file")
    if part is None:
        raise ClientRefused(400, "Missing uploaded file")
    name = (request.form.get("name") or part.filename or "").strip()
    dist = request.form.get("dist") or None
    if not name or len(name) > MAX_URL_LENGTH or len(dist or "") > MAX_DIST_LENGTH:
        raise ClientRefused(400, "File name must be specified")
    headers = _headers(request.form.getlist("header"))
    content = part.stream.read(MAX_SINGLE_FILE_BYTES + 1)
    if len(content) > MAX_SINGLE_FILE_BYTES:
        raise ClientRefused(413, "File exceeds maximum size")
    same = select(SourceMapArtifact.sha256).join(SourceMapBundle, SourceMapBundle.id == SourceMapArtifact.bundle_id)
    same = same.where(SourceMapBundle.release == version, SourceMapBundle.dist.is_not_distinct_from(dist))
    stored = db.session.scalar(
        same.where(SourceMapArtifact.project_id == project_row.id, SourceMapArtifact.url == name)
    )
    if stored is not None and stored != hashlib.sha256(content).hexdigest():
        raise ClientRefused(409, "A file matching this name already exists for the given release")
    if stored is None:
        is_map = content.lstrip()[:1] == b"{" and (b'"mappings"' in content or b'"sections"' in content)
        kind = SOURCE_MAP if is_map else SOURCE
        file = uploads.SingleFile(name, kind, debug_id_of(headers.get("debug-id")), headers.get("sourcemap"))
        try:
            uploads.store_single(project_row.id, caller().user_id or 0, version, dist, file, content)
        except UploadRefused as error:
            raise ClientRefused(400, str(error)) from error
    mine = _files_of(project_row, version).where(SourceMapArtifact.url == name)
    return json_response(_shown(db.session.scalars(mine.limit(1)).one()), 201)


def delete_release_file(organization: str, project: str, version: str, file_id: str) -> Response:
    """Remove one file of a release."""
    project_row = find_sentry_project(find_organization(organization), project, Ability.READ_ERRORS)
    judge(caller(), Ability.DELETE_ERRORS, project_row)
    artifact = db.session.scalar(
        _files_of(project_row, version).where(SourceMapArtifact.id == (whole_number(file_id) or 0))
    )
    if artifact is None:
        raise ClientRefused(404, UNKNOWN)
    db.session.delete(artifact)
    return Response(status=204)


def delete_release_files(organization: str, project: str) -> Response:
    """Remove all uploads of the release that the query names."""
    project_row = find_sentry_project(find_organization(organization), project, Ability.READ_ERRORS)
    judge(caller(), Ability.DELETE_ERRORS, project_row)
    version = request.args.get("name", "")
    bundle = SourceMapBundle
    mine = delete(bundle).where(bundle.project_id == project_row.id, bundle.release == version, bundle.state == OK)
    db.session.execute(mine.execution_options(synchronize_session=False))
    return Response(status=204)


def _files_of(project: Project, version: str) -> Select[SourceMapArtifact]:
    artifact, bundle = SourceMapArtifact, SourceMapBundle
    mine = select(artifact).join(bundle, bundle.id == artifact.bundle_id)
    mine = mine.where(artifact.project_id == project.id, bundle.release == version, bundle.state == OK)
    return mine.options(joinedload(artifact.bundle)).order_by(artifact.id.desc())


def _shown(one: SourceMapArtifact) -> dict[str, Any]:
    headers = (("debug-id", one.debug_id), ("Sourcemap", one.source_map_url))
    return {
        "id": str(one.id),
        "name": one.url,
        "dist": one.bundle.dist,
        "headers": {name: value for name, value in headers if value},
        "size": one.size,
        "sha1": one.sha1 or "",
        "dateCreated": sentry_views.moment(one.bundle.uploaded_at),
    }


def _headers(lines: list[str]) -> dict[str, str]:
    pairs = [line.partition(":") for line in lines]
    if len(pairs) > MAX_HEADERS or not all(separator for _, separator, _ in pairs):
        raise ClientRefused(400, "header value was not formatted correctly")
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
