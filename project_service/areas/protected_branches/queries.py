"""Queries of protected branches."""

from __future__ import annotations

from sqlalchemy import Select, select

from project_service.domain.projects import Project
from project_service.domain.repositories.protection import ProtectedBranch
from project_service.kit.db import searching
from project_service.kit.db.session import db
from project_service.kit.http.errors import RecordNotFound


def protected_branches_by_name(project: Project, search: str | None = None) -> Select[ProtectedBranch]:
    """The protected branches and wildcards of a project, by name; ``search`` is a part of the name."""
    statement = select(ProtectedBranch).where(ProtectedBranch.project_id == project.id).order_by(ProtectedBranch.name)
    if search := (search or "").strip():
        statement = statement.where(searching.contains(search, ProtectedBranch.name))
    return statement


def protected_branch_named(project: Project, name: str) -> ProtectedBranch | None:
    """The protected branch of a project with exactly this name, if there is one: ``main`` does not find ``m*``."""
    return db.session.scalar(protected_branches_by_name(project).where(ProtectedBranch.name == name))


def find_protected_branch(project: Project, name: str) -> ProtectedBranch:
    """One protected branch by its stored name."""
    branch = protected_branch_named(project, name)
    if branch is None:
        raise RecordNotFound
    return branch


def find_protected_branch_by_id(project: Project, branch_id: int) -> ProtectedBranch:
    """One protected branch of a project by its number, as the pages address it."""
    branch = db.session.scalar(protected_branches_by_name(project).where(ProtectedBranch.id == branch_id))
    if branch is None:
        raise RecordNotFound
    return branch
