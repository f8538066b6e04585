"""Labels of projects and groups: the tables and finders.

Issues and merge requests keep the titles of their labels. In a project a title means the project's own label, else that
of the nearest group above.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    ForeignKey,
    Index,
    UniqueConstraint,
    func,
    select,
    text,
    union_all,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.namespaces import Group, Namespace, NamespaceAncestor, groups_above
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import NO_PROJECT, Project
from project_service.kit.db.base import Base, Key, Model, Timestamps
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
    """A label of a project or, for all projects below it, of a group."""

    __tablename__ = "labels"
    __table_args__ = (
        UniqueConstraint("project_id", "title"),
        Index("ix_labels_group_id", "group_id", "title", unique=True),
        CheckConstraint("(project_id IS NULL) <> (group_id IS NULL)", name="owner"),
    )

    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    group_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Group | None] = relationship()
    title: Mapped[str]
    color: Mapped[str] = mapped_column(default=DEFAULT_COLOR)
    description: Mapped[LargeText | None]
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)


class LabelPriority(Base):
    """The priority of a label in a project, also of a label of a group; lower is more important."""

    __tablename__ = "label_priorities"

    project_id: Mapped[int] = mapped_column(Key, ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True)
    label_id: Mapped[int] = mapped_column(
        Key, ForeignKey("labels.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    priority: Mapped[int]


class LabelSubscription(Model):
    """A user who has subscribed to a label: in one project, or to a label of a group everywhere."""

    __tablename__ = "label_subscriptions"
    __table_args__ = (
        Index(
            "uq_label_subscriptions_user_id_label_id",
            "user_id",
            "label_id",
            text("coalesce(project_id, 0)"),
            unique=True,
        ),
    )

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    label_id: Mapped[int] = mapped_column(ForeignKey("labels.id", ondelete="CASCADE"), index=True)
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), index=True)


def usable_in(project: Project, *, ancestors: bool = True) -> ColumnElement[bool]:
    """The condition for the labels of a project: its own, and those of the groups above or of the direct group only."""
    if project.content_id == NO_PROJECT:
        return Label.project_id == NO_PROJECT
    groups = groups_above(project.namespace_id) if ancestors else [project.namespace_id]
    return with_any_of(Label.project_id == project.id, Label.group_id.in_(groups))


def usable_in_group(group: Group, *, ancestors: bool = True) -> ColumnElement[bool]:
    """The condition for the labels of a group: its own and, with ``ancestors``, those of the groups above."""
    return Label.group_id.in_(groups_above(group.id) if ancestors else [group.id])


def with_any_of(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition for the labels for which one of some conditions holds, each looked up by an index of its own."""
    return Label.id.in_(union_all(*(select(Label.id).where(condition) for condition in conditions)))


def find_label(usable: ColumnElement[bool], id_or_title: str) -> Label:
    """One of the labels for which ``usable`` holds, by its id or, if none has that id, by its title."""
    statement = select(Label).where(usable)
    number = whole_number(id_or_title)
    if number is not None:
        by_id = db.session.scalar(statement.where(Label.id == number))
        if by_id is not None:
            return by_id
    own_first = statement.where(Label.title == id_or_title).order_by(Label.project_id.is_(None), Label.id.desc())
    return one(own_first.limit(1), NotFound("Label"))


def labels_by_title(
    projects: Iterable[Project | ProjectAccess], titles: Collection[str]
) -> dict[tuple[int, str], Label]:
    """The labels that titles mean in projects, by the id of the project and the title; with two statements."""
    if not titles:
        return {}
    projects = list(projects)
    namespace_ids = {project.namespace_id for project in projects}
    above = select(NamespaceAncestor.namespace_id, NamespaceAncestor.ancestor_id).join(
        Namespace, Namespace.id == NamespaceAncestor.ancestor_id
    )
    farthest_first = above.where(NamespaceAncestor.namespace_id.in_(namespace_ids)).order_by(
        func.length(Namespace.full_path)
    )
    groups: dict[int, list[int]] = {}
    for namespace_id, ancestor_id in db.session.execute(farthest_first):
        groups.setdefault(namespace_id, []).append(ancestor_id)
    in_groups = Label.group_id.in_({group_id for ids in groups.values() for group_id in ids})
    in_projects = Label.project_id.in_({project.id for project in projects})
    labels = db.session.scalars(select(Label).where(with_any_of(in_projects, in_groups), Label.title.in_(titles)))
    by_owner: dict[tuple[int | None, int | None], dict[str, Label]] = {}
    for label in labels:
        by_owner.setdefault((label.project_id, label.group_id), {})[label.title] = label
    return {
        (project.id, title): label
        for project in projects
        for owner in (*((None, group_id) for group_id in groups.get(project.namespace_id, ())), (project.id, None))
        for title, label in by_owner.get(owner, {}).items()
    }


def colors_of(project: Project, titles: Collection[str]) -> dict[str, str]:
    """The colours of labels by their titles, in a project; titles without a label are left out."""
    if not titles:
        return {}
    statement = select(Label.title, Label.color).where(usable_in(project), Label.title.in_(titles))
    # the project's own come last, and so replace those of groups
    rows = db.session.execute(statement.order_by(Label.project_id.is_not(None), Label.id))
    return {row.title: row.color for row in rows}


def choices_of(project: Project, limit: int) -> dict[str, str]:
    """The labels that issues of a project may get, ordered by title, with their colours; ``limit`` titles at most."""
    statement = select(Label.title, Label.color).where(usable_in(project))
    # the project's own come last, and so replace those of groups
    rows = db.session.execute(statement.order_by(Label.title, Label.project_id.is_not(None), Label.id).limit(limit))
    return {row.title: row.color for row in rows}


def text_color(color: str) -> str:
    """The colour in which the title of a label can be read: dark on what is bright."""
    match = HEX.fullmatch(color)
    parts = [part * (2 // len(part)) for part in match.groups() if part] if match else []
    return DARK if sum(int(part, 16) for part in parts) > BRIGHT else LIGHT
