"""Settings pages, assembled from sections that areas register; no area knows the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import render_template

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.domain.projects import Project
from project_service.kit.http.errors import Forbidden

PAGES = {  # the text of the menu
    "general": "General",
    "repository": "Repository",
    "ci_cd": "CI/CD",
    "access_tokens": "Access tokens",
    "operations": "Operations",
}


def always() -> bool:
    """No condition."""
    return True


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a settings page: a template, and the function that fills it for a project.

    ``offered`` says whether the instance has it at all.
    """

    page: str
    name: str
    title: str
    order: int
    ability: Ability
    template: str
    fill: Callable[[Project], dict[str, Any]]
    offered: Callable[[], bool] = always


HEADINGS = {page: f"{text} settings" for page, text in PAGES.items()} | {"access_tokens": "Access tokens"}
SECTIONS: list[Section] = []


def add(section: Section) -> None:
    """Register a section; adding it twice, as a second application does, is once."""
    if section.page not in PAGES:
        raise ValueError(f"there is no settings page {section.page}")
    if section not in SECTIONS:
        SECTIONS.append(section)
        SECTIONS.sort(key=lambda section: (section.page, section.order))


def sections_of(project: Project, page: str) -> list[Section]:
    """The sections of a page that the caller may use."""
    usable = (section for section in SECTIONS if section.page == page and allowed(caller(), section.ability, project))
    return [section for section in usable if section.offered()]


def pages_of(project: Project) -> dict[str, str]:
    """The settings pages, by address, on which the caller may use something."""
    return {page: title for page, title in PAGES.items() if sections_of(project, page)}


def show(project: Project, page: str, *, status: int = 200, **filled: Any) -> tuple[str, int]:
    """The page; ``filled`` replaces what sections fill in, to show a form again that was refused."""
    sections = sections_of(project, page)
    if not sections:
        raise Forbidden
    values: dict[str, Any] = {}
    for section in sections:
        values |= section.fill(project)
    html = render_template(
        "projects/settings.html",
        project=project,
        page=page,
        title=HEADINGS[page],
        sections=sections,
        **(values | filled),
    )
    return html, status
