"""What can be searched: areas register a scope each, and the area ``search`` asks them (search reference)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, and_, select

from project_service.access.identity import Caller
from project_service.access.rules import visible_projects
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project, projects_below
from project_service.kit.db import text_search
from project_service.kit.db.session import db
from project_service.kit.db.text_search import TextIndex
from project_service.kit.http.fields import whole_number
from project_service.kit.http.pagination import MAX_COUNTED_ROWS, ListedRows, Listing, SelectedRows
from project_service.kit.http.schemas import Schema

INSTANCE, GROUP, PROJECT = "instance", "group", "project"
EVERYWHERE = (INSTANCE, GROUP, PROJECT)
MAX_WORDS = 64
MAX_CHARACTERS = 4096
MAX_LISTED_PROJECTS = 20


@dataclass(frozen=True, slots=False)
class Search:
    """What a caller searches for, in a project, in a group with all below it, or everywhere."""

    caller: Caller
    text: str
    project: Project | None = None
    group: Group | None = None
    state: str | None = None
    confidential: bool | None = None
    ref: str | None = None
    sort: str = "desc"
    include_archived: bool = False

    @cached_property
    def words(self) -> list[str]:
        """The words, all of which a match contains."""
        return text_search.words_of(self.text, MAX_WORDS)

    @property
    def level(self) -> str:
        """Where it is searched."""
        if self.project is not None:
            return PROJECT
        return INSTANCE if self.group is None else GROUP

    @property
    def number(self) -> int | None:
        """The number that ``#12`` asks for."""
        return whole_number(self.text.strip()[1:]) if self.text.strip().startswith("#") else None

    @cached_property
    def few_projects(self) -> list[int] | None:
        """The ids of the projects that are searched; ``None`` if these are more than ``MAX_LISTED_PROJECTS``."""
        if self.project is not None:
            return [self.project.content_id]
        ids = list(db.session.scalars(select(Project.id).where(self._visible()).limit(MAX_LISTED_PROJECTS + 1)))
        return ids if len(ids) <= MAX_LISTED_PROJECTS else None

    def within(self, project_id: Any) -> ColumnElement[bool]:
        """Return the condition for rows joined with their projects: those of the projects that are searched.

        Few projects are listed, so that the rows of all others are not compared for a frequent word.
        """
        if self.few_projects is None:
            return self._visible()
        if len(self.few_projects) == 1:
            return cast("ColumnElement[bool]", project_id == self.few_projects[0])
        return cast("ColumnElement[bool]", project_id.in_(self.few_projects))

    def _visible(self) -> ColumnElement[bool]:
        conditions = [Project.deleting_since.is_(None), Project.loading.is_(False), visible_projects(self.caller)]
        if self.group is not None:
            conditions.append(Project.id.in_(projects_below(self.group)))
        if not self.include_archived:
            conditions.append(Project.archived.is_(False))
        return and_(*conditions)

    def ordered(self, statement: Select[Any], *columns: Any) -> Select[Any]:
        """Order a statement, newest first unless the oldest are asked for."""
        return statement.order_by(*(column.asc() if self.sort == "asc" else column.desc() for column in columns))


@dataclass(frozen=True, slots=True)
class Hit:
    """A match as the page shows it: title and address, where it is, more about it, and lines of code."""

    title: str
    address: str
    project_path: str = ""
    about: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Matches:
    """What a search finds; ``is_cut`` if it left out what is older."""

    listing: Listing
    is_cut: bool = False


NOTHING = Matches(ListedRows([]))


class UncountedRows(SelectedRows):
    """Rows that are not counted: that would compare the texts of all of them."""

    @property
    def total(self) -> int:
        """More than any list tells."""
        return MAX_COUNTED_ROWS + 1


@dataclass(frozen=True, slots=True)
class SearchScope:
    """A kind of things that can be searched.

    ``show`` makes of a row what the page shows. Scopes without a ``schema`` are for pages only. ``prepare`` completes
    the rows of a page for the schema.
    """

    name: str
    title: str
    order: int
    levels: Sequence[str]
    find: Callable[[Search], Matches]
    show: Callable[[Any], Hit]
    schema: type[Schema] | None = None
    prepare: Callable[[Search, list[Any]], None] | None = None


SCOPES: list[SearchScope] = []
REPOSITORY_SCOPES: list[SearchScope] = []  # those that read the repository of a project, and may wait for git


def add(scope: SearchScope, scopes: list[SearchScope] = SCOPES) -> None:
    """Register a scope; adding it twice, as a second application does, is once."""
    if scope.name not in {registered.name for registered in scopes}:
        scopes.append(scope)
        scopes.sort(key=lambda scope: scope.order)


def matching(
    search: Search, index: TextIndex, statement: Select[Any], moment: Any, row_id: Any, *others: ColumnElement[bool]
) -> Matches:
    """The rows of a statement whose texts contain all words, or for which one of ``others`` holds.

    The statement has no order; it gets that of ``moment`` and ``row_id``.
    """
    is_cut = False
    if text_search.needs_scan(index, search.words):
        statement, is_cut = text_search.newest(statement, moment, row_id)
    condition = text_search.contains(index, search.words)
    for other in others:
        condition = cast("ColumnElement[bool]", condition | other)
    return Matches(UncountedRows(search.ordered(statement.where(condition), moment, row_id)), is_cut)
