"""People as a scope of the search; in a group or project its members."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select

from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import EVERYWHERE, Hit, Matches, Search, SearchScope
from project_service.domain.accounts.users import ACTIVE, TEXTS, User, users
from project_service.domain.memberships import Membership, alive
from project_service.domain.namespaces import NamespaceAncestor
from project_service.domain.projects import projects_below
from project_service.domain.schemas import UserBasicSchema


def find(search: Search) -> Matches:
    """The active users whose name or username has the words, or whose e-mail address is the text."""
    statement = users().where(User.state == ACTIVE)
    if (members := _members(search)) is not None:
        statement = statement.where(members)
    has_address = func.lower(User.email) == search.text.strip().lower()
    by_address = User.id.in_(select(User.id).where(has_address, User.deleting_since.is_(None)))
    return search_scopes.matching(search, TEXTS, statement, User.id, User.id, by_address)


def _members(search: Search) -> ColumnElement[bool] | None:
    """The condition for the members of a project, or of a group and what is below it; direct and inherited."""
    if search.project is not None:
        inside = or_(Membership.project_id == search.project.id, _above(search.project.namespace_id))
    elif search.group is not None:
        below: Select[int] = select(NamespaceAncestor.namespace_id).where(
            NamespaceAncestor.ancestor_id == search.group.id
        )
        inside = or_(
            _above(search.group.id),
            Membership.namespace_id.in_(below),
            Membership.project_id.in_(projects_below(search.group)),
        )
    else:
        return None
    return User.id.in_(select(Membership.user_id).where(inside, alive()))


def _above(namespace_id: int) -> ColumnElement[bool]:
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == namespace_id)
    return Membership.namespace_id.in_(above)


def show(user: Any) -> Hit:
    """A user on the page."""
    return Hit(user.name, f"/{user.username}", about=f"@{user.username}")


search_scopes.add(SearchScope("users", "People", 30, EVERYWHERE, find, show, UserBasicSchema))
