"""Revisions and paths in the URLs of pages."""

from __future__ import annotations

from dataclasses import dataclass

from project_service.domain.projects import Project
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.kit.http import urls
from project_service.kit.http.errors import NotFound

BASE_PATH = "/<path:project>/-"
MAX_REVISION_PARTS = 50


@dataclass(frozen=True, slots=True)
class RevisionPath:
    """A revision and one of its paths, as written in a URL."""

    revision: str
    path: str
    commit: Commit

    @property
    def parents(self) -> list[tuple[str, str]]:
        """The names of the folders above the path with their paths, outermost first."""
        parts = self.path.split("/")[:-1]
        return [(part, "/".join(parts[: count + 1])) for count, part in enumerate(parts)]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def find_revision_path(code: CodeRepository, text: str) -> RevisionPath:
    """The place that ``REVISION/PATH`` names: the longest revision that exists wins."""
    parts = text.strip("/").split("/")
    for count in range(min(len(parts), MAX_REVISION_PARTS), 0, -1):
        revision = "/".join(parts[:count])
        commit = code.resolve(revision)
        if commit is not None:
            return RevisionPath(revision, "/".join(parts[count:]), commit)
    raise NotFound("Revision")


def page_address(project: Project, page: str, revision: str, path: str = "") -> str:
    """The address of a page of a project (``tree``, ``blob``, ``raw``) for a revision and a path of it."""
    revision_path = urls.encode_path(f"{revision}/{path}" if path else revision)
    return f"/{urls.encode_path(project.full_path)}/-/{page}/{revision_path}"
