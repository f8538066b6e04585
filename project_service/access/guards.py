"""Steps of a request that the API and the pages share: permission checks on the subject of the URL, marks on views."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

from flask import g

from project_service.access.abilities import IN_PROJECT, Ability, judge
from project_service.access.identity import caller
from project_service.access.roles import find_project, find_project_access
from project_service.access.visible_notes import find_visible_note
from project_service.domain.namespaces import find_group, find_namespace
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue, find_issue
from project_service.domain.tracker.notes import Note
from project_service.kit.http.errors import NotFound, UnknownRoute
from project_service.kit.http.fields import whole_number

View = Callable[..., Any]

# abilities of the instance, which have no subject
ABILITIES_WITHOUT_SUBJECT = frozenset(
    {Ability.ANYBODY, Ability.SIGNED_IN, Ability.ADMINISTER, Ability.CREATE_GROUP, Ability.IMPORT_PROJECTS}
)
FINDERS: dict[str, Callable[[str], Any]] = {
    "project": find_project,
    "group": find_group,
    "namespace": find_namespace,
}
INSTANCE = "instance"


class Unguarded(Exception):
    """A view names no ability: a programming error that is found at start."""


def mark(view: View, **marks: Any) -> View:
    """Set attributes on a view, which later decorators, error handlers and the tests of the route table read."""
    vars(view).update(marks)
    return view


def allow(
    ability: Ability | None = None,
    *,
    access_only: bool = False,
    project: Ability | None = None,
    group: Ability | None = None,
    instance: Ability | None = None,
) -> Callable[[View], View]:
    """Load the subject of the URL and check the ability: 404 if it is hidden, 403 if it is forbidden.

    The view gets the subject as its first argument, unless the ability is one of the instance. An issue or a note is
    looked up in the project, and hidden if the caller may not see it, before the ability itself is checked. With
    ``access_only`` the subject is a ``ProjectAccess`` in place of the ``Project``: for views that need no more of it.

    A view with a route for each kind of subject takes an ability for each: ``allow(project=…, group=…)``. Its first
    argument is ``None`` for the route of the ``instance``.
    """
    finders = FINDERS | {"project": find_project_access} if access_only else FINDERS
    by_kind = {"project": project, "group": group, INSTANCE: instance}
    abilities = {kind: needed for kind, needed in by_kind.items() if needed is not None}

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def checked(*args: Any, **url: Any) -> Any:
            kind = next((name for name in finders if name in url), INSTANCE)
            needed = ability or abilities[kind]
            if needed in ABILITIES_WITHOUT_SUBJECT:
                judge(caller(), needed)
                return view(*args, **url) if needed is ability else view(None, *args, **url)
            subject = _find(finders[kind], url.pop(kind))
            g.subject = subject
            if needed in IN_PROJECT:
                judge(caller(), IN_PROJECT[needed], subject)
                subject = _find_in(subject, url)
            judge(caller(), needed, subject)
            return view(subject, *args, **url)

        return mark(checked, ability=ability, abilities=abilities, access_only=access_only)

    return decorate


def ability_of(view: View, rule: str) -> Ability:
    """Return the ability that a view takes at a URL rule; raise ``Unguarded`` for a view without ``allow``."""
    by_kind: dict[str, Ability] = getattr(view, "abilities", {})
    ability: Ability | None = getattr(view, "ability", None)
    kind = next((name for name in FINDERS if re.search(rf"[<:]{name}>", rule)), INSTANCE)
    if ability is None and kind not in by_kind:
        raise Unguarded(f"{view.__module__}.{view.__name__} names no ability for {rule}")
    return ability or by_kind[kind]


def _find_in(project: Project, url: dict[str, Any]) -> Issue | Note:
    """Load the issue of the URL, or its note if the URL names one, as far as the caller sees them."""
    issue = find_issue(project, numeric(url.pop("iid")))
    judge(caller(), Ability.READ_ISSUE, issue)
    if "note" not in url:
        return issue
    return find_visible_note(caller(), issue, numeric(url.pop("note")))


def _find(find: Callable[[str], Any], text: str) -> Any:
    """Load a subject; the suffix ``.json`` is ignored unless it belongs to the name (common reference, section 1)."""
    try:
        return find(text)
    except NotFound:
        if not text.endswith(".json"):
            raise
        return find(text.removesuffix(".json"))


def mark_for_server(view: View, options: dict[str, Any]) -> None:
    """Move the options of a route that are for the web server to its view (``kit/http/clients/admission.py``).

    ``reads_repository``: the view reads a repository, so it may wait for git. ``is_long``: its response may be large.
    ``sends_requests``: it waits for another server.
    """
    mark(
        view,
        **{name: options.pop(name) for name in ("reads_repository", "sends_requests", "is_long") if name in options},
    )


def in_bytes(limit: Callable[[], int | None] | None) -> int:
    """Return the current limit of a view for bodies; without one it is unlimited (to Flask it would be the default)."""
    max_bytes = None if limit is None else limit()
    return sys.maxsize if max_bytes is None else max_bytes


def numeric(text: str | int) -> int:
    """Parse an id of a path; anything but digits is an unknown route (common reference, section 8)."""
    number = whole_number(str(text))
    if number is None:
        raise UnknownRoute
    return number
