"""Events that web hooks are notified of: areas announce them, web hooks listen (webhooks reference, section 8).

An event is announced inside the transaction of the change. Its payload is built only if a hook wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from blinker import Namespace
from sqlalchemy import ColumnElement, column, exists, or_, select, table

from project_service.domain.namespaces import Namespace as GroupOrUser
from project_service.domain.namespaces import NamespaceAncestor
from project_service.domain.projects import Project

# the area of web hooks, which imports this module, has the model
WEB_HOOKS = table("web_hooks", column("project_id"), column("group_id"))
_signals = Namespace()
happened = _signals.signal("hook-event", doc="Sent with a ``HookEvent``.")
happened_together = _signals.signal("hook-events", doc="Sent with a list of ``HookEvent`` with the same listeners.")
asked = _signals.signal("hook-wanted", doc="Sent with the id of a project and ``flag``; receivers return hooks.")
Sample = Callable[[Project], dict[str, Any] | None]
SAMPLES: dict[str, Sample] = {}  # by flag: makers of payloads for tests of hooks


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event of a project or a group: the flag of hooks that want it, and what they are sent."""

    flag: str  # such as ``push_events``
    payload: Callable[[], dict[str, Any]]
    project: Project | None = None
    group: GroupOrUser | None = None
    branch: str | None = None  # of a push, for the filters of hooks
    trigger: str | None = None  # if it is not named after the flag
    listeners: list[Any] | None = None  # if they were looked up before
    system_payload: Callable[[], dict[str, Any]] | None = None  # for hooks of the instance


def announce(flag: str, project: Project, payload: Callable[[], dict[str, Any]], **details: Any) -> None:
    """Announce an event of a project."""
    happened.send(HookEvent(flag, payload, project=project, **details))


def announce_all(
    flag: str, project: Project, payloads: Iterable[Callable[[], dict[str, Any]]], listeners: list[Any]
) -> None:
    """Announce several events of a project to hooks that were looked up before, with few statements."""
    happened_together.send([HookEvent(flag, payload, project=project, listeners=listeners) for payload in payloads])


def announce_in_group(flag: str, group: GroupOrUser, payload: Callable[[], dict[str, Any]], **details: Any) -> None:
    """Announce an event of a group."""
    happened.send(HookEvent(flag, payload, group=group, **details))


def announce_to_instance(flag: str, payload: Callable[[], dict[str, Any]]) -> None:
    """Announce an event of neither a project nor a group, for hooks of the instance."""
    happened.send(HookEvent(flag, payload))


def listeners(project_id: int, flag: str) -> list[Any]:
    """Return the hooks that want events of a project, where preparing an event costs something.

    Given to ``announce`` they are not looked up again.
    """
    return [hook for _, hooks in asked.send(project_id, flag=flag) for hook in hooks]


def has_hooks(project_id: Any, namespace_id: Any) -> ColumnElement[bool]:
    """Return the condition that there are hooks for events of a project, for statements that ask for it on the side."""
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == namespace_id)
    above = above.correlate_except(NamespaceAncestor)
    of_project, of_group = WEB_HOOKS.c.project_id, WEB_HOOKS.c.group_id
    return or_(
        exists().where(of_project == project_id),
        exists().where(of_group.in_(above)),
        exists().where(of_project.is_(None), of_group.is_(None)),
    )


def add_sample(flag: str, make: Sample) -> None:
    """Register what a hook is sent as a test of an event; ``None`` if the project has nothing to make it of."""
    SAMPLES[flag] = make
