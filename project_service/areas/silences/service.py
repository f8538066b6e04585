"""Create, change and end silences (silences reference, section 1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from project_service.access import audit
from project_service.areas.silences import queries
from project_service.areas.silences.jobs import update_silences
from project_service.domain.accounts.users import User
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.domain.silences.matching import described, problem_of
from project_service.domain.silences.models import EXPIRED, PENDING, Silence
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadParameters, Forbidden, Invalid, NotFound

SilenceOwner = Project | Namespace
MAX_SILENCES = 100  # pending or active, of a project or group
MAX_COMMENT_CHARACTERS = 1024
MAX_LENGTH = dt.timedelta(days=365)
LONG = dt.timedelta(days=7)
WARNING = "lasts longer than 7 days"
WHOLE_PROJECT = "only maintainers may silence a whole project"
FIXED = "an expired silence cannot be changed"
LOCKED_COLUMNS = ("starts_at", "ends_at", "finished_at")


class SilenceFields(TypedDict, total=False):
    """What may be given of a silence; ``duration`` is in seconds, in place of ``ends_at``."""

    matchers: Sequence[Mapping[str, str]] | None
    starts_at: dt.datetime | None
    ends_at: dt.datetime | None
    duration: int | None
    comment: str | None
    hold_incidents: bool | None
    ends_when_resolved: bool | None


def create_silence(
    author: User, owner: SilenceOwner, *, is_maintainer: bool, **fields: Unpack[SilenceFields]
) -> Silence:
    """Create a silence; a start in the past is now.

    Raises:
        Forbidden: it has no matchers, and the author is no maintainer.
        Invalid: a value is not valid, or there are too many.

    """
    if queries.number_of_silences(owner) >= MAX_SILENCES:
        raise Invalid(base=f"Maximum number of silences ({MAX_SILENCES}) exceeded")
    silence = Silence(
        created_by_id=author.id,
        starts_at=clock.now(),
        matchers=[],
        hold_incidents=True,
        ends_when_resolved=False,
        **{"project_id" if isinstance(owner, Project) else "group_id": owner.id},
    )
    _assign(silence, fields, is_maintainer)
    silence.created_by = author
    db.session.add(silence)
    _record(owner, silence, "created", f"Silenced {described(silence.matchers)}")
    silence.matched_count = 0
    return silence


def update_silence(
    author: User, owner: SilenceOwner, silence: Silence, *, is_maintainer: bool, **fields: Unpack[SilenceFields]
) -> Silence:
    """Change the end and the comment of a silence and, while it is pending, everything."""
    _check_author(author, silence, is_maintainer)
    if not fields:
        raise BadParameters("No parameters provided")
    lock_row(silence, *LOCKED_COLUMNS)
    if silence.state == EXPIRED:
        raise Invalid(base=FIXED)
    if silence.state != PENDING:
        fixed = [name for name in ("matchers", "starts_at", "hold_incidents") if name in fields]
        if problems := dict.fromkeys(fixed, "cannot be changed while the silence is active"):
            raise Invalid(**problems)
    with db.session.no_autoflush:
        _assign(silence, fields, is_maintainer)
    _record(owner, silence, "updated", f"Changed the silence of {described(silence.matchers)}")
    return silence


def end_silence(author: User, owner: SilenceOwner, silence: Silence, *, is_maintainer: bool) -> None:
    """End a silence now; it stays in the list."""
    _check_author(author, silence, is_maintainer)
    lock_row(silence, *LOCKED_COLUMNS)
    if silence.state == EXPIRED:
        raise NotFound("Silence")
    now = clock.now()
    silence.starts_at, silence.ends_at, silence.ended_at = min(silence.starts_at, now), now, now
    silence.ended_by_id = author.id
    _record(owner, silence, "ended", f"Ended the silence of {described(silence.matchers)}")


def warning_of(silence: Silence) -> str | None:
    """Return what its author should know."""
    return WARNING if silence.ends_at - silence.starts_at > LONG else None


def _check_author(author: User, silence: Silence, is_maintainer: bool) -> None:
    if not is_maintainer and silence.created_by_id != author.id:
        raise Forbidden


def _assign(silence: Silence, fields: SilenceFields, is_maintainer: bool) -> None:
    """Set the fields, or raise an error and set none."""
    now, problems = clock.now(), dict[str, str]()
    matchers = [dict(matcher) for matcher in fields.get("matchers") or silence.matchers]
    if "matchers" in fields and not fields["matchers"]:
        matchers = []
    if not matchers and not is_maintainer:
        raise Forbidden(WHOLE_PROJECT)
    if problem := problem_of(matchers):
        problems["matchers"] = problem
    starts_at = max(fields.get("starts_at") or silence.starts_at, min(now, silence.starts_at))
    ends_at = fields.get("ends_at") or silence.ends_at
    if (seconds := fields.get("duration")) is not None:
        ends_at = max(starts_at, now) + dt.timedelta(seconds=min(seconds, 10**9))
    if ends_at is None or ends_at <= max(starts_at, now):
        problems["ends_at"] = "must be after the start"
    elif ends_at - starts_at > MAX_LENGTH:
        problems["ends_at"] = f"must be at most {MAX_LENGTH.days} days after the start"
    comment = (fields["comment"] or "").strip() if "comment" in fields else silence.comment
    if not comment:
        problems["comment"] = "can't be blank"
    elif len(comment) > MAX_COMMENT_CHARACTERS:
        problems["comment"] = f"is too long (maximum is {MAX_COMMENT_CHARACTERS} characters)"
    if problems:
        raise Invalid(**problems)
    silence.matchers, silence.starts_at, silence.ends_at, silence.comment = matchers, starts_at, ends_at, comment
    if (hold_incidents := fields.get("hold_incidents")) is not None:
        silence.hold_incidents = hold_incidents
    if (ends_when_resolved := fields.get("ends_when_resolved")) is not None:
        silence.ends_when_resolved, silence.cleared_at = ends_when_resolved, None


def _record(owner: SilenceOwner, silence: Silence, change: str, text: str) -> None:
    db.session.flush()
    audit.record(f"silence_{change}", owner, text, target=AuditTarget("Silence", silence.id, silence.comment))
    update_silences.defer()
