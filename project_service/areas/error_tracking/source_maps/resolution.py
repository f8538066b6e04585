"""Resolve the frames of a stack and its events, and group them anew (source maps reference, sections 15 to 18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import undefer

from project_service.areas.error_tracking.collection.scrubbing import Cleaner
from project_service.areas.error_tracking.collection.stacks.javascript_stacks import LIBRARIES, path_of
from project_service.areas.error_tracking.collection.stacks.stack_traces import Frame
from project_service.areas.error_tracking.errors import merging
from project_service.areas.error_tracking.errors.models import TrackedError, TrackedErrorDigest, TrackedErrorEvent
from project_service.areas.error_tracking.releases.models import (
    BROKEN,
    MISSING,
    PARTIAL,
    RESOLVED,
    ResolvedStack,
    SourceMapArtifact,
    WaitingEvent,
)
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.areas.error_tracking.source_maps import lookup, problems, stack_details, symbolication
from project_service.areas.error_tracking.source_maps.lookup import ScriptFiles
from project_service.areas.error_tracking.source_maps.problems import Problem
from project_service.areas.error_tracking.source_maps.rewriting import raw_frame, rewritten
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, insert

MAX_SCRIPTS = 20
MAX_PROBLEMS = 20
EVENT_BATCH = 20


@dataclass(slots=True)
class Stack:
    """The frames of a stack as they were sent, and the files of their scripts, by path."""

    frames: list[list[Frame]]
    platform: str | None
    cleaner: Cleaner
    files: dict[str, ScriptFiles] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def path(self, frame: Frame) -> str | None:
        """Return the path of the script of a frame."""
        return path_of(frame, self.platform)

    def add_problem(self, problem: Problem) -> None:
        """Note why frames of a script are not resolved, once for each reason."""
        if problem not in self.problems and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)


def resolve(project_id: int, digest: str) -> None:
    """Resolve a stack with the files that there are now."""
    with jobs.step():
        stack = _load(project_id, digest)
    if stack is None:
        return
    frames = _rewrite(stack)
    is_resolved = any(frame.get("data", {}).get("symbolicated") for stack_frames in frames for frame in stack_frames)
    broken = any(problem["type"] == "js_invalid_source" for problem in stack.problems)
    state = (PARTIAL if stack.problems else RESOLVED) if is_resolved else BROKEN if broken else MISSING
    with jobs.step():
        values = {"state": state, "frames": frames if is_resolved else [], "problems": stack.problems}
        mine = update(ResolvedStack).filter_by(project_id=project_id, digest=digest)
        db.session.execute(mine.values(**values))
        _note_use(stack)
    last_id: int | None = 0
    while last_id is not None:
        last_id = _apply(project_id, digest, frames, stack.problems, last_id)
    if is_resolved:
        with jobs.step():
            _regroup(project_id, digest)


def _load(project_id: int, digest: str) -> Stack | None:
    row = db.session.get(ResolvedStack, (project_id, digest))
    event = _newest_fields(project_id, digest)
    if row is None or event is None:
        return None
    summary, details = event
    setting = select(ErrorTrackingSetting.hidden_keys).where(ErrorTrackingSetting.project_id == project_id)
    entries = details["exceptions"]
    stack = Stack(
        [[raw_frame(frame) for frame in entry["frames"]] for entry in entries],
        summary.get("platform"),
        Cleaner(db.session.scalar(setting) or ()),
    )
    debug_ids = details.get("debug_ids") or {}
    paths = dict.fromkeys(
        path for stack_frames in stack.frames for frame in stack_frames if (path := stack.path(frame)) is not None
    )
    for path in list(paths)[:MAX_SCRIPTS]:
        debug_id = debug_ids.get(path)
        files = lookup.find_files(project_id, path, debug_id, row.release, row.dist)
        if files is not None:
            stack.files[path] = files
        elif not any(part in path for part in LIBRARIES):
            stack.add_problem(problems.no_source(path, debug_id, row.release, row.dist))
    db.session.expunge_all()  # they are read outside of this transaction
    return stack


def _rewrite(stack: Stack) -> list[list[Frame]]:
    """Return the frames with what the source maps say; those that are not found stay."""
    numbers = {path: number for number, path in enumerate(stack.files)}
    handled = [
        (at, position, path)
        for at, stack_frames in enumerate(stack.frames)
        for position, frame in enumerate(stack_frames)
        if (path := stack.path(frame)) in numbers
    ]
    lookups = [
        (numbers[path], stack.frames[at][position]["lineno"], stack.frames[at][position]["colno"] or 1)
        for at, position, path in handled
    ]
    tokens, errors = symbolication.look_up(list(stack.files.values()), lookups) if lookups else ([], {})
    for path, number in numbers.items():
        if number in errors:
            stack.add_problem(problems.invalid_map(path, errors[number]))
    tokens_by_place = {(at, position): token for (at, position, _), token in zip(handled, tokens, strict=True)}
    frames = [list(stack_frames) for stack_frames in stack.frames]
    for at, position, path in handled:
        token = tokens_by_place[at, position]
        frame = stack.frames[at][position]
        if token is None:
            if numbers[path] not in errors:
                stack.add_problem(problems.no_place(path, frame["lineno"], frame["colno"] or 1))
            continue
        files = stack.files[path]
        if token["text"] is None:
            stack.add_problem(problems.no_text(path))
        base = files.label if files.resolved_with == lookup.RELEASE_MATCH else path
        resolved = {"with": files.resolved_with, "label": files.label, "base": base}
        frames[at][position] = rewritten(frame, token, tokens_by_place.get((at, position - 1)), resolved, stack.cleaner)
    return frames


def _note_use(stack: Stack) -> None:
    """Keep the files of a stack from being removed as unused."""
    used = {
        artifact.id
        for files in stack.files.values()
        for artifact in (files.source_map, files.script)
        if artifact is not None
    }
    statement = update(SourceMapArtifact).where(SourceMapArtifact.id.in_(sorted(used)))
    db.session.execute(statement.values(last_used_at=clock.now()).execution_options(synchronize_session=False))


def _newest_fields(project_id: int, digest: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return summary and details of the newest stored event of a stack, else of one that waits to be grouped."""
    event = _newest_event(project_id, digest)
    if event is not None:
        return event.summary, event.details
    waiting = select(WaitingEvent.fields).filter_by(project_id=project_id, stack=digest)
    fields = db.session.scalar(waiting.order_by(WaitingEvent.id.desc()).limit(1))
    return None if fields is None else (fields["summary"], fields["details"])


def _newest_event(project_id: int, digest: str) -> TrackedErrorEvent | None:
    event = TrackedErrorEvent
    mine = select(event).filter_by(project_id=project_id, stack=digest)
    return db.session.scalar(mine.order_by(event.id.desc()).options(undefer(event.details)).limit(1))


def _apply(
    project_id: int, digest: str, frames: Sequence[list[Frame]], reasons: Sequence[Problem], after_id: int
) -> int | None:
    """Write the frames to a batch of stored events; return the id of the last, ``None`` if there are no more."""
    event = TrackedErrorEvent
    mine = select(event).filter_by(project_id=project_id, stack=digest).where(event.id > after_id)
    batch = mine.order_by(event.id).options(undefer(event.details)).limit(EVENT_BATCH)
    with jobs.step():
        events = db.session.scalars(batch).all()
        for row in events:
            row.details = stack_details.with_frames(row.details, frames, reasons)
            row.summary = {**row.summary, "culprit": stack_details.culprit_of(row.summary, row.details)}
    return events[-1].id if len(events) == EVENT_BATCH else None


def _regroup(project_id: int, digest: str) -> None:
    """Give the error of the stack the digest of its resolved frames, or merge it into the error that has it."""
    event = _newest_event(project_id, digest)
    if event is None:
        return
    new = stack_details.digest_of("", event.details)
    if new:
        row = insert(TrackedErrorDigest).values(project_id=project_id, digest=new, error_id=event.error_id)
        db.session.execute(row.on_conflict_do_nothing())
        owner = select(TrackedErrorDigest.error_id).filter_by(project_id=project_id, digest=new)
        owner_id = db.session.scalar(owner)
        if owner_id is not None and owner_id != event.error_id:
            merging.merge(project_id, event.error_id, owner_id)
            db.session.refresh(event, ["error_id"])
    error = db.session.get(TrackedError, event.error_id, populate_existing=True)
    if error is not None and error.last_seen <= event.occurred_at:
        error.culprit = event.summary["culprit"]
