"""Which protected tags there are."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, bindparam, select

from project_service.areas.protected_tags.models import ProtectedTag
from project_service.areas.protected_tags.wildcards import matches
from project_service.domain.projects import Project
from project_service.kit.db.reading import Given, made_once
from project_service.kit.db.session import db
from project_service.kit.http.errors import RecordNotFound


def protected_tags_of(project: Project) -> Given:
    """The protected tags of a project, oldest first."""
    return _listed(project=project.id)


def find_protected_tag(project: Project, name: str) -> ProtectedTag:
    """One protected tag by its stored name, compared literally: ``v1.0`` does not find ``v*``."""
    tag = db.session.scalar(_of(project.id).where(ProtectedTag.name == name))
    if tag is None:
        raise RecordNotFound
    return tag


def is_protected(project: Project, name: str) -> bool:
    """Whether a tag, or all that match a wildcard, are protected under this very name."""
    return db.session.scalar(_of(project.id).where(ProtectedTag.name == name)) is not None


def levels_for(project: Project, name: str) -> list[int]:
    """The levels that may create the tag ``name``; none at all when nothing protects it."""
    return [
        level
        for tag in db.session.scalars(_of(project.id))
        if matches(tag.name, name)
        for level in tag.create_access_levels
    ]


def find_protected_tag_by_id(project: Project, tag_id: int) -> ProtectedTag:
    """One protected tag of a project by its number, as the pages address it."""
    tag = db.session.scalar(_of(project.id).where(ProtectedTag.id == tag_id))
    if tag is None:
        raise RecordNotFound
    return tag


@made_once
def _listed() -> Select[ProtectedTag]:
    return _of(bindparam("project"))


def _of(project_id: Any) -> Select[ProtectedTag]:
    return select(ProtectedTag).where(ProtectedTag.project_id == project_id).order_by(ProtectedTag.id)
