"""The stack of an arriving event gets resolved frames, or is queued (source maps reference, section 16)."""

from __future__ import annotations

import dataclasses
import datetime as dt

from sqlalchemy import func, select

from project_service.areas.error_tracking.collection.event_parsing import ParsedEvent
from project_service.areas.error_tracking.collection.javascript_stacks import StackKey
from project_service.areas.error_tracking.errors.models import TrackedErrorEvent
from project_service.areas.error_tracking.releases import jobs, lookup, problems, stack_details
from project_service.areas.error_tracking.releases.models import MISSING, PENDING, ResolvedStack
from project_service.areas.error_tracking.releases.problems import Problem
from project_service.domain.rate_limits import RateLimit
from project_service.domain.users import User
from project_service.kit import clock
from project_service.kit.db.session import db, insert
from project_service.kit.http.errors import BadRequest

RESOLUTIONS = RateLimit("error_tracking:resolve", 10)  # of a user in a minute
MAX_STACKS_A_MINUTE = 100
MAX_PROBLEMS = 5
MINUTE = dt.timedelta(minutes=1)


def with_known_frames(project_id: int, event: ParsedEvent) -> tuple[ParsedEvent, bool]:
    """Return an event with the resolved frames of its stack, and whether the stack is a new one."""
    if event.stack is None:
        return event, False
    row = db.session.execute(
        select(ResolvedStack.frames, ResolvedStack.problems).filter_by(project_id=project_id, digest=event.stack.digest)
    ).first()
    if row is None or not row.frames:
        missing = missing_sources(event.stack) if row is None else row.problems
        details = {**event.details, "source_map_problems": missing} if missing else event.details
        return dataclasses.replace(event, details=details), row is None
    details = stack_details.with_frames(event.details, row.frames, row.problems)
    digest = stack_details.digest_of(event.digest, details)
    culprit = stack_details.culprit_of(event.summary, details)
    summary = {**event.summary, "culprit": culprit}
    return dataclasses.replace(event, details=details, digest=digest, culprit=culprit, summary=summary), False


def missing_sources(stack: StackKey) -> list[Problem]:
    """Return what is missing for the scripts of a build that was prepared for source maps."""
    ids = list(stack.debug_ids.items())[:MAX_PROBLEMS]
    return [problems.no_source(path, debug_id, stack.release, stack.dist) for path, debug_id in ids]


def queue_stack(project_id: int, stack: StackKey) -> None:
    """Note a new stack, and resolve it by a job where files were uploaded for it."""
    debug_ids = list(dict.fromkeys(stack.debug_ids.values()))
    recent = select(func.count()).where(
        ResolvedStack.project_id == project_id, ResolvedStack.created_at > clock.now() - MINUTE
    )
    if (db.session.scalar(recent) or 0) >= MAX_STACKS_A_MINUTE:
        return
    has_files = lookup.has_files(project_id, debug_ids, stack.release)
    row = insert(ResolvedStack).values(
        project_id=project_id,
        digest=stack.digest,
        state=PENDING if has_files else MISSING,
        release=stack.release,
        dist=stack.dist,
        debug_ids=debug_ids,
        frames=[],
        problems=missing_sources(stack),
        created_at=clock.now(),
    )
    added = db.session.scalar(row.on_conflict_do_nothing().returning(ResolvedStack.digest))
    if added is not None and has_files:
        jobs.resolve_stack.defer(project_id, stack.digest)


def resolve_again(user: User, event: TrackedErrorEvent) -> None:
    """Have the stack of an event resolved with the source maps that there are now.

    Raises:
        BadRequest: it has no frames of scripts.
        TooManyRequests: the user has asked too often.

    """
    if event.stack is None:
        raise BadRequest("400 Bad request - the event has no frames of scripts that source maps could resolve")
    RESOLUTIONS.check(user.id)
    jobs.resolve_stack.defer(event.project_id, event.stack)
