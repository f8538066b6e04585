"""Labels of projects: the table and finders."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import ForeignKey, Select, UniqueConstraint, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.large_texts import LargeText
from project_service.kit.db.session import db, one
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import whole_number

DEFAULT_COLOR = "#6699cc"
LONGEST_TITLE = 255
DARK, LIGHT = "#333333", "#FFFFFF"
HEX = re.compile(r"#(?:([0-9a-f])([0-9a-f])([0-9a-f])|([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2}))", re.IGNORECASE)
BRIGHT = 500


class Label(Timestamps, Model):
    """A label of a project; an issue may have a label title without such a row."""

    __tablename__ = "labels"
    __table_args__ = (UniqueConstraint("project_id", "title"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    title: Mapped[str]
    color: Mapped[str] = mapped_column(default=DEFAULT_COLOR)
    description: Mapped[LargeText | None]
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    # not columns; set by queries for a response
    priority: int | None
    counts: dict[str, int]


def labels_of(project: Project) -> Select[Label]:
    """The labels of a project, by title."""
    return select(Label).where(Label.project_id == project.content_id).order_by(Label.title)


def find_label(project: Project, id_or_title: str) -> Label:
    """One label by its id or, if no label has that id, by its title."""
    statement = labels_of(project)
    number = whole_number(id_or_title)
    if number is not None:
        by_id = db.session.scalar(statement.where(Label.id == number))
        if by_id is not None:
            return by_id
    return one(statement.where(Label.title == id_or_title), NotFound("Label"))


def text_color(color: str) -> str:
    """The colour in which the title of a label can be read: dark on what is bright."""
    match = HEX.fullmatch(color)
    parts = [part * (2 // len(part)) for part in match.groups() if part] if match else []
    return DARK if sum(int(part, 16) for part in parts) > BRIGHT else LIGHT
