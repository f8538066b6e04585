"""What is known of the stack of an arriving event (source maps reference, section 16)."""

from __future__ import annotations

import dataclasses
import datetime as dt
from dataclasses import dataclass

from sqlalchemy import func, select

from project_service.areas.error_tracking.collection.event_parsing import ParsedEvent
from project_service.areas.error_tracking.collection.stacks.javascript_stacks import StackKey
from project_service.areas.error_tracking.collection.stacks.stack_traces import Frame
from project_service.areas.error_tracking.errors.models import TrackedErrorEvent
from project_service.areas.error_tracking.releases import jobs
from project_service.areas.error_tracking.releases.models import MISSING, PENDING, ResolvedStack
from project_service.areas.error_tracking.source_maps import lookup, problems, stack_details
from project_service.areas.error_tracking.source_maps.problems import Problem
from project_service.domain.accounts.users import User
from project_service.domain.rate_limits import RateLimit
from project_service.kit import clock
from project_service.kit.db.session import db, insert
from project_service.kit.http.errors import BadRequest

RESOLUTIONS = RateLimit("error_tracking:resolve", 10)  # of a user in a minute
MAX_STACKS_A_MINUTE = 100
MAX_PROBLEMS = 5
MINUTE = dt.timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class StackResult:
    """What is known of the stack of an event; ``is_new`` if it was not known before the event."""

    state: str
    frames: list[list[Frame]]
    problems: list[Problem]
    is_new: bool = False


def find_or_note(project_id: int, stack: StackKey) -> StackResult:
    """Return what is known of a stack; note a new one, which is pending where files were uploaded for it."""
    result = find_result(project_id, stack.digest)
    if result is None:
        noted = _note(project_id, stack)
        if noted is not None:
            return noted
        result = find_result(project_id, stack.digest)  # another request has noted it a moment ago
    if result is not None and result.state == PENDING:
        # the job must not end while the event is stored, or nothing would group it
        result = find_result(project_id, stack.digest, locked=True)
    return result or StackResult(MISSING, [], missing_sources(stack))


def find_result(project_id: int, digest: str, *, locked: bool = False) -> StackResult | None:
    """Return what is known of a stack; ``locked``: it stays so until the end of the unit of work."""
    columns = (ResolvedStack.state, ResolvedStack.frames, ResolvedStack.problems)
    mine = select(*columns).filter_by(project_id=project_id, digest=digest)
    row = db.session.execute(mine.with_for_update(read=True) if locked else mine).first()
    return None if row is None else StackResult(row.state, row.frames, row.problems)


def with_frames(event: ParsedEvent, result: StackResult) -> ParsedEvent:
    """Return an event with the resolved frames of its stack, or with the reasons why there are none."""
    if not result.frames:
        if not result.problems:
            return event
        return dataclasses.replace(event, details={**event.details, "source_map_problems": result.problems})
    details = stack_details.with_frames(event.details, result.frames, result.problems)
    digest = stack_details.digest_of(event.digest, details)
    culprit = stack_details.culprit_of(event.summary, details)
    summary = {**event.summary, "culprit": culprit}
    return dataclasses.replace(event, details=details, digest=digest, culprit=culprit, summary=summary)


def missing_sources(stack: StackKey) -> list[Problem]:
    """Return what is missing for scripts whose debug id and release have no source maps."""
    ids = [*stack.debug_ids.items(), *((path, None) for path in stack.unprepared)][:MAX_PROBLEMS]
    return [problems.no_source(path, debug_id, stack.release, stack.dist) for path, debug_id in ids]


def _note(project_id: int, stack: StackKey) -> StackResult | None:
    """Add a new stack; ``None`` if it is there already."""
    recent = select(func.count()).where(
        ResolvedStack.project_id == project_id, ResolvedStack.created_at > clock.now() - MINUTE
    )
    if (db.session.scalar(recent) or 0) >= MAX_STACKS_A_MINUTE:
        return StackResult(MISSING, [], [problems.too_many()])
    has_files = lookup.has_files(project_id, list(stack.debug_ids.values()), stack.release)
    result = StackResult(
        PENDING if has_files else MISSING, [], [problems.pending()] if has_files else missing_sources(stack), True
    )
    return result if _insert(project_id, stack, result) else None


def _insert(project_id: int, stack: StackKey, result: StackResult) -> bool:
    row = insert(ResolvedStack).values(
        project_id=project_id,
        digest=stack.digest,
        state=result.state,
        release=stack.release,
        dist=stack.dist,
        debug_ids=list(dict.fromkeys(stack.debug_ids.values())),
        frames=[],
        problems=result.problems,
        created_at=clock.now(),
    )
    return db.session.scalar(row.on_conflict_do_nothing().returning(ResolvedStack.digest)) is not None


def resolve_again(user: User, event: TrackedErrorEvent) -> None:
    """Have the stack of an event resolved with the source maps that there are now.

    Raises:
        BadRequest: it has no frames of scripts.
        TooManyRequests: the user has asked too often.

    """
    if event.stack is None:
        raise BadRequest("400 Bad request - the event has no frames of scripts that source maps could resolve")
    RESOLUTIONS.check(user.id)
    key = StackKey(event.stack, event.details.get("debug_ids", {}), event.summary["release"], event.summary["dist"])
    _insert(event.project_id, key, StackResult(MISSING, [], []))  # one of too many stacks was not noted
    jobs.resolve_stack.defer(event.project_id, event.stack)
