"""Starting imports and exports."""

from __future__ import annotations

from typing import IO, Any

import structlog

from project_service.access import audit
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.projects.service import ProjectLimitReached, create_project
from project_service.domain import instance_settings
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace, namespace_by, namespace_of
from project_service.domain.paths import path_registry, path_rules
from project_service.domain.projects import Project
from project_service.domain.rate_limits import RateLimit
from project_service.kit import logs
from project_service.kit.db.session import db, unit_of_work, writing
from project_service.kit.http.errors import (
    DISK_FULL_ERRNOS,
    BadRequest,
    BodyTooLarge,
    InsufficientStorage,
    Invalid,
    NotFound,
    ServiceError,
    Unprocessable,
)
from project_service.kit.security.outgoing_http import rules
from project_service.kit.storage import storage
from project_service.transfers import jobs, queries
from project_service.transfers.models import SCHEDULED, ProjectExport, ProjectImport, temporary_path
from project_service.transfers.remote import downloads
from project_service.transfers.schemas import METHODS
from project_service.transfers.workdir import receiving_upload

MIB = 1 << 20
MULTIPART_OVERHEAD_BYTES = MIB  # of a body, beside its file
NOT_GZIP = "You need to upload a GitLab project export archive (ending in .gz)."
# settings of the server that imports do not override (import reference, section 9)
NEVER_OVERRIDDEN = frozenset({"lfs_enabled", "packages_enabled", "emails_disabled"})
NAMES = {"name": "Name", "path": "Path", "namespace": "Namespace", "visibility_level": "Visibility level"}

log = structlog.get_logger(__name__)


def largest_body() -> int | None:
    """Return the maximum size of the body of an import in bytes; unlimited if the setting is 0."""
    most = instance_settings.setting("max_import_size")
    return most * MIB + MULTIPART_OVERHEAD_BYTES if most else None


class ProjectRefused(BadRequest):
    """The new project violates a rule; the message has the first problem, ``problems`` has all, by field."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(_first_message(error))
        self.problems: dict[str, list[str]] = error.message


def remote_imports_are_on(user: User) -> bool:
    """Whether the feature flag of remote imports is on for a user."""
    return instance_settings.feature_enabled(instance_settings.IMPORT_PROJECT_FROM_REMOTE_FILE, f"User:{user.id}")


def check_remote_flag(user: User) -> None:
    """Raise ``NotFound`` while remote imports are off."""
    if not remote_imports_are_on(user):
        raise NotFound


def exports_are_on() -> bool:
    """Whether exports are enabled on the instance."""
    return bool(instance_settings.setting("project_export_enabled"))


def check_exports() -> None:
    """Raise ``NotFound`` while exports are off (export reference, section 1)."""
    if not exports_are_on():
        raise NotFound


def count_import(user: User) -> None:
    """Count a request against the rate limit of imports."""
    RateLimit("project_import", instance_settings.setting("project_import_limit")).check(user.id)


def count_export(user: User) -> None:
    """Count a request against the rate limit of exports."""
    RateLimit("project_export", instance_settings.setting("project_export_limit")).check(user.id)


def count_download(user: User, project: Project) -> None:
    """Count a request against the rate limit of downloads."""
    most = instance_settings.setting("project_download_export_limit")
    RateLimit("project_download_export", most).check(user.id, project.id)


def record_download(project: Project) -> None:
    """Add the audit event of a download, in a transaction of its own: the request only reads."""
    with unit_of_work():
        audit.record("project_export_file_download_started", project, "Export file download started")


def import_file(user: User, file: Any, **options: Any) -> Project:
    """Store an uploaded archive, create its project and enqueue the import."""
    if not (file.filename or "").endswith(".gz"):
        raise Unprocessable({"error": NOT_GZIP})
    _check_size(file.stream)
    namespace = _namespace(user, options)
    db.session.commit()  # no transaction is open while the archive is stored
    with receiving_upload() as name:
        _store(file.stream, name)
        try:
            with writing():
                return _create(user, namespace, options, storage_name=name)
        except BaseException:
            storage().delete(name)
            raise


def import_url(user: User, url: str, **options: Any) -> Project:
    """Check a remote archive with HEAD, create its project and enqueue the import."""
    namespace = _namespace(user, options)
    for name, value in (("path", options.get("path")), ("remote_import_url", url)):
        if not (value or "").strip():
            raise BadRequest(f"Parameter '{name}' is required")
    allowed_hosts = instance_settings.outgoing_policy()
    db.session.commit()  # no transaction is open while the remote server responds
    downloads.check(url, allowed_hosts)
    with writing():
        return _create(user, namespace, options, url=url)


def start_export(user: User, project: Project, description: str | None, upload: dict[str, Any] | None) -> ProjectExport:
    """Enqueue an export; the current file stays until the new one is complete."""
    upload = upload or {}
    if upload.get("url"):
        _check_upload(upload)
    _check_stored(project)
    export = ProjectExport(
        project_id=project.id,
        user_id=user.id,
        description=description if (description or "").strip() else None,
        upload_url=upload.get("url") or None,
        upload_method=(upload.get("http_method") or "PUT").upper(),
    )
    db.session.add(export)
    db.session.flush()
    audit.record("project_export_created", project, "Export of the project was started")
    jobs.defer_export(export)
    return export


def _create(user: User, namespace: Namespace, options: dict[str, Any], **source: Any) -> Project:
    path, overwritten = (options["path"] or "").strip(), None
    name = (options.get("name") or "").strip()
    if not path:
        problems = {"name": path_rules.project_name_problems(name) if name else [], "path": [path_rules.BLANK]}
        raise ProjectRefused(Invalid(**{field: texts for field, texts in problems.items() if texts}))
    old = path_registry.find_by_path(f"{namespace.full_path}/{path}") if options.get("overwrite") else None
    if isinstance(old, Project):
        path, overwritten = temporary_path(path), path
        name = "" if name == old.name else name  # it is free when the old project has been removed
    try:
        project = create_project(user, namespace, name=name or path, path=path, visibility="private")
    except ProjectLimitReached as error:
        raise BadRequest(_limit_text(user)) from error
    except Invalid as error:
        raise ProjectRefused(error) from error
    project.import_status, project.loading = SCHEDULED, True
    record = ProjectImport(
        project_id=project.id,
        project=project,
        user_id=user.id,
        correlation_id=logs.request_id(),
        wanted_path=overwritten,
        override_params={
            name: value
            for name, value in (options.get("override_params") or {}).items()
            if value is not None and name not in NEVER_OVERRIDDEN
        },
        **source,
    )
    db.session.add(record)
    db.session.flush()
    audit.record("project_import_created", project, "Import into the project was started", overwrite=bool(overwritten))
    jobs.defer_import(record)
    return project


def _namespace(user: User, options: dict[str, Any]) -> Namespace:
    """Return the namespace of the new project (import reference, section 3)."""
    named = (options.get(name) for name in ("namespace", "namespace_path", "namespace_id"))
    chosen = next((value for value in named if value is not None and str(value).strip()), None)
    if chosen is None:
        return namespace_of(user)
    namespace = namespace_by(chosen)
    user_caller = Caller.of(user)
    if namespace is None or not allowed(user_caller, Ability.READ_NAMESPACE, namespace):
        raise NotFound("Namespace")
    if not allowed(user_caller, Ability.CREATE_PROJECT, namespace):
        raise BadRequest("Namespace is not valid")
    return namespace


def _store(stream: IO[bytes], name: str) -> None:
    try:
        storage().store(stream, name)
    except OSError as error:
        if error.errno in DISK_FULL_ERRNOS:
            log.error("there is no room left for an archive", error=str(error))
            raise InsufficientStorage from error
        raise


def _check_size(stream: IO[bytes]) -> None:
    most = instance_settings.setting("max_import_size")
    stream.seek(0, 2)
    size = stream.tell()
    stream.seek(0)
    if most and size > most * MIB:
        raise BodyTooLarge


def _check_stored(project: Project) -> None:
    """A limit of later releases (export reference, section 2)."""
    most = instance_settings.setting("max_export_size")
    if most and queries.size_of(project) > most * MIB:
        raise BadRequest("The project size exceeds the export limit.")


def _check_upload(upload: dict[str, Any]) -> None:
    """Check the syntax of the address; its host is checked before the upload (export reference, section 2)."""
    problems: dict[str, str | list[str]] = {}
    text = rules.spelling_problem(upload["url"])
    if text is not None:
        problems["url"] = f"is blocked: {text}"
    if (upload.get("http_method") or "PUT").upper() not in METHODS:
        problems["http_method"] = "invalid. Only PUT and POST methods allowed."
    if problems:
        raise Invalid(**problems)


def _first_message(error: ServiceError) -> str:
    """Return the first problem as a sentence (import reference, section 4)."""
    for name, texts in error.message.items():
        for text in texts:
            return f"{NAMES.get(name, name.replace('_', ' ').capitalize())} {text}"
    return str(error)


def _limit_text(user: User) -> str:
    if not user.projects_limit:
        return (
            "Limit reached Personal project creation is not allowed. Please contact your administrator with questions"
        )
    limit = user.projects_limit
    return f"Limit reached Your project limit is {limit} projects! Please contact your administrator to increase it"
