"""Lists of branches and tags."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.roles import role_of
from project_service.areas.repositories.code_reading import CommitRow, optional_code, reading_code
from project_service.areas.repositories.releases import queries as release_queries
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, REF, TAGS
from project_service.domain.repositories.protected_refs import (
    ProtectedTag,
    may_push,
    protected_branches_of,
    protections_of,
)
from project_service.domain.repositories.reading import history, refs
from project_service.domain.repositories.reading.budget import ReadingFailed
from project_service.domain.repositories.reading.objects import Person
from project_service.domain.repositories.reading.refs import Ref
from project_service.domain.repositories.reading.repository import HEAD, CodeRepository
from project_service.domain.repositories.releases import Release
from project_service.domain.repositories.wildcards import matches
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadParameters, BadRequest, NotFound, Unavailable
from project_service.kit.http.pagination import ListedRows

DISTANCES_SECONDS = 1.0  # for all branches of a page


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A branch of a project; ``can_push`` is about the caller."""

    project: Project
    name: str
    commit: CommitRow
    merged: bool
    protected: bool
    developers_can_push: bool
    developers_can_merge: bool
    can_push: bool
    default: bool


@dataclass(frozen=True, slots=True)
class TagRow:
    """A tag of a project; ``message`` and ``tagger`` are those of an annotated one."""

    name: str
    message: str | None
    target: str
    commit: CommitRow | None
    protected: bool
    tagger: Person | None
    release: Release | None


@dataclass(frozen=True, slots=True)
class RefRows:
    """A list of refs whose rows are read page by page."""

    project: Project
    found: Sequence[Ref]
    read: Callable[[Project, CodeRepository, Sequence[Ref]], list[Any]]

    @property
    def total(self) -> int:
        """The number of refs."""
        return len(self.found)

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the rows."""
        with reading_code(self.project) as code:
            return self.read(self.project, code, self.found[offset : offset + limit])


def branches_of(
    project: Project, *, search: str | None = None, sort: str = "name_asc", regex: str | None = None
) -> RefRows | ListedRows:
    """The branches of a project.

    Raises:
        BadParameters: there is a ``regex``; to ignore it would answer branches that were not asked for.

    """
    if regex:
        raise BadParameters("regex is not supported")
    order, _, direction = sort.partition("_")
    return _refs_of(project, BRANCHES, search, order, direction == "desc", branch_rows)


def tags_of(
    project: Project, *, search: str | None = None, order_by: str = "updated", sort: str = "desc"
) -> RefRows | ListedRows:
    """The tags of a project."""
    return _refs_of(project, TAGS, search, order_by, sort == "desc", tag_rows)


def _refs_of(
    project: Project,
    prefix: str,
    search: str | None,
    order: str,
    descending: bool,
    read: Callable[[Project, CodeRepository, Sequence[Ref]], list[Any]],
) -> RefRows | ListedRows:
    with optional_code(project) as code:
        if code is None:
            return ListedRows([])
        listed = refs.refs(code, prefix, order=order, descending=descending)
    return RefRows(project, refs.matching(listed, search) if search else listed, read)


def find_branch(project: Project, name: str) -> BranchRow:
    """One branch by its name."""
    if not REF.fullmatch(name):
        raise BadRequest("The branch refname is invalid")
    with reading_code(project, "Branch") as code:
        ref = refs.find_ref(code, BRANCHES, name)
        rows = [] if ref is None else branch_rows(project, code, [ref])
    if not rows:
        raise NotFound("Branch")
    return rows[0]


def find_tag(project: Project, name: str) -> TagRow:
    """One tag by its name."""
    with reading_code(project, "Tag") as code:
        ref = refs.find_ref(code, TAGS, name)
        rows = [] if ref is None else tag_rows(project, code, [ref])
    if not rows:
        raise NotFound("Tag")
    return rows[0]


def branch_rows(project: Project, code: CodeRepository, found: Sequence[Ref]) -> list[BranchRow]:
    """Branches as schemas serialize them; what protects them is computed from all rules that match."""
    head = code.resolve("HEAD")
    merged = refs.merged(code, [ref.name for ref in found], head.id) if head else set()
    pushes = allowed(caller(), Ability.PUSH_CODE, project)
    role, protected = role_of(caller(), project), list(db.session.scalars(protected_branches_of(project)))
    rows = []
    for ref in found:
        commit, default = code.commit_of(ref.commit_id), ref.name == project.default_branch
        if commit is not None:
            row = CommitRow(project, commit)
            rules = protections_of(protected, ref.name)
            rows.append(
                BranchRow(
                    project=project,
                    name=ref.name,
                    commit=row,
                    merged=ref.name in merged and not default,
                    protected=bool(rules),
                    developers_can_push=any(rule.push_access_level == Role.DEVELOPER for rule in rules),
                    developers_can_merge=any(rule.merge_access_level == Role.DEVELOPER for rule in rules),
                    can_push=pushes and (not rules or may_push(role, rules)),
                    default=default,
                )
            )
    return rows


def distances(project: Project, rows: Sequence[BranchRow]) -> dict[str, tuple[int, int]]:
    """How many commits each branch has that the default one lacks, and how many it lacks, as far as git is fast."""
    by_branch: dict[str, tuple[int, int]] = {}
    deadline = time.monotonic() + DISTANCES_SECONDS
    with optional_code(project) as code:
        head = None if code is None else code.resolve(HEAD)
        for row in rows if head else ():
            seconds = deadline - time.monotonic()
            if seconds <= 0 or code is None or head is None:
                break
            try:
                by_branch[row.name] = history.ahead_behind(code, row.commit.commit.id, head.id, seconds)
            except (ReadingFailed, Unavailable):
                break
    return by_branch


def tag_rows(project: Project, code: CodeRepository, found: Sequence[Ref]) -> list[TagRow]:
    """Tags as schemas serialize them."""
    patterns = list(db.session.scalars(select(ProtectedTag.name).where(ProtectedTag.project_id == project.id)))
    shows_releases = allowed(caller(), Ability.READ_RELEASES, project)
    releases = release_queries.releases_by_tag(project, [ref.name for ref in found]) if shows_releases else {}
    rows = []
    for ref in found:
        tag, commit = code.tag_object(ref.target), code.commit_of(ref.commit_id)
        rows.append(
            TagRow(
                name=ref.name,
                message=None if tag is None else tag.message.removesuffix("\n"),
                target=ref.target,
                commit=None if commit is None else CommitRow(project, commit),
                protected=any(matches(pattern, ref.name) for pattern in patterns),
                tagger=None if tag is None else tag.tagger,
                release=releases.get(ref.name),
            )
        )
    return rows
