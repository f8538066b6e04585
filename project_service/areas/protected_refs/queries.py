"""Queries of protected tags and branches."""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy import Select, bindparam, select

from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import ProtectedBranch, ProtectedTag
from project_service.kit.db import searching
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db, one
from project_service.kit.http.errors import RecordNotFound
from project_service.kit.http.pagination import ColumnList, SelectedColumns

Ref = TypeVar("Ref", bound=ProtectedBranch | ProtectedTag)


_tags = table_of(ProtectedTag).c
_listed_tags = ColumnList(
    select(_tags.name, _tags.create_access_levels).where(_tags.project_id == bindparam("project_id")).order_by(_tags.id)
)


def listed_protected_tags(project: ProjectAccess) -> SelectedColumns:
    """The names and levels of the protected tags of a project, oldest first."""
    return _listed_tags.of(project_id=project.id)


def protected_tags_of(project: Project) -> Select[ProtectedTag]:
    """The protected tags of a project, oldest first."""
    return select(ProtectedTag).where(ProtectedTag.project_id == project.id).order_by(ProtectedTag.id)


def protected_branches_by_name(project: Project, search: str | None = None) -> Select[ProtectedBranch]:
    """The protected branches and wildcards of a project, by name; ``search`` is a part of the name."""
    statement = select(ProtectedBranch).where(ProtectedBranch.project_id == project.id).order_by(ProtectedBranch.name)
    if search := (search or "").strip():
        statement = statement.where(searching.contains(search, ProtectedBranch.name))
    return statement


def protected_ref_named(model: type[Ref], project: Project, name: str) -> Ref | None:
    """The protected tag or branch with exactly this stored name, if there is one: ``v1.0`` does not find ``v*``."""
    return db.session.scalar(select(model).where(model.project_id == project.id, model.name == name))


def find_protected_ref(model: type[Ref], project: Project, name: str) -> Ref:
    """The protected tag or branch with exactly this stored name."""
    ref = protected_ref_named(model, project, name)
    if ref is None:
        raise RecordNotFound
    return ref


def find_protected_ref_by_id(model: type[Ref], project: Project, ref_id: int) -> Ref:
    """A protected tag or branch of a project by its number, as the pages address it."""
    return one(select(model).where(model.project_id == project.id, model.id == ref_id), RecordNotFound())
