"""Groups as a scope of the search."""

from __future__ import annotations

from typing import Any

from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import GROUP, INSTANCE, Hit, Matches, Search, SearchScope
from project_service.access.rules import visible_groups
from project_service.domain.namespaces import TEXTS, Group, descendants_of, groups


def find(search: Search) -> Matches:
    """The groups, in a group those below it, whose name, path or description has the words."""
    statement = groups().where(visible_groups(search.caller))
    if search.group is not None:
        statement = statement.where(Group.id.in_(descendants_of(search.group)), Group.id != search.group.id)
    return search_scopes.matching(search, TEXTS, statement, Group.id, Group.id)


def show(group: Any) -> Hit:
    """A group on the page."""
    return Hit(group.full_name, f"/{group.full_path}", about=group.description or "")


search_scopes.add(SearchScope("groups", "Groups", 20, (INSTANCE, GROUP), find, show))
