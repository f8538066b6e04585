"""The activity panels of the dashboard, of a project and of a profile."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from flask import request
from sqlalchemy import Select

from project_service.access.identity import caller
from project_service.access.page_parts import panels
from project_service.areas.activity import queries
from project_service.areas.activity.sentences import sentence_of
from project_service.areas.activity.targets import events_with_targets
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit.http.pagination import Listing, listing_of

FILTERS: dict[str, tuple[str, dict[str, str]]] = {
    "all": ("All", {}),
    "push": ("Pushes", {"action": "pushed"}),
    "issue": ("Issues", {"target_type": "issue"}),
    "merged": ("Merges", {"action": "merged"}),
    "comments": ("Comments", {"action": "commented"}),
    "milestone": ("Milestones", {"target_type": "milestone"}),
    "wiki": ("Wiki", {"target_type": "wiki"}),
    "designs": ("Designs", {"target_type": "design"}),
    "team": ("Team", {"target_type": "project"}),
}
ALWAYS = ("all", "team")  # every project has been created
EVENTS_PER_STEP = 20
MAX_EVENTS_SHOWN = 1000
MAX_EVENTS_SKIPPED = 1_000_000


def _feed(listed: Select[int] | Listing, chosen: str, kinds: Collection[str] = FILTERS) -> dict[str, Any]:
    page_size = min(max(_number("shown"), EVENTS_PER_STEP), MAX_EVENTS_SHOWN)
    skipped = min(_number("skip"), MAX_EVENTS_SKIPPED)
    ids = listing_of(listed).rows(skipped, page_size + 1)
    more = len(ids) > page_size
    events = events_with_targets(ids[:page_size], shorten=True)
    return {
        "events": [(event, sentence_of(event, event.project)) for event in events],
        "more": {"shown": page_size + EVENTS_PER_STEP} if more and page_size < MAX_EVENTS_SHOWN else None,
        "older": {"shown": None, "skip": skipped + MAX_EVENTS_SHOWN}
        if more and page_size == MAX_EVENTS_SHOWN
        else None,
        "chosen": chosen,
        "filters": {name: title for name, (title, _) in FILTERS.items() if name in kinds or name == chosen},
    }


def _number(name: str) -> int:
    text = request.args.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _selected_filter() -> tuple[str, dict[str, str]]:
    name = request.args.get("activity", "all")
    name = name if name in FILTERS else "all"
    return name, FILTERS[name][1]


def fill_dashboard(_subject: None) -> dict[str, Any]:
    """Fill the panel of the events in the caller's projects."""
    name, options = _selected_filter()
    return _feed(queries.events_of_memberships(caller(), **options), name) | {
        "title": "Activity",
        "names_project": True,
    }


def fill_project(project: Project) -> dict[str, Any]:
    """Fill the panel of a project's events."""
    name, options = _selected_filter()
    kinds = {*ALWAYS, *queries.kinds_of(project)}
    return _feed(queries.events_of_project(caller(), project, **options), name, kinds) | {"title": "Activity"}


def fill_profile(user: User) -> dict[str, Any]:
    """Fill the panel of a user's events, as far as the caller may see them."""
    name, options = _selected_filter()
    return _feed(queries.events_of_user(caller(), user, **options), name) | {"title": "Activity", "names_project": True}


for page, fill in (("dashboard", fill_dashboard), ("project", fill_project), ("profile", fill_profile)):
    panels.add(panels.Panel(page, 50, "activity/panel.html", fill))
