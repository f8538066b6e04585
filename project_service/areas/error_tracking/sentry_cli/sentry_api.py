"""The API that sentry-cli and the plug-ins of bundlers call, unmodified (source maps reference, section 6)."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from flask import Response, request

from project_service.access.abilities import Ability, allowed, judge
from project_service.access.api import json_response
from project_service.access.identity import caller, current_user
from project_service.areas.error_tracking.collection.event_parsing import read_time
from project_service.areas.error_tracking.releases import queries, release_files, release_requests, service, uploads
from project_service.areas.error_tracking.releases.uploads import Assembly, UploadRefused
from project_service.areas.error_tracking.sentry_cli import sentry_views
from project_service.areas.error_tracking.sentry_cli.sentry_requests import (
    UNKNOWN,
    ClientRefused,
    SentryBlueprint,
    existing_releases,
    find_organization,
    find_sentry_project,
    json_object,
    readable_in,
    readable_organizations,
    readable_projects,
)
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit.gzip_reading import BadGzip, GzipReader
from project_service.kit.http import urls

MEBIBYTE = 1 << 20
SHA1 = re.compile(r"[0-9a-f]{40}")
MAX_CHUNKS = 2048
ASSEMBLE_KEYS = ("checksum", "chunks", "projects", "version", "dist")
RELEASES = ("/organizations/<organization>/releases/", "/projects/<organization>/<project>/releases/")
ONE_RELEASE = tuple(f"{rule}<version>/" for rule in RELEASES)
STATUSES = ("open", "archived")
MAX_URL_LENGTH = 2048

sentry_api = SentryBlueprint("sentry_api", __name__)


@sentry_api.at("GET", "/", anonymous=True)
def show_api() -> dict[str, Any]:
    """Say who the caller is."""
    if caller().user_id is None:
        return {"version": "0", "auth": None, "user": None}
    user = current_user()
    scopes = ["org:read", "project:read", *(["project:releases"] if "api" in caller().scopes else [])]
    user_fields = {"id": str(user.id), "name": user.name, "username": user.username, "email": user.email}
    return {"version": "0", "auth": {"scopes": scopes}, "user": user_fields}


@sentry_api.at("GET", "/organizations/")
def list_organizations() -> list[dict[str, Any]]:
    """List the top-level namespaces of the caller's projects."""
    return [sentry_views.organization(namespace) for namespace in readable_organizations()]


@sentry_api.at("GET", "/organizations/<organization>/")
def show_organization(organization: str) -> dict[str, Any]:
    """Show a top-level namespace."""
    return sentry_views.organization(find_organization(organization))


@sentry_api.at("GET", "/organizations/<organization>/projects/")
def list_projects(organization: str) -> list[dict[str, Any]]:
    """List the projects below a namespace."""
    projects = readable_projects(find_organization(organization))
    slugs = [readable.path.lower() for readable in projects]
    return [sentry_views.project(readable, slugs) for readable in projects]


@sentry_api.at("GET", "/projects/<organization>/<project>/")
def show_project(organization: str, project: str) -> dict[str, Any]:
    """Show a project with its organisation."""
    namespace = find_organization(organization)
    project_row = find_sentry_project(namespace, project, Ability.READ_ERRORS)
    return {
        **sentry_views.project(project_row, [project_row.path.lower()]),
        "organization": sentry_views.organization(namespace),
    }


@sentry_api.at("GET", "/organizations/<organization>/repos/")
def list_repositories(organization: str) -> list[dict[str, Any]]:
    """List the repositories of the projects below a namespace."""
    readable = readable_projects(find_organization(organization))
    return [
        sentry_views.repository(readable_project)
        for readable_project in readable
        if allowed(caller(), Ability.READ_CODE, readable_project)
    ]


@sentry_api.at("GET", "/organizations/<organization>/chunk-upload/")
def show_chunk_options(organization: str) -> dict[str, Any]:
    """Say how files are uploaded."""
    _require_uploader(find_organization(organization))
    return {
        "url": f"{urls.base_url()}{request.path.rstrip('/')}/",
        "chunkSize": uploads.CHUNK_BYTES,
        "chunksPerRequest": uploads.MAX_CHUNKS_IN_REQUEST,
        "maxFileSize": uploads.MAX_BUNDLE_BYTES,
        "maxRequestSize": uploads.MAX_REQUEST_BYTES,
        "concurrency": 2,
        "hashAlgorithm": "sha1",
        "compression": ["gzip"],
        "accept": ["release_files", "artifact_bundles", "artifact_bundles_v2"],
        "maxWait": 300,
    }


@sentry_api.at(
    "POST",
    "/organizations/<organization>/chunk-upload/",
    writes=False,
    body_bytes=uploads.MAX_REQUEST_BYTES + MEBIBYTE,
)
def receive_chunks(organization: str) -> Response:
    """Store chunks of files."""
    namespace = find_organization(organization)
    _require_uploader(namespace)
    user_id = caller().user_id or 0
    parts = [(name, part) for name in ("file", "file_gzip") for part in request.files.getlist(name)]
    if len(parts) > uploads.MAX_CHUNKS_IN_REQUEST:
        raise ClientRefused(400, "Too many chunks", "error")
    try:
        if parts:
            uploads.check_pending(namespace, user_id)
        for name, part in parts:
            content = _content(part.stream, is_compressed=name == "file_gzip")
            uploads.store_chunk(namespace, user_id, part.filename or "", content)
    except UploadRefused as error:
        raise ClientRefused(400, str(error), "error") from error
    return Response(status=200)


@sentry_api.at("POST", "/organizations/<organization>/artifactbundle/assemble/", writes=False)
def assemble_bundle(organization: str) -> dict[str, Any]:
    """Assemble a bundle of its chunks and store its files."""
    namespace = find_organization(organization)
    body = json_object()
    assembly = _assembly(body)
    projects = _projects_of_body(namespace, body.get("projects"))
    return _assembled(namespace, [target.id for target in projects], assembly)


@sentry_api.at("POST", "/organizations/<organization>/releases/<version>/assemble/", writes=False)
def assemble_release_bundle(organization: str, version: str) -> dict[str, Any]:
    """Assemble a bundle of a release for its projects, as clients before the year 2023 ask for it."""
    namespace = find_organization(organization)
    projects = {readable.id: readable for readable in readable_projects(namespace)}
    rows = existing_releases(list(projects), version)
    mine = [row.project_id for row in rows if allowed(caller(), Ability.UPDATE_ERRORS, projects[row.project_id])]
    if not mine:
        judge(caller(), Ability.UPDATE_ERRORS, projects[rows[0].project_id])
    assembly = _assembly(json_object())
    return _assembled(namespace, mine, dataclasses.replace(assembly, version=version))


def _assembled(namespace: Namespace, project_ids: list[int], assembly: Assembly) -> dict[str, Any]:
    user_id = caller().user_id or 0
    if uploads.is_assembled(project_ids, assembly):
        return _state("ok")
    if (progress := uploads.progress_of(project_ids, assembly)) is not None:
        return _state(*progress)
    missing = uploads.missing_chunks(namespace, user_id, assembly.chunks)
    if missing or not assembly.chunks:
        return {**_state("not_found"), "missingChunks": missing}
    if uploads.is_large(assembly):
        uploads.defer_assembly(namespace, user_id, project_ids, assembly)
        return _state("created")
    reason = uploads.assemble(namespace, user_id, project_ids, assembly)
    return _state("ok") if reason is None else _state("error", reason)


@sentry_api.at("POST", *RELEASES)
def create_release(organization: str, project: str | None = None) -> Response:
    """Create a release, or add projects to it."""
    namespace = find_organization(organization)
    body = json_object()
    version = body.get("version")
    if not service.is_version(version):
        raise ClientRefused(400, "Invalid release version")
    projects = _named_projects(namespace, project, body.get("projects"), str(version))
    fields = _release_fields(body)
    commits, refs = release_requests.commits_of(body), release_requests.refs_of(namespace, body)
    created = [service.ensure_release(target.id, str(version)) for target in projects]
    rows = service.releases_named([target.id for target in projects], str(version))
    for row in rows:
        service.update_release(row, fields, keeps_date=True)
        release_requests.set_commits(row, commits, refs)
    answer = sentry_views.release(rows, {target.id: target for target in projects})
    return json_response(answer, 201 if any(created) else 208)


@sentry_api.at("GET", *RELEASES)
def list_releases(organization: str, project: str | None = None) -> list[dict[str, Any]]:
    """List releases, newest first."""
    projects = {readable.id: readable for readable in readable_in(find_organization(organization), project)}
    status = request.args.get("status") or "open"
    rows = queries.newest_releases(list(projects), request.args.get("query", ""), status)
    return [sentry_views.release([row], projects) for row in rows]


@sentry_api.at("GET", *ONE_RELEASE)
def show_release(organization: str, version: str, project: str | None = None) -> dict[str, Any]:
    """Show a release."""
    projects = {readable.id: readable for readable in readable_in(find_organization(organization), project)}
    return sentry_views.release(existing_releases(list(projects), version), projects)


@sentry_api.at("PUT", *ONE_RELEASE)
def update_release(organization: str, version: str, project: str | None = None) -> dict[str, Any]:
    """Change a release: mostly the time at which it was finished."""
    namespace = find_organization(organization)
    projects = {readable.id: readable for readable in readable_in(namespace, project)}
    rows = existing_releases(list(projects), version)
    body = json_object()
    fields = _release_fields(body)
    commits, refs = release_requests.commits_of(body), release_requests.refs_of(namespace, body)
    for row in rows:
        judge(caller(), Ability.UPDATE_ERRORS, projects[row.project_id])
        service.update_release(row, fields, keeps_date=False)
        release_requests.set_commits(row, commits, refs)
    return sentry_views.release(rows, projects)


@sentry_api.at("DELETE", *ONE_RELEASE)
def delete_release(organization: str, version: str, project: str | None = None) -> Response:
    """Remove a release with its uploads; not while stored errors name it."""
    projects = {readable.id: readable for readable in readable_in(find_organization(organization), project)}
    rows = existing_releases(list(projects), version)
    for row in rows:
        judge(caller(), Ability.DELETE_ERRORS, projects[row.project_id])
    if queries.is_named_by_errors([row.project_id for row in rows], version):
        raise ClientRefused(400, "This release is referenced by events and cannot be removed.")
    service.delete_releases(rows)
    return Response(status=204)


release_requests.register(sentry_api)
release_files.register(sentry_api)


@sentry_api.at("GET", "/<path:unknown>", anonymous=True)
@sentry_api.at("POST", "/<path:unknown>", anonymous=True)
@sentry_api.at("PUT", "/<path:unknown>", anonymous=True)
@sentry_api.at("DELETE", "/<path:unknown>", anonymous=True)
def refuse_unknown(**_url: str) -> None:
    """Answer other addresses in the form that clients print."""
    raise ClientRefused(404, UNKNOWN)


def _require_uploader(namespace: Namespace) -> None:
    """Require that the caller may upload for some project below a namespace."""
    projects = readable_projects(namespace)
    if not any(allowed(caller(), Ability.UPDATE_ERRORS, project) for project in projects):
        judge(caller(), Ability.UPDATE_ERRORS, projects[0])


def _content(stream: Any, *, is_compressed: bool) -> bytes:
    source = GzipReader(stream) if is_compressed else stream
    parts, size = [], 0
    try:
        while size <= uploads.CHUNK_BYTES and (piece := source.read(uploads.CHUNK_BYTES + 1 - size)):
            parts.append(piece)
            size += len(piece)
    except BadGzip as error:
        raise UploadRefused("Checksum mismatch") from error
    if size > uploads.CHUNK_BYTES:
        raise UploadRefused("Chunk size too large")
    return b"".join(parts)


def _assembly(body: dict[str, Any]) -> Assembly:
    checksum, chunks, version, dist = (body.get(name) for name in ("checksum", "chunks", "version", "dist"))
    unknown = [name for name in body if name not in ASSEMBLE_KEYS]
    if unknown:
        raise ClientRefused(400, f"Unknown field {unknown[0][:100]}", "error")
    if not _is_checksum(checksum):
        text = "The checksum field is required and must be a 40-character hexadecimal string."
        raise ClientRefused(400, text, "error")
    if not isinstance(chunks, list) or len(chunks) > MAX_CHUNKS or not all(_is_checksum(chunk) for chunk in chunks):
        text = "The chunks field is required and must be provided as an array of 40-character hexadecimal strings."
        raise ClientRefused(400, text, "error")
    if version is not None and not service.is_version(version):
        raise ClientRefused(400, 'The version field cannot be empty and cannot contain any "/" characters.', "error")
    if dist is not None and (not isinstance(dist, str) or len(dist) > 64):
        raise ClientRefused(400, "The dist field must be a string.", "error")
    return Assembly(str(checksum), chunks, version, dist or None)


def _is_checksum(value: Any) -> bool:
    return isinstance(value, str) and bool(SHA1.fullmatch(value))


def _projects_of_body(namespace: Namespace, given: Any) -> list[Project]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        text = "The projects field is required and must be provided as an array of strings."
        raise ClientRefused(400, text, "error")
    if not given:
        raise ClientRefused(400, "You need to specify at least one project", "error")
    try:
        projects = [find_sentry_project(namespace, name, Ability.UPDATE_ERRORS) for name in dict.fromkeys(given)]
    except ClientRefused as error:
        hidden = "One or more projects are invalid" if error.status == 404 else str(error)
        raise ClientRefused(400, hidden, "error") from error
    return list({target.id: target for target in projects}.values())


def _named_projects(namespace: Namespace, project: str | None, given: Any, version: str) -> list[Project]:
    """Return the projects of a new release: of the address, of the body, or those that have the release."""
    if project is not None:
        return [find_sentry_project(namespace, project, Ability.UPDATE_ERRORS)]
    names = [str(name) for name in given if isinstance(name, str | int)] if isinstance(given, list) else []
    if names:
        try:
            return [find_sentry_project(namespace, name, Ability.UPDATE_ERRORS) for name in dict.fromkeys(names)]
        except ClientRefused as error:
            raise ClientRefused(400, "Invalid project slugs", "projects") from error
    projects = {readable.id: readable for readable in readable_projects(namespace)}
    rows = service.releases_named(list(projects), version)
    for row in rows:
        judge(caller(), Ability.UPDATE_ERRORS, projects[row.project_id])
    if not rows:
        raise ClientRefused(400, "projects is invalid")
    return [projects[row.project_id] for row in rows]


def _release_fields(body: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, key in (("released_at", "dateReleased"), ("started_at", "dateStarted")):
        fields[name] = read_time(body.get(key))
        if body.get(key) is not None and fields[name] is None:
            raise ClientRefused(400, f"{key} is invalid")
    for name in ("ref", "url", "status"):
        value = fields[name] = body.get(name)
        if value is not None and (not isinstance(value, str) or len(value) > MAX_URL_LENGTH):
            raise ClientRefused(400, f"{name} is invalid")
    if fields["url"] and not fields["url"].startswith(("http://", "https://")):
        raise ClientRefused(400, "url is invalid")
    if fields["status"] is not None and fields["status"] not in STATUSES:
        raise ClientRefused(400, "status is invalid")
    return fields


def _state(state: str, detail: str | None = None) -> dict[str, Any]:
    return {"state": state, "missingChunks": [], "detail": detail}
