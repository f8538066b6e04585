"""Events that a project does not want: rules with patterns (error collection reference, section 15).

A pattern has ``*`` for any characters and is compared in linear time, in any case of letters.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select, update

from project_service.areas.error_tracking.collection.event_parsing import ParsedEvent
from project_service.areas.error_tracking.settings.models import ErrorIgnoreRule
from project_service.domain.repositories.wildcards import matches
from project_service.kit.db.session import db

MAX_FILES = 200


def is_ignored(project_id: int, event: ParsedEvent) -> bool:
    """Whether a rule of the project matches an event; it is counted at the first that does."""
    rules = select(ErrorIgnoreRule).where(ErrorIgnoreRule.project_id == project_id).order_by(ErrorIgnoreRule.id)
    files: list[str] | None = None
    for rule in db.session.scalars(rules):
        names = ((rule.title, event.title), (rule.release, event.release), (rule.environment, event.environment))
        if not all(_fits(pattern, [name or ""]) for pattern, name in names):
            continue
        files = files_of(event) if files is None else files
        if _fits(rule.file, files):
            _count(rule, event)
            return True
    return False


def files_of(event: ParsedEvent) -> list[str]:
    """Return the distinct files and paths of the frames of an event, the innermost first, at most ``MAX_FILES``."""
    frames = (frame for entry in reversed(event.details["exceptions"]) for frame in reversed(entry["frames"]))
    names = (frame.get(name) for frame in frames for name in ("filename", "abs_path"))
    return list(dict.fromkeys(name for name in names if name))[:MAX_FILES]


def _fits(pattern: str | None, names: Collection[str]) -> bool:
    return not pattern or any(matches(pattern.lower(), name.lower()) for name in names)


def _count(rule: ErrorIgnoreRule, event: ParsedEvent) -> None:
    values = {"dropped_events": ErrorIgnoreRule.dropped_events + 1, "last_dropped_at": event.received_at}
    mine = update(ErrorIgnoreRule).where(ErrorIgnoreRule.id == rule.id).values(**values)
    db.session.execute(mine.execution_options(synchronize_session=False))
