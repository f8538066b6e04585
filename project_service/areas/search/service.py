"""Searches with their limits (search reference, sections 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import (
    MAX_CHARACTERS,
    MAX_WORDS,
    NOTHING,
    REPOSITORY_SCOPES,
    SCOPES,
    Matches,
    Search,
    SearchScope,
)
from project_service.domain import instance_settings
from project_service.domain.rate_limits import RateLimit
from project_service.kit.db import text_search
from project_service.kit.http.errors import BadRequest

TOO_LONG = "400 Bad request - Search query is too long"
OVERVIEW_ROWS = 3  # of each scope

FoundScope = tuple[SearchScope | None, Matches]


def checked(search: Search) -> Search:
    """Count a search of its caller, and refuse it if it is too long or one too many.

    Raises:
        BadRequest: it has more than ``MAX_CHARACTERS`` characters or ``MAX_WORDS`` words.
        TooManyRequests: the caller has searched more often in this minute than the instance allows.

    """
    if len(search.text) > MAX_CHARACTERS or len(text_search.words_of(search.text, MAX_WORDS + 1)) > MAX_WORDS:
        raise BadRequest(TOO_LONG)
    RateLimit("search", instance_settings.setting("search_rate_limit")).check(search.caller.user_id or 0)
    return search


def scopes_of(level: str) -> list[SearchScope]:
    """The scopes of a level, in the order of the page."""
    return sorted(
        (scope for scope in (*SCOPES, *REPOSITORY_SCOPES) if level in scope.levels), key=lambda scope: scope.order
    )


def find(search: Search, name: str) -> FoundScope:
    """The scope with a name, and what it finds; nothing for blank texts and for scopes that do not exist here."""
    return _find(search, name, SCOPES)


def find_in_project(search: Search, name: str) -> FoundScope:
    """The same, also in the repository of the project."""
    return _find(search, name, [*SCOPES, *REPOSITORY_SCOPES])


def _find(search: Search, name: str, scopes: Sequence[SearchScope]) -> FoundScope:
    scope = next((scope for scope in scopes if scope.name == name and search.level in scope.levels), None)
    if scope is None or not search.words:
        return scope, NOTHING
    return scope, scope.find(search)


@dataclass(frozen=True, slots=True)
class OverviewPart:
    """The first matches of a scope, and whether there are more or older ones were left out."""

    scope: SearchScope
    hits: list[search_scopes.Hit]
    has_more: bool
    is_cut: bool


def overview(search: Search) -> Iterator[OverviewPart]:
    """Generate the first matches of each scope that has any."""
    for scope in SCOPES:
        if search.level not in scope.levels or not search.words:
            continue
        matches = scope.find(search)
        rows = matches.listing.rows(0, OVERVIEW_ROWS + 1)
        if rows or matches.is_cut:
            shown_rows = rows[:OVERVIEW_ROWS]
            if scope.prepare is not None:
                scope.prepare(search, shown_rows)
            yield OverviewPart(
                scope, [scope.show(row) for row in shown_rows], len(rows) > OVERVIEW_ROWS, matches.is_cut
            )
