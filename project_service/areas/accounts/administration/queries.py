"""Queries of users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_

from project_service.access.identity import Caller
from project_service.domain.accounts import resource_bots
from project_service.domain.accounts.resource_bots import ResourceBot
from project_service.domain.accounts.users import ACTIVE, BLOCKED, User, users
from project_service.domain.memberships import Membership, owners_of
from project_service.domain.namespaces import Group, groups
from project_service.domain.projects import Project
from project_service.kit.db import searching

ADMIN_FILTERS = ("created_after", "created_before", "order_by", "sort", "two_factor", "without_projects")


def mark_bots(*found: User) -> None:
    """Note which of some users are bots of projects and groups, for a response."""
    bot_ids = resource_bots.bots_among(user.id for user in found)
    for user in found:
        user.is_bot = user.id in bot_ids


def users_matching(caller: Caller, **filters: Any) -> Select[User]:
    """The users that match a filter; some filters apply to administrators only."""
    if not caller.admin:
        filters = {name: value for name, value in filters.items() if name not in ADMIN_FILTERS}
    statement = users().where(*_conditions(filters), *_bot_conditions(filters))
    column = getattr(User, filters.get("order_by") or "id")
    order = (column.asc(), User.id.asc()) if filters.get("sort") == "asc" else (column.desc(), User.id.desc())
    return statement.order_by(*order)


def _conditions(filters: dict[str, Any]) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.get("username"):
        conditions.append(func.lower(User.username) == filters["username"].lower())
    if search := (filters.get("search") or "").strip():
        conditions.append(
            or_(searching.contains(search, User.name, User.username), func.lower(User.email) == search.lower())
        )
    if filters.get("active"):
        conditions.append(User.state == ACTIVE)
    if filters.get("blocked"):
        conditions.append(User.state == BLOCKED)
    if filters.get("external"):
        conditions.append(User.external.is_(True))
    if filters.get("extern_uid"):
        conditions.append(and_(User.extern_uid == filters["extern_uid"], User.provider == filters["provider"]))
    if filters.get("created_after"):
        conditions.append(User.created_at > filters["created_after"])
    if filters.get("created_before"):
        conditions.append(User.created_at < filters["created_before"])
    if filters.get("two_factor"):
        conditions.append(User.two_factor_enabled.is_(filters["two_factor"] == "enabled"))
    if filters.get("without_projects"):
        conditions.append(
            ~exists().where(Project.creator_id == User.id)
            & ~exists().where(Membership.user_id == User.id, Membership.project_id.is_not(None))
        )
    return conditions


def _bot_conditions(filters: dict[str, Any]) -> Iterator[ColumnElement[bool]]:
    is_bot = exists().where(ResourceBot.user_id == User.id)
    if filters.get("humans") or filters.get("without_project_bots"):
        yield ~is_bot
    if filters.get("exclude_humans"):
        yield is_bot


def groups_owned_alone(user: User) -> Select[Group]:
    """The groups whose only owner is this user."""
    owned = owners_of(Group.id).where(Membership.user_id == user.id)
    others = owners_of(Group.id).where(Membership.user_id != user.id)
    return groups().where(owned.exists(), ~others.exists()).order_by(Group.id)
