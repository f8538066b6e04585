"""The feeds on the dashboard, on a project's page and on a profile."""

from __future__ import annotations

from typing import Any

from flask import request
from sqlalchemy import Select

from project_service.access import panels
from project_service.access.identity import caller
from project_service.areas.activity import queries
from project_service.areas.activity.sentences import sentence_of
from project_service.areas.activity.targets import events_with_targets
from project_service.domain.events.models import Event
from project_service.domain.projects import Project
from project_service.domain.users import User
from project_service.kit.db.pagination import Counted, counted
from project_service.kit.db.reading import Given

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
STEP = 20
MOST = 1000
FARTHEST = 1_000_000


def _feed(found: Select[int] | Given | Counted, chosen: str) -> dict[str, Any]:
    shown = min(max(_number("shown"), STEP), MOST)
    skipped = min(_number("skip"), FARTHEST)
    ids = counted(found).rows(skipped, shown + 1)
    more = len(ids) > shown
    events = events_with_targets(ids[:shown], (Event.project, Project.namespace))
    return {
        "events": [(event, sentence_of(event, event.project)) for event in events],
        "more": {"shown": shown + STEP} if more and shown < MOST else None,
        "older": {"shown": None, "skip": skipped + MOST} if more and shown == MOST else None,
        "chosen": chosen,
        "filters": {name: title for name, (title, _) in FILTERS.items()},
    }


def _number(name: str) -> int:
    text = request.args.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _chosen() -> tuple[str, dict[str, str]]:
    name = request.args.get("activity", "all")
    name = name if name in FILTERS else "all"
    return name, FILTERS[name][1]


def fill_dashboard(_subject: None) -> dict[str, Any]:
    """What happened in one's projects."""
    name, wanted = _chosen()
    return _feed(queries.events_of_memberships(caller(), **wanted), name) | {"title": "Activity", "names_project": True}


def fill_project(project: Project) -> dict[str, Any]:
    """What happened in a project."""
    name, wanted = _chosen()
    return _feed(queries.events_of_project(caller(), project, **wanted), name) | {"title": "Activity"}


def fill_profile(user: User) -> dict[str, Any]:
    """What somebody did, as far as one may see it."""
    name, wanted = _chosen()
    return _feed(queries.events_of_user(caller(), user, **wanted), name) | {"title": "Activity", "names_project": True}


for page, fill in (("dashboard", fill_dashboard), ("project", fill_project), ("profile", fill_profile)):
    panels.add(panels.Panel(page, 50, "activity/panel.html", fill))
