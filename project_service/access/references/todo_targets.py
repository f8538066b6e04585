"""What to-do items are about: areas register a kind of target each, the area ``todos`` shows them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement

from project_service.access.identity import Caller
from project_service.kit.http.schemas import Schema


@dataclass(frozen=True, slots=True)
class ShownTarget:
    """A target as pages show it: its title, more about it, and the path of its page below that of the project."""

    title: str
    page: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class TodoTarget:
    """A kind of target; ``name`` is the type that the API returns.

    ``visible`` is the condition, for to-do items joined with their projects, that the caller sees the target; ``load``
    returns the targets with some ids, by id; ``show`` makes of one what pages show, ``schema`` what the API returns.
    """

    name: str
    visible: Callable[[Caller], ColumnElement[bool]]
    load: Callable[[Collection[int]], dict[int, Any]]
    show: Callable[[Any], ShownTarget]
    schema: type[Schema]


TARGETS: dict[str, TodoTarget] = {}


def add(target: TodoTarget) -> None:
    """Register a kind of target."""
    TARGETS[target.name] = target
