"""Events of a push: one for each changed branch or tag, or one for many (repositories reference, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from project_service.areas.repositories.transport.push_facts import CommitFigures
from project_service.domain import instance_settings
from project_service.domain.accounts.users import User
from project_service.domain.events import recording as events
from project_service.domain.events.models import Action
from project_service.domain.projects import Project
from project_service.domain.repositories.refs import RefChange

BRANCH, TAG = "branch", "tag"
CREATED, PUSHED, REMOVED = "created", "pushed", "removed"


def groups_of(changes: Sequence[RefChange]) -> dict[tuple[str, str], list[RefChange]]:
    """The changes of branches and tags by kind and action, in the order of their events."""
    groups: dict[tuple[str, str], list[RefChange]] = {}
    for kind in (BRANCH, TAG):
        for change in changes:
            if (change.is_branch if kind == BRANCH else change.is_tag) and change.old != change.new:
                action = CREATED if change.creates else REMOVED if change.deletes else PUSHED
                groups.setdefault((kind, action), []).append(change)
    return groups


def single_changes(changes: Sequence[RefChange]) -> list[RefChange]:
    """The changes that get an event of their own."""
    limit = instance_settings.setting("push_event_activities_limit")
    return [change for group in groups_of(changes).values() if len(group) <= limit for change in group]


def record_push(
    author: User, project: Project, changes: Sequence[RefChange], figures: dict[str, CommitFigures]
) -> None:
    """Record the events of the changes that were made."""
    single = {change.name for change in single_changes(changes) if change.name in figures}
    for (kind, action), group in groups_of(changes).items():
        common: dict[str, Any] = {"action": action, "ref_type": kind}
        if all(change.name in single for change in group):
            for change in group:
                events.record(author, Action.PUSHED, project, data=common | _details(change, figures[change.name]))
        else:
            nothing = {"commit_from": None, "commit_to": None, "ref": None, "commit_title": None}
            data = {"commit_count": 0, **nothing, "ref_count": len(group)}
            events.record(author, Action.PUSHED, project, data=common | data)


def _details(change: RefChange, figures: CommitFigures) -> dict[str, Any]:
    return {
        "commit_count": figures.count,
        "commit_from": None if change.creates else change.old,
        "commit_to": None if change.deletes else change.new,
        "ref": change.short_name,
        "commit_title": figures.title,
        "ref_count": None,
    }
