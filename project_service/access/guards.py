"""The steps of a request that API and pages share: judging by the subject of the URL, and the marks on a view."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from flask import request

from project_service.access.abilities import Ability, judge, read_project
from project_service.access.identity import READ_METHODS, caller
from project_service.domain.namespaces import find_group, find_namespace
from project_service.domain.projects import find_project
from project_service.kit.http.errors import NotFound, UnknownRoute
from project_service.kit.http.fields import whole_number

View = TypeVar("View", bound=Callable[..., Any])

ABOUT_NOTHING = frozenset(
    {Ability.ANYBODY, Ability.SIGNED_IN, Ability.ADMINISTER, Ability.CREATE_GROUP, Ability.IMPORT_PROJECTS}
)
SUBJECTS: dict[str, Callable[[str], Any]] = {
    "project": find_project,
    "group": find_group,
    "namespace": find_namespace,
}
READ: dict[str, Callable[[str], Any]] = SUBJECTS | {"project": read_project}


class Unguarded(Exception):
    """A view that names no ability: a mistake of its author, found when the program starts."""


def allow(ability: Ability) -> Callable[[View], View]:
    """Find what the URL is about, judge, hide. The view gets the subject first; abilities of the instance have none."""

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def judged(*args: Any, **url: Any) -> Any:
            if ability in ABOUT_NOTHING:
                judge(caller(), ability)
                return view(*args, **url)
            name = next(name for name in SUBJECTS if name in url)
            subject = _find(name, url.pop(name))
            judge(caller(), ability, subject)
            return view(subject, *args, **url)

        judged.ability = ability  # type: ignore[attr-defined]  # a mark for the guard of the route table
        return judged  # type: ignore[return-value]  # the same view, one step longer

    return decorate


def _find(name: str, text: str) -> Any:
    """What is meant; the suffix ``.json`` is tolerated where nothing is called so (common behaviour, section 1)."""
    find = (READ if request.method in READ_METHODS else SUBJECTS)[name]
    try:
        return find(text)
    except NotFound:
        if not text.endswith(".json"):
            raise
        return find(text.removesuffix(".json"))


def check_guarded(view: Callable[..., Any]) -> None:
    """Raise ``Unguarded`` for a view without ``allow``."""
    if not hasattr(view, "ability"):
        raise Unguarded(f"{view.__module__}.{view.__name__} names no ability")


def admit(largest: int | None) -> None:
    """Let the body of this request have so many bytes, or any number; ``None`` would mean the usual limit to Flask."""
    request.max_content_length = sys.maxsize if largest is None else largest


def numeric(text: str) -> int:
    """An id of a path; anything but digits is an unknown route (common behaviour, section 8)."""
    number = whole_number(text)
    if number is None:
        raise UnknownRoute
    return number
