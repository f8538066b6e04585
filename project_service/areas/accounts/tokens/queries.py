"""Queries of access tokens."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import with_expression

from project_service.access.identity import Caller
from project_service.domain.accounts import resource_bots
from project_service.domain.accounts.resource_bots import ResourceBot
from project_service.domain.accounts.tokens import PersonalAccessToken, digest_of
from project_service.domain.accounts.users import User, users
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db import searching
from project_service.kit.db.session import db, one
from project_service.kit.http.errors import NotFound, RecordNotFound


def tokens_matching(caller: Caller, **filters: Any) -> Select[PersonalAccessToken]:
    """The tokens that the caller may list: all for administrators, otherwise their own."""
    statement = select(PersonalAccessToken).join(User).where(User.deleting_since.is_(None))
    if "user_id" in filters:
        owner = filters["user_id"]
        if caller.admin and db.session.scalar(users().where(User.id == owner)) is None:
            raise NotFound
        statement = statement.where(PersonalAccessToken.user_id == owner)
    elif not caller.admin:
        statement = statement.where(PersonalAccessToken.user_id == caller.user_id)
    return statement.where(*_token_conditions(filters)).order_by(*_token_order(filters.get("sort")))


def tokens_of(user_id: int) -> Select[PersonalAccessToken]:
    """The tokens of one user, newest first."""
    return (
        select(PersonalAccessToken)
        .where(PersonalAccessToken.user_id == user_id)
        .order_by(PersonalAccessToken.id.desc())
    )


def tokens_of_resource(subject: Project | Group, **filters: Any) -> Select[PersonalAccessToken]:
    """The access tokens of a project or group, with the role of the bot of each."""
    here = Membership.project_id if isinstance(subject, Project) else Membership.namespace_id
    level = select(Membership.access_level).where(Membership.user_id == PersonalAccessToken.user_id, here == subject.id)
    statement = select(PersonalAccessToken).join(ResourceBot, ResourceBot.user_id == PersonalAccessToken.user_id)
    statement = statement.join(User, User.id == ResourceBot.user_id)
    statement = statement.where(resource_bots.column_of(subject), User.deleting_since.is_(None))
    statement = statement.options(with_expression(PersonalAccessToken.access_level, level.scalar_subquery()))
    statement = statement.execution_options(populate_existing=True)
    return statement.where(*_token_conditions(filters)).order_by(*_token_order(filters.get("sort")))


def find_resource_token(subject: Project | Group, token_id: int) -> PersonalAccessToken:
    """One access token of a project or group."""
    kind = "project" if isinstance(subject, Project) else "group"
    missing = NotFound(f"Could not find {kind} access token with token_id: {token_id}")
    return one(tokens_of_resource(subject).where(PersonalAccessToken.id == token_id), missing)


def own_resource_token(subject: Project | Group, token_id: int | None) -> PersonalAccessToken | None:
    """The token of a request, if it is one of a project or group."""
    return db.session.scalar(tokens_of_resource(subject).where(PersonalAccessToken.id == token_id))


def token_by_secret(secret: str) -> PersonalAccessToken | None:
    """The token with this text."""
    return db.session.scalar(select(PersonalAccessToken).where(PersonalAccessToken.digest == digest_of(secret)))


def find_token(token_id: int) -> PersonalAccessToken:
    """One token by id."""
    token = db.session.get(PersonalAccessToken, token_id)
    if token is None:
        raise RecordNotFound
    return token


def _token_conditions(filters: dict[str, Any]) -> list[ColumnElement[bool]]:
    token = PersonalAccessToken
    live = and_(token.revoked.is_(False), or_(token.expires_at.is_(None), token.expires_at > clock.today()))
    conditions: list[ColumnElement[bool]] = []
    if filters.get("revoked") is not None:
        conditions.append(token.revoked.is_(filters["revoked"]))
    if filters.get("state"):
        conditions.append(live if filters["state"] == "active" else ~live)
    for name, column in (
        ("created", token.created_at),
        ("last_used", token.last_used_at),
        ("expires", token.expires_at),
    ):
        if (after := filters.get(f"{name}_after")) is not None:
            conditions.append(_after(column, after))
        if (before := filters.get(f"{name}_before")) is not None:
            conditions.append(column < before)
    if search := (filters.get("search") or "").strip():
        conditions.append(searching.contains(search, token.name))
    return conditions


def _after(column: Any, moment: dt.datetime | dt.date) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = column > moment
    return condition


def _token_order(sort: str | None) -> tuple[Any, ...]:
    if not sort:
        return (PersonalAccessToken.id.asc(),)
    name, _, direction = sort.rpartition("_")
    columns = {"created": "created_at", "expires": "expires_at", "last_used": "last_used_at", "name": "name"}
    column = getattr(PersonalAccessToken, columns[name])
    by_id = PersonalAccessToken.id
    return (column.asc(), by_id.asc()) if direction == "asc" else (column.desc(), by_id.desc())
