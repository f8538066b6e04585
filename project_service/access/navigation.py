"""Template globals: the signed-in user, breadcrumbs and the navigation of a project.

Each area adds its own entries to the navigation of projects.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import Flask, request
from sqlalchemy import select

from project_service.access import panels, sections
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.domain.access_levels import Visibility
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db

# units of relative times in seconds, largest first
TIME_UNITS = ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A page in the navigation of projects; ``address`` is appended to the project's path.

    It is current on every page whose path begins with its own, or with ``within``.
    """

    title: str
    address: str
    order: int
    ability: Ability
    within: str = ""


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """An entry in the navigation of one project."""

    title: str
    address: str
    current: bool


ENTRIES: list[NavigationEntry] = []


def add(entry: NavigationEntry) -> None:
    """Add a page to the navigation of every project, once."""
    if entry not in ENTRIES:
        ENTRIES.append(entry)
        ENTRIES.sort(key=lambda one: one.order)


def init_app(app: Flask) -> None:
    """Register the globals and filters of the templates."""
    app.context_processor(_signed_in)
    # globals, not a context processor: macros need them too
    app.jinja_env.globals.update(
        crumbs=crumbs,
        project_navigation=project_navigation,
        settings_pages=sections.pages_of,
        panels_of=panels.panels_of,
        may=lambda ability, subject: allowed(caller(), Ability[ability], subject),
        with_query=with_query,
    )
    app.add_template_filter(lambda moment: moment.strftime("%-d %b %Y"), "day")
    app.add_template_filter(lambda moment: moment.strftime("%-d %b %Y %H:%M:%S UTC"), "moment")
    app.add_template_filter(ago, "ago")
    app.add_template_filter(ahead, "ahead")
    app.add_template_filter(lambda thing: Visibility(thing.visibility).text, "visibility")


def _signed_in() -> dict[str, Any]:
    asking = caller()
    return {"signed_in": {"id": asking.user_id, "username": asking.username} if asking.user_id else None}


def crumbs(place: Project | Namespace) -> list[Project | Namespace]:
    """Return the groups above a project or namespace, outermost first, and the thing itself."""
    inner = place.namespace if isinstance(place, Project) else place
    above = select(Namespace).join(NamespaceAncestor, NamespaceAncestor.ancestor_id == Namespace.id)
    above = above.where(NamespaceAncestor.namespace_id == inner.id).order_by(Namespace.full_path)
    found = db.session.scalars(above).all()
    return [*found, place] if isinstance(place, Project) else [*found]


def project_navigation(project: Project) -> list[NavigationLink]:
    """Return the pages of a project that the caller may see."""
    home = f"/{project.full_path}"
    links = [
        NavigationLink(
            entry.title, home + entry.address, _is_here(home + (entry.within or entry.address), exact=not entry.address)
        )
        for entry in ENTRIES
        if allowed(caller(), entry.ability, project)
    ]
    if pages := sections.pages_of(project):
        address = f"{home}/-/settings/{next(iter(pages))}"
        links.append(NavigationLink("Settings", address, _is_here(f"{home}/-/settings", exact=False)))
    return links


def with_query(**changes: Any) -> str:
    """Return the query of the current page with some parameters changed; ``None`` removes one."""
    query = {**request.args.to_dict(), **changes}
    return "?" + urlencode({name: value for name, value in query.items() if value is not None})


def ago(moment: dt.datetime) -> str:
    """Say how long ago a moment was; moments that tools report may be in the future."""
    passed = clock.now() - moment
    length = _length(abs(passed))
    if not length:
        return "just now"
    return f"{length} ago" if passed > dt.timedelta() else f"in {length}"


def ahead(moment: dt.datetime) -> str:
    """Say how far in the future a moment is."""
    return f"in {_length(moment - clock.now()) or 'less than a minute'}"


def _length(time: dt.timedelta) -> str:
    """Format a duration in its largest unit; empty below a minute."""
    for length, unit in TIME_UNITS:
        number = int(time.total_seconds() // length)
        if number >= 1:
            return f"{number} {unit}{'s' if number > 1 else ''}"
    return ""


def _is_here(address: str, *, exact: bool) -> bool:
    path = request.path
    return path == address if exact else path.startswith(address)
