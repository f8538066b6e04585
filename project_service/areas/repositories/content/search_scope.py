"""Commits and code of a project as scopes of the search (search reference, sections 1 to 3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from project_service.access.abilities import Ability, allowed
from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import (
    NOTHING,
    PROJECT,
    REPOSITORY_SCOPES,
    Hit,
    Matches,
    Search,
    SearchScope,
)
from project_service.areas.repositories.code_reading import CommitRow
from project_service.areas.repositories.content.schemas import CommitFullSchema
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.repositories.reading import history, searching
from project_service.domain.repositories.reading.budget import ReadingTooLarge
from project_service.domain.repositories.reading.history import MAX_SEARCH_LENGTH, HistoryFilter
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import HEAD, CodeRepository, code_of
from project_service.domain.repositories.reading.searching import CodeMatch, CodeQuery
from project_service.kit.http import fields
from project_service.kit.http.errors import RequestTimeout
from project_service.kit.http.pagination import MAX_COUNTED_ROWS
from project_service.kit.http.schemas import Schema

COMMIT_ID = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class CodeRow:
    """A match in the files of a project at a revision, for the schema."""

    project: Project
    ref: str
    match: CodeMatch


class CodeMatchSchema(Schema):
    """A match in the files of a project."""

    basename = fields.Computed(lambda row: row.match.path.rpartition(".")[0] or row.match.path)
    data = fields.Computed(lambda row: row.match.data)
    path = fields.Computed(lambda row: row.match.path)
    filename = fields.Computed(lambda row: row.match.path)
    id = fields.Computed(lambda row: row.match.blob_id)
    ref = fields.String()
    startline = fields.Computed(lambda row: row.match.first_line, type="integer")
    project_id = fields.Computed(lambda row: row.project.id, type="integer")


@contextmanager
def _opened(search: Search) -> Iterator[tuple[CodeRepository, Commit] | None]:
    """Open the repository at the revision that is searched; ``None`` where there is no such revision."""
    if search.project is None:
        yield None
        return
    try:
        with code_of(search.project) as code:
            commit = None if code is None else code.resolve(search.ref or HEAD)
            yield None if code is None or commit is None else (code, commit)
    except ReadingTooLarge as error:
        raise RequestTimeout from error


@dataclass(frozen=True, slots=True)
class FoundCommits:
    """The commits of the history of a revision with a text in their message, or the one with an id."""

    search: Search
    total: int = MAX_COUNTED_ROWS + 1

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the commits, newest first."""
        text = self.search.text.strip()
        with _opened(self.search) as opened:
            if opened is None or self.search.project is None:
                return []
            code, commit = opened
            by_id = code.resolve(text.lower()) if COMMIT_ID.fullmatch(text.lower()) else None
            if by_id is not None:
                commits = [by_id][offset : offset + limit]
            else:
                wanted = HistoryFilter(revisions=[commit.id], message=text[:MAX_SEARCH_LENGTH])
                commits = history.commits(code, wanted, offset, limit)
        return [CommitRow(self.search.project, commit) for commit in commits]


@dataclass(frozen=True, slots=True)
class FoundCode:
    """The files of a revision with a text in their names, then the lines with it."""

    search: Search
    total: int = MAX_COUNTED_ROWS + 1

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the matches."""
        query = CodeQuery.of(self.search.text)
        with _opened(self.search) as opened:
            if opened is None or self.search.project is None:
                return []
            code, commit = opened
            most = min(offset + limit, searching.MAX_MATCHES)
            matches = searching.search(code, commit, query, most)[offset:]
            matches = [searching.with_beginning(code, match) for match in matches]
        ref = self.search.ref or self.search.project.default_branch or HEAD
        return [CodeRow(self.search.project, ref, match) for match in matches]


def find_commits(search: Search) -> Matches:
    """The commits of a project whose message has the text."""
    return Matches(FoundCommits(search)) if _may_read(search) else NOTHING


def find_code(search: Search) -> Matches:
    """The code of a project that has the text."""
    return Matches(FoundCode(search)) if _may_read(search) else NOTHING


def _may_read(search: Search) -> bool:
    project = search.project
    return project is not None and not project.loading and allowed(search.caller, Ability.READ_CODE, project)


def show_commit(row: Any) -> Hit:
    """A commit on the page."""
    commit, path = row.commit, row.project.full_path
    return Hit(
        commit.title or commit.short_id,
        f"/{path}{page_paths.commit(commit.id)}",
        path,
        f"{commit.short_id}, {commit.author.name}",
    )


def show_code(row: Any) -> Hit:
    """Lines of a file on the page."""
    path, match = row.project.full_path, row.match
    address = f"/{path}/-/blob/{quote(row.ref)}/{quote(match.path)}"
    if match.blob_id is not None:
        return Hit(match.path, address, path, "file name", match.data)
    last = match.first_line + max(match.data.count("\n") - 1, 0)
    return Hit(match.path, f"{address}#L{match.first_line}-{last}", path, f"from line {match.first_line}", match.data)


for _scope in (
    SearchScope("commits", "Commits", 80, (PROJECT,), find_commits, show_commit, CommitFullSchema),
    SearchScope("blobs", "Code", 5, (PROJECT,), find_code, show_code, CodeMatchSchema),
):
    search_scopes.add(_scope, REPOSITORY_SCOPES)
