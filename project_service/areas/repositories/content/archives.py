"""Downloads of archives."""

from __future__ import annotations

from collections.abc import Iterable

from flask import Response

from project_service.access.identity import caller
from project_service.areas.repositories.code_reading import download_slots, find_commit, streamed
from project_service.domain.projects import Project
from project_service.domain.rate_limits import RateLimit
from project_service.domain.repositories.reading import archives
from project_service.domain.repositories.reading.objects import is_addressable
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.kit.http import raw_content
from project_service.kit.http.errors import NotFound

FORMATS = tuple(archives.FORMATS)
LIMIT_PER_USER = RateLimit("repository_archive", 60)  # and project
LIMIT_ANONYMOUS = RateLimit("repository_archive", 100)
ANONYMOUS = 0


def respond(project: Project, kind: str, revision: str | None, path: str | None) -> Response:
    """Stream an archive of a revision, or of one folder of it.

    Its name, which is that of its one folder too, is that of the project, the revision and the commit.
    """
    container = archives.FORMATS.get(kind)
    if container is None:
        raise NotFound("File")
    user_id = caller().user_id or ANONYMOUS
    limit = LIMIT_PER_USER if user_id else LIMIT_ANONYMOUS
    limit.check(project.id, user_id)
    folder = (path or "").strip("/")

    def answer(code: CodeRepository) -> tuple[Iterable[bytes], Response]:
        commit = find_commit(code, revision, "File")
        if folder and (not is_addressable(folder) or code.entry(commit, folder) is None):
            raise NotFound("File")
        parts = [project.path, revision or project.default_branch or "HEAD", commit.id, *([folder] if folder else [])]
        name = "-".join(parts).replace("/", "-")
        response = Response(mimetype="application/zip" if container == "zip" else raw_content.BINARY)
        response.headers["Content-Disposition"] = raw_content.disposition("attachment", f"{name}.{container}")
        return archives.archive(code, commit, container, name, folder, slots=download_slots()), response

    return streamed(project, answer)
