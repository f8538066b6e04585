"""Parts that areas add to pages of other areas, which do not know them: home, project, profile, issue, others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

PAGES = (
    *("home", "home_side", "home_own", "wall", "dashboard", "project", "profile", "environment", "issue", "milestone"),
    *("alert", "error", "finding"),
)


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a page: a template, and the function that fills it for what the page is about.

    Where a list shows it for each row, ``prepare`` fetches for all of them what ``fill`` takes.
    """

    page: str
    order: int
    template: str
    fill: Callable[[Any], dict[str, Any]]
    prepare: Callable[[Sequence[Any]], None] | None = None


@dataclass(frozen=True, slots=True)
class Filled:
    """A panel as its template sees it."""

    template: str
    values: dict[str, Any]


PANELS: list[Panel] = []


def add(panel: Panel) -> None:
    """Register a panel; adding it twice, as a second application does, is once."""
    if panel.page not in PAGES:
        raise ValueError(f"there is no page {panel.page}")
    if panel not in PANELS:
        PANELS.append(panel)
        PANELS.sort(key=lambda panel: panel.order)


def panels_of(page: str, subject: Any = None) -> list[Filled]:
    """The panels of a page, filled."""
    return [Filled(panel.template, panel.fill(subject)) for panel in PANELS if panel.page == page]


def prepare(page: str, subjects: Sequence[Any]) -> None:
    """Fetch what the panels of a page show for each of some things, before they are filled."""
    for panel in PANELS:
        if panel.page == page and panel.prepare is not None and subjects:
            panel.prepare(subjects)
