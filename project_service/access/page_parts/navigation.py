"""Template globals: the signed-in user, breadcrumbs and the menus of pages.

Each area adds its own entries to the menus: ``main`` in the header, ``project``, ``code`` (its repository), ``group``,
``group_settings``, ``account`` (the signed-in user) and ``administration``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from flask import Flask, request
from sqlalchemy import select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.page_parts import panels, reader_times, sections
from project_service.domain import page_paths
from project_service.domain.access_levels import Visibility
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.domain.tracker.schemas import milestone_path
from project_service.kit.db.session import db


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A page in a menu; ``address`` is appended to the address of the project or group, if the menu belongs to one.

    It is current on every page whose path begins with its own, or with one of ``within``; an empty address is the page
    of the project or group itself.
    """

    title: str
    address: str
    order: int
    ability: Ability
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """An entry in a menu as its template sees it."""

    title: str
    address: str
    current: bool


@dataclass(frozen=True, slots=True)
class DividedMenu:
    """A menu in a line: the links that are always shown, those in a menu of its own, and what stands behind it."""

    first: list[NavigationLink]
    more: list[NavigationLink]
    last: list[NavigationLink]

    @property
    def current(self) -> NavigationLink | None:
        """The current link, if it is one of those in the menu."""
        return next((link for link in self.more if link.current), None)


MAX_TABS = 8  # in one line, at any width from 1,024 pixels on
SETTINGS_TITLE = "Settings"  # of the link that is always shown, as the last one
MENUS: dict[str, list[NavigationEntry]] = {
    "main": [],
    "project": [],
    "code": [],
    "group": [],
    "group_settings": [],
    "account": [],
    "administration": [],
}


def add(entry: NavigationEntry, menu: str = "project") -> None:
    """Add a page to a menu, once."""
    entries = MENUS[menu]
    if entry not in entries:
        entries.append(entry)
        entries.sort(key=lambda entry: entry.order)


def has_entry(address: str, menu: str = "project") -> bool:
    """Whether a menu leads to an address."""
    return any(entry.address == address for entry in MENUS[menu])


def init_app(app: Flask) -> None:
    """Register the globals and filters of the templates."""
    app.context_processor(_signed_in)
    # globals, not a context processor: macros need them too
    app.jinja_env.globals.update(
        crumbs=crumbs,
        menu=menu,
        divided=divided,
        project_navigation=project_navigation,
        code_navigation=code_navigation,
        group_navigation=group_navigation,
        group_settings_navigation=group_settings_navigation,
        settings_pages=sections.pages_of,
        panels_of=panels.panels_of,
        milestone_path=milestone_path,
        may=lambda ability, subject: allowed(caller(), Ability[ability], subject),
        with_query=with_query,
    )
    reader_times.init_app(app)
    app.add_template_filter(initials, "initials")
    app.add_template_filter(lambda thing: Visibility(thing.visibility).text, "visibility")


def _signed_in() -> dict[str, Any]:
    asking = caller()
    user = {"id": asking.user_id, "username": asking.username} if asking.user_id else None
    return {
        "signed_in": user,
        "theme": asking.theme,
        "two_factor_deadline": asking.two_factor_deadline,
        "pending_todos": asking.pending_todos,
    }


def crumbs(subject: Project | Namespace) -> list[Project | Namespace]:
    """Return the groups above a project or namespace, outermost first, and the thing itself."""
    inner = subject.namespace if isinstance(subject, Project) else subject
    above = select(Namespace).join(NamespaceAncestor, NamespaceAncestor.ancestor_id == Namespace.id)
    above = above.where(NamespaceAncestor.namespace_id == inner.id).order_by(Namespace.full_path)
    groups = db.session.scalars(above).all()
    return [*groups, subject] if isinstance(subject, Project) else [*groups]


def menu(name: str, subject: Any = None, home: str = "", base: str = "") -> list[NavigationLink]:
    """Return the entries of a menu that the caller may see.

    ``home`` is the address of the subject's own page; other pages of it are below ``base``.
    """
    links: list[tuple[str, NavigationLink]] = []
    for entry in MENUS[name]:
        if not allowed(caller(), entry.ability, subject):
            continue
        address = base + entry.address if entry.address else home
        is_home = address in (home, "/")
        paths = [base + path for path in entry.within] or [address]
        within = next((path for path in paths if _is_here(path, exact=is_home)), "")
        links.append((within, NavigationLink(entry.title, address, bool(within))))
    nearest = max((len(within) for within, link in links if link.current), default=0)
    return [replace(link, current=link.current and len(within) == nearest) for within, link in links]


def divided(links: list[NavigationLink]) -> DividedMenu:
    """Divide the links of a menu so that at most ``MAX_TABS`` are shown at once."""
    if len(links) <= MAX_TABS:
        return DividedMenu(links, [], [])
    last = [link for link in links[-1:] if link.title == SETTINGS_TITLE]
    rest = links[: len(links) - len(last)]
    count = MAX_TABS - len(last)
    return DividedMenu(rest[:count], rest[count:], last)


def project_navigation(project: Project) -> list[NavigationLink]:
    """Return the pages of a project that the caller may see."""
    home = f"/{project.full_path}"
    links = menu("project", project, home, home)
    if pages := sections.pages_of(project):
        address = f"{home}/-/settings/{next(iter(pages))}"
        links.append(NavigationLink(SETTINGS_TITLE, address, _is_here(f"{home}/-/settings", exact=False)))
    return links


def code_navigation(project: Project) -> list[NavigationLink]:
    """Return the pages of the repository of a project; none on other pages."""
    home = f"/{project.full_path}"
    links = menu("code", project, home, home)
    return links if any(link.current for link in links) else []


def group_navigation(group: Namespace) -> list[NavigationLink]:
    """Return the pages of a group that the caller may see."""
    links = menu("group", group, f"/{group.full_path}", page_paths.base_of(group))
    if settings := group_settings_navigation(group):
        is_current = any(link.current for link in settings)
        links.append(NavigationLink(SETTINGS_TITLE, settings[0].address, is_current))
    return links


def group_settings_navigation(group: Namespace) -> list[NavigationLink]:
    """Return the settings pages of a group that the caller may see."""
    return menu("group_settings", group, f"/{group.full_path}", page_paths.base_of(group))


def with_query(**changes: Any) -> str:
    """Return the query of the current page with some parameters changed; ``None`` removes one."""
    query = {**request.args.to_dict(), **changes}
    return "?" + urlencode({name: value for name, value in query.items() if value is not None})


def _is_here(address: str, *, exact: bool) -> bool:
    path = request.path
    return path == address if exact else path.startswith(address)


def initials(name: str) -> str:
    """Return the first letters of the first and the last word of a name, for a picture without a file."""
    words = [word for word in name.replace("-", " ").replace("_", " ").split() if word[0].isalnum()]
    letters = [words[0][0], words[-1][0]] if len(words) > 1 else [word[0] for word in words]
    return "".join(letters).upper() or "?"
