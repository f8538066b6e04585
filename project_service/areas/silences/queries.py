"""Reads of silences."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from sqlalchemy import Select, func, select
from sqlalchemy.orm import joinedload

from project_service.domain.projects import Project
from project_service.domain.silences.models import ACTIVE, EXPIRED, PENDING, Silence, SilencedAlert
from project_service.kit import clock
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import NotFound

LISTED_FOR = dt.timedelta(days=30)  # after the end


def silences_of(project: Project, state: str | None = None) -> Select[Silence]:
    """Select the silences of a project, newest first; those that ended long ago are not listed."""
    now = clock.now()
    own = select(Silence).where(Silence.project_id == project.id, Silence.ends_at > now - LISTED_FOR)
    conditions = {
        PENDING: (Silence.starts_at > now, Silence.ends_at > now),
        ACTIVE: (Silence.starts_at <= now, Silence.ends_at > now),
        EXPIRED: (Silence.ends_at <= now,),
    }
    own = own.where(*conditions.get(state or "", ()))
    people = joinedload(Silence.created_by), joinedload(Silence.ended_by)
    return own.options(*people, NO_LAZY_LOADING).order_by(Silence.id.desc())


def find_silence(project: Project, silence_id: int) -> Silence:
    """Return one silence of a project."""
    silence = one(silences_of(project).where(Silence.id == silence_id), NotFound("Silence"))
    load_counts([silence])
    return silence


def number_of_silences(project: Project) -> int:
    """Return how many silences of a project are pending or active."""
    current = select(func.count()).where(Silence.project_id == project.id, Silence.ends_at > clock.now())
    return db.session.scalar(current) or 0


def load_counts(silences: Sequence[Silence]) -> None:
    """Set the number of alerts that each silence has matched."""
    ids = [silence.id for silence in silences]
    counted = select(SilencedAlert.silence_id, func.count()).where(SilencedAlert.silence_id.in_(ids))
    counts: dict[int, int] = dict(db.session.execute(counted.group_by(SilencedAlert.silence_id)).all())
    for silence in silences:
        silence.matched_count = counts.get(silence.id, 0)


def unbegun() -> Select[int]:
    """Select the ids of silences that have started and have not matched the open alerts."""
    now = clock.now()
    started = Silence.begun_at.is_(None) & (Silence.starts_at <= now) & (Silence.ends_at > now)
    return select(Silence.id).where(Silence.finished_at.is_(None), started).order_by(Silence.id)


def unfinished() -> Select[int]:
    """Select the ids of silences that have expired and have not announced what they held back."""
    expired = select(Silence.id).where(Silence.finished_at.is_(None), Silence.ends_at <= clock.now())
    return expired.order_by(Silence.ends_at, Silence.id)
