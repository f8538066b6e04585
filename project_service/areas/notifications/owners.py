"""Owners of channels and rules: projects, groups and users."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project

Owner = Project | Namespace | User


def column_of(owner: Owner) -> str:
    """Return the name of the column that refers to an owner."""
    return "project_id" if isinstance(owner, Project) else "user_id" if isinstance(owner, User) else "group_id"


def owned_by(model: Any, owner: Owner) -> ColumnElement[bool]:
    """Return the condition for rows of an owner."""
    condition: ColumnElement[bool] = getattr(model, column_of(owner)) == owner.id
    return condition


def kind_of(owner: Owner) -> str:
    """Return ``project``, ``group`` or ``user``."""
    return column_of(owner).removesuffix("_id")


def may_change(owner: Owner) -> bool:
    """Whether the caller may change channels and rules of an owner."""
    if isinstance(owner, User):
        return True
    ability = Ability.ADMIN_NOTIFICATIONS if isinstance(owner, Project) else Ability.ADMIN_GROUP_NOTIFICATIONS
    return allowed(caller(), ability, owner)
