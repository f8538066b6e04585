"""Queries of protected tags."""

from __future__ import annotations

from sqlalchemy import Select, select

from project_service.domain.projects import Project
from project_service.domain.repositories.protected_tags import ProtectedTag
from project_service.kit.db.session import db
from project_service.kit.http.errors import RecordNotFound


def protected_tags_of(project: Project) -> Select[ProtectedTag]:
    """The protected tags of a project, oldest first."""
    return select(ProtectedTag).where(ProtectedTag.project_id == project.id).order_by(ProtectedTag.id)


def find_protected_tag(project: Project, name: str) -> ProtectedTag:
    """One protected tag by its stored name, compared literally: ``v1.0`` does not find ``v*``."""
    tag = db.session.scalar(protected_tags_of(project).where(ProtectedTag.name == name))
    if tag is None:
        raise RecordNotFound
    return tag


def is_protected(project: Project, name: str) -> bool:
    """Whether a tag, or all that match a wildcard, are protected under exactly this name."""
    return db.session.scalar(protected_tags_of(project).where(ProtectedTag.name == name)) is not None


def find_protected_tag_by_id(project: Project, tag_id: int) -> ProtectedTag:
    """One protected tag of a project by its number, as the pages address it."""
    tag = db.session.scalar(protected_tags_of(project).where(ProtectedTag.id == tag_id))
    if tag is None:
        raise RecordNotFound
    return tag
