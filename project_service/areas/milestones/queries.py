"""Queries of milestones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Select, or_, select, union_all

from project_service.access.identity import Caller
from project_service.access.rules import projects_with, visible_groups, visible_projects
from project_service.domain.namespaces import Group, descendants_of, groups_above
from project_service.domain.projects import Project, projects_below
from project_service.domain.tracker.milestones import WITH_OWNER, Milestone, milestones_of, usable_in
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING


def milestones_matching(caller: Caller, owner: Project | Group, **filters: Any) -> Select[Milestone]:
    """The milestones of a project or a group, the earliest due date first.

    ``include_ancestors`` adds those of the groups above, ``include_descendants`` those of the subgroups of a group and
    of the projects below it that the caller sees.
    """
    with_ancestors = filters.get("include_ancestors") or filters.get("include_parent_milestones")
    statement = _of(caller, owner, with_ancestors=bool(with_ancestors), below=bool(filters.get("include_descendants")))
    if filters.get("iids") and not with_ancestors:
        statement = statement.where(Milestone.iid.in_(filters["iids"]))
    statement = statement.where(*_conditions(filters)).options(*WITH_OWNER, NO_LAZY_LOADING)
    last = Milestone.id.desc() if isinstance(owner, Group) else Milestone.id.asc()
    return statement.order_by(Milestone.due_date.asc().nulls_last(), last)


def _of(caller: Caller, owner: Project | Group, *, with_ancestors: bool, below: bool) -> Select[Milestone]:
    if isinstance(owner, Project):
        return select(Milestone).where(usable_in(owner)) if with_ancestors else milestones_of(owner)
    if not with_ancestors and not below:
        return milestones_of(owner)
    parts = [select(Milestone.id).where(Milestone.group_id == owner.id)]
    if with_ancestors:
        parts.append(select(Milestone.id).where(Milestone.group_id.in_(groups_above(owner.id))))
    if below:
        groups = select(Group.id).where(Group.id.in_(descendants_of(owner)), visible_groups(caller))
        has_feature = or_(*(projects_with(caller, name) for name in ("issues", "merge_requests")))
        present = Project.deleting_since.is_(None), Project.loading.is_(False)
        projects = projects_below(owner).where(visible_projects(caller), has_feature, *present)
        parts.append(select(Milestone.id).where(Milestone.group_id.in_(groups)))
        parts.append(select(Milestone.id).where(Milestone.project_id.in_(projects)))
    return select(Milestone).where(Milestone.id.in_(union_all(*parts)))


def _conditions(filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if filters.get("state") in ("active", "closed"):
        yield Milestone.state == filters["state"]
    if filters.get("title"):
        yield Milestone.title == filters["title"]
    if search := (filters.get("search") or "").strip():
        yield searching.contains(search, Milestone.title, Milestone.description)
    if search := (filters.get("search_title") or "").strip():
        yield searching.contains(search, Milestone.title)
    if filters.get("updated_after"):
        yield Milestone.updated_at >= filters["updated_after"]
    if filters.get("updated_before"):
        yield Milestone.updated_at <= filters["updated_before"]
    if filters.get("containing_date"):
        yield from _around(filters["containing_date"])


def _around(day: dt.date) -> Iterable[ColumnElement[bool]]:
    """The conditions for milestones with a date whose time includes a day."""
    yield or_(Milestone.start_date.is_not(None), Milestone.due_date.is_not(None))
    yield or_(Milestone.start_date.is_(None), Milestone.start_date <= day)
    yield or_(Milestone.due_date.is_(None), Milestone.due_date >= day)
