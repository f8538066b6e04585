"""Health marks of projects: counts of what is open, which areas register and lists of projects show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, func, select

from project_service.access.identity import Caller
from project_service.domain.projects import Project
from project_service.kit.db.session import db

MAX_COUNT = 99  # of one mark; more are shown as this number and a plus


@dataclass(frozen=True, slots=True)
class HealthMark:
    """What is counted of a project: the noun, the colour, where the list is, and how to count.

    ``counted`` selects the rows of the project of the outer statement; ``readable`` is the condition for projects in
    which the caller may read them.
    """

    noun: str
    tone: str
    order: int
    path: str
    counted: Callable[[], Select[int]]
    readable: Callable[[Caller], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class ShownMark:
    """A mark as templates see it."""

    noun: str
    tone: str
    path: str
    count: int

    @property
    def text(self) -> str:
        """The count, or that there are more than ``MAX_COUNT``."""
        return f"{MAX_COUNT}+" if self.count > MAX_COUNT else str(self.count)


MARKS: list[HealthMark] = []


def add(mark: HealthMark) -> None:
    """Register a mark; registering it twice, as a second application does, is once."""
    if mark not in MARKS:
        MARKS.append(mark)
        MARKS.sort(key=lambda mark: mark.order)


def marks_of(caller: Caller, projects: Sequence[Project]) -> Mapping[int, list[ShownMark]]:
    """Return the marks of each project that are not zero, by its id, with one statement per kind of mark."""
    marks: dict[int, list[ShownMark]] = {project.id: [] for project in projects}
    for mark in MARKS:
        rows = mark.counted().correlate(Project).limit(MAX_COUNT + 1).subquery()
        count = select(func.count()).select_from(rows).scalar_subquery()
        counts = select(Project.id, count).where(Project.id.in_(marks), mark.readable(caller))
        for project_id, number in db.session.execute(counts):
            if number:
                marks[project_id].append(ShownMark(mark.noun, mark.tone, mark.path, number))
    return marks
