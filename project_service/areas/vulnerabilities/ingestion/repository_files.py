"""The files of a project's repository, to which paths of reports are compared."""

from __future__ import annotations

import functools

from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.domain.repositories.reading.repository import HEAD


class RepositoryFiles:
    """The files of a report's commit, else of its branch, else of the default branch; listed when one is asked for."""

    def __init__(self, project: Project, sha: str | None, ref: str | None) -> None:
        self._project = project
        self._revisions = [revision for revision in (sha, ref, HEAD) if revision]

    def may_have(self, path: str) -> bool:
        """Whether a path is a file; also true if the project has no repository, or too many files to list them."""
        return self._names is None or path.encode(errors="surrogateescape") in self._names

    @functools.cached_property
    def _names(self) -> frozenset[bytes] | None:
        return contents.file_names(self._project, self._revisions)
