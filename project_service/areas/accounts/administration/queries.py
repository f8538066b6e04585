"""Queries of users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_

from project_service.access.identity import Caller
from project_service.domain.memberships import Membership, owners_of
from project_service.domain.namespaces import Group, groups
from project_service.domain.projects import Project
from project_service.domain.resource_bots import ResourceBot
from project_service.domain.users import ACTIVE, BLOCKED, User, users
from project_service.kit.db import searching

ADMIN_FILTERS = ("created_after", "created_before", "order_by", "sort", "two_factor", "without_projects")


def users_matching(caller: Caller, **wanted: Any) -> Select[User]:
    """The users that match a filter; some filters apply to administrators only."""
    if not caller.admin:
        wanted = {name: value for name, value in wanted.items() if name not in ADMIN_FILTERS}
    statement = users().where(*_conditions(wanted), *_bot_conditions(wanted))
    column = getattr(User, wanted.get("order_by") or "id")
    order = (column.asc(), User.id.asc()) if wanted.get("sort") == "asc" else (column.desc(), User.id.desc())
    return statement.order_by(*order)


def _conditions(wanted: dict[str, Any]) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.get("username"):
        found.append(func.lower(User.username) == wanted["username"].lower())
    if search := (wanted.get("search") or "").strip():
        found.append(
            or_(searching.contains(search, User.name, User.username), func.lower(User.email) == search.lower())
        )
    if wanted.get("active"):
        found.append(User.state == ACTIVE)
    if wanted.get("blocked"):
        found.append(User.state == BLOCKED)
    if wanted.get("external"):
        found.append(User.external.is_(True))
    if wanted.get("extern_uid"):
        found.append(and_(User.extern_uid == wanted["extern_uid"], User.provider == wanted["provider"]))
    if wanted.get("created_after"):
        found.append(User.created_at > wanted["created_after"])
    if wanted.get("created_before"):
        found.append(User.created_at < wanted["created_before"])
    if wanted.get("two_factor"):
        found.append(User.two_factor_enabled.is_(wanted["two_factor"] == "enabled"))
    if wanted.get("without_projects"):
        found.append(
            ~exists().where(Project.creator_id == User.id)
            & ~exists().where(Membership.user_id == User.id, Membership.project_id.is_not(None))
        )
    return found


def _bot_conditions(wanted: dict[str, Any]) -> Iterator[ColumnElement[bool]]:
    is_bot = exists().where(ResourceBot.user_id == User.id)
    if wanted.get("humans") or wanted.get("without_project_bots"):
        yield ~is_bot
    if wanted.get("exclude_humans"):
        yield is_bot


def groups_owned_alone(user: User) -> Select[Group]:
    """The groups whose only owner is this user."""
    owned = owners_of(Group.id).where(Membership.user_id == user.id)
    others = owners_of(Group.id).where(Membership.user_id != user.id)
    return groups().where(owned.exists(), ~others.exists()).order_by(Group.id)
