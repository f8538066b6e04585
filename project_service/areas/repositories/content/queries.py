"""Lists of commits, files and differences, cut into pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from project_service.areas.repositories.code_reading import CommitRow, TooSlow, find_commit, optional_code, reading_code
from project_service.domain.projects import Project
from project_service.domain.repositories.reading import diffs, history, trees
from project_service.domain.repositories.reading.diffs import FileDiff, TreeDifference
from project_service.domain.repositories.reading.history import HistoryFilter
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import HEAD, CodeRepository
from project_service.domain.repositories.reading.trees import Folder
from project_service.kit.http.errors import BadParameters, NotFound
from project_service.kit.http.pagination import Paging, PreparedPage, uncounted_headers

RANGE = re.compile(r"(?P<old>.+?)(?P<dots>\.{2,3})(?P<new>.+)")
BAD_REVISION = re.compile(r"-.*|.*[\x00-\x20\x7f:?*\[\\].*", re.DOTALL)
MAX_PATH_LENGTH = 4096
MAX_UNPAGED_ENTRIES = 20_000


def commits_of(project: Project, paging: Paging, **wanted: Any) -> PreparedPage:
    """A page of commits, newest first; without totals, for that would walk the whole history."""
    with optional_code(project) as code:
        selected = None if code is None else _filter(code, wanted)
        commits = history.commits(code, selected, paging.offset, paging.size) if code and selected else []
        rows = rows_of(project, code, commits, with_stats=wanted.get("with_stats", False))
    return PreparedPage(rows, uncounted_headers(paging, more=len(rows) == paging.size))


def rows_of(
    project: Project, code: CodeRepository | None, found: Sequence[Commit], *, with_stats: bool = False
) -> list[CommitRow]:
    """Commits as schemas serialize them."""
    if not with_stats or code is None:
        return [CommitRow(project, commit) for commit in found]
    numbers = history.stats(code, found)
    empty = history.CommitStats(0, 0)
    return [
        CommitRow(project, commit, stats.additions, stats.deletions)
        for commit in found
        for stats in [numbers.get(commit.id, empty)]
    ]


def _filter(code: CodeRepository, wanted: dict[str, Any]) -> HistoryFilter | None:
    """The history that parameters describe, ``None`` for an unknown revision."""
    name = wanted.get("ref_name") or HEAD
    if BAD_REVISION.fullmatch(name):
        raise BadParameters("ref_name is invalid")
    revisions = [] if wanted.get("all") else revisions_of(code, name)
    if revisions is None:
        return None
    return HistoryFilter(
        revisions=revisions,
        path=(wanted.get("path") or "").strip("/")[:MAX_PATH_LENGTH],
        since=wanted.get("since"),
        until=wanted.get("until"),
        author=wanted.get("author") or "",
        message=wanted.get("message") or "",
        everything=wanted.get("all", False),
        first_parent=wanted.get("first_parent", False),
        topological=wanted.get("order") == "topo",
    )


def revisions_of(code: CodeRepository, name: str) -> list[str] | None:
    """The commits that begin a history, those it excludes with ``^``; ``None`` if there is no such revision."""
    commit = code.resolve(name)
    if commit is not None:
        return [commit.id]
    match = RANGE.fullmatch(name)
    if match is None:
        return None
    old, new = code.resolve(match["old"]), code.resolve(match["new"])
    if old is None or new is None:
        return None
    if match["dots"] == "..":
        return [new.id, f"^{old.id}"]
    base = history.merge_base(code, [old.id, new.id])
    return [new.id, old.id, *([f"^{base.id}"] if base else [])]


def show_commit(project: Project, sha: str, *, stats: bool) -> CommitRow:
    """One commit, with the numbers of its changed lines if they are wanted."""
    with reading_code(project, "Commit") as code:
        return rows_of(project, code, [find_commit(code, sha)], with_stats=stats)[0]


@dataclass(frozen=True, slots=True)
class CommitDiffs:
    """The differences of a commit, one row per file."""

    project: Project
    sha: str

    @property
    def total(self) -> int:
        """The number of files."""
        with reading_code(self.project, "Commit") as code:
            return len(self._difference(code).files)

    def rows(self, offset: int, limit: int) -> list[FileDiff]:
        """Return some of the files with their patches."""
        with reading_code(self.project, "Commit") as code:
            difference = self._difference(code)
            some = difference.files[offset : offset + limit]
            diffs.add_patches(code, difference, some)
        return some

    def _difference(self, code: CodeRepository) -> TreeDifference:
        difference = diffs.of_commit(code, find_commit(code, self.sha))
        if difference.expired:  # the pages of a list must be parts of one whole
            raise TooSlow
        return difference


def tree_of(project: Project, paging: Paging, **wanted: Any) -> Folder | PreparedPage:
    """The entries of a folder: all, for pages with totals, or the page after ``page_token``."""
    with reading_code(project, "Tree") as code:
        commit = find_commit(code, wanted.get("ref"), "Tree")
        path = (wanted.get("path") or "").strip("/")
        folder = trees.folder(code, commit, path, recursive=wanted["recursive"])
    if folder is None:
        raise NotFound("invalid revision or path")
    if wanted["pagination"] == "none" and wanted["recursive"]:
        if len(folder) > MAX_UNPAGED_ENTRIES:
            raise TooSlow
        return PreparedPage(folder[:], {})
    if wanted["pagination"] == "keyset":
        return _after(folder, wanted.get("page_token"), paging)
    return folder


def _after(found: Folder, last_id: str | None, paging: Paging) -> PreparedPage:
    """The page that follows the entry with an id."""
    position = found.position_after(last_id) if last_id else 0
    rows = found[position : position + paging.size]
    if len(rows) < paging.size:
        return PreparedPage(rows, {})
    return PreparedPage(rows, {"Link": f'<{paging.address({"page_token": rows[-1].id})}>; rel="next"'})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference of two revisions; ``commits`` are the oldest first, ``commit`` is the last of them."""

    project: Project
    old_id: str
    new_id: str
    commits: list[CommitRow]
    diffs: list[FileDiff]
    compare_timeout: bool
    compare_same_ref: bool

    @property
    def commit(self) -> CommitRow | None:
        """The last commit."""
        return self.commits[-1] if self.commits else None


MAX_COMPARED_COMMITS = 1000


def compare(project: Project, old: str, new: str, *, straight: bool) -> Comparison:
    """Compare two revisions: commits that only the new one has, and the differences from their common ancestor."""
    with reading_code(project, "Ref") as code:
        first, last = find_commit(code, old or " ", "Ref"), find_commit(code, new or " ", "Ref")
        base = first if straight else history.merge_base(code, [first.id, last.id])
        if base is None:
            raise NotFound("Ref")
        wanted = HistoryFilter(revisions=[last.id, f"^{first.id}"])
        commits = history.commits(code, wanted, 0, MAX_COMPARED_COMMITS + 1)
        difference = diffs.between(code, base.id, last.id)
        diffs.add_patches(code, difference, difference.files)
    is_cut = len(commits) > MAX_COMPARED_COMMITS or not difference.complete
    rows = rows_of(project, None, commits[:MAX_COMPARED_COMMITS][::-1])
    return Comparison(project, first.id, last.id, rows, difference.files, is_cut, first.id == last.id)
