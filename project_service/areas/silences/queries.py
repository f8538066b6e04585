"""Reads of silences."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Select, exists, func, select
from sqlalchemy.orm import joinedload

from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.domain.silences import holding
from project_service.domain.silences.models import ACTIVE, EXPIRED, PENDING, Silence, SilencedAlert
from project_service.kit import clock
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import NotFound

LISTED_FOR = dt.timedelta(days=30)  # after the end


def silences_of(owner: Project | Namespace, state: str | None = None) -> Select[Silence]:
    """Select the silences of an owner and of the groups above it, newest first, without those that ended long ago."""
    now = clock.now()
    own = select(Silence).where(_concern(owner), Silence.ends_at > now - LISTED_FOR)
    conditions = {
        PENDING: (Silence.starts_at > now, Silence.ends_at > now),
        ACTIVE: (Silence.starts_at <= now, Silence.ends_at > now),
        EXPIRED: (Silence.ends_at <= now,),
    }
    own = own.where(*conditions.get(state or "", ()))
    people = joinedload(Silence.created_by), joinedload(Silence.ended_by), joinedload(Silence.group)
    return own.options(*people, NO_LAZY_LOADING).order_by(Silence.id.desc())


def find_silence(owner: Project | Namespace, silence_id: int) -> Silence:
    """Return one silence that concerns an owner: its own, or one of a group above it."""
    silence = one(silences_of(owner).where(Silence.id == silence_id), NotFound("Silence"))
    load_counts([silence])
    return silence


def find_own_silence(owner: Project | Namespace, silence_id: int) -> Silence:
    """Return one silence that belongs to an owner."""
    silence = find_silence(owner, silence_id)
    if not is_own(silence, owner):
        raise NotFound("Silence")
    return silence


def is_own(silence: Silence, owner: Project | Namespace) -> bool:
    """Whether a silence belongs to an owner."""
    return (silence.project_id if isinstance(owner, Project) else silence.group_id) == owner.id


def _concern(owner: Project | Namespace) -> ColumnElement[bool]:
    if isinstance(owner, Project):
        return holding.applies_to(owner.id)
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == owner.id)
    return Silence.group_id.in_(above)


def number_of_silences(owner: Project | Namespace) -> int:
    """Return how many silences of an owner are pending or active."""
    own = Silence.project_id == owner.id if isinstance(owner, Project) else Silence.group_id == owner.id
    current = select(func.count()).where(own, Silence.ends_at > clock.now())
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


def ending_when_resolved() -> Select[int]:
    """Select the ids of active silences that have matched alerts and end when these are resolved."""
    matched = exists().where(SilencedAlert.silence_id == Silence.id)
    wanted = select(Silence.id).where(Silence.ends_when_resolved, holding.is_active(), matched)
    return wanted.order_by(Silence.id)


def unfinished() -> Select[int]:
    """Select the ids of silences that have expired and have not announced what they held back."""
    expired = select(Silence.id).where(Silence.finished_at.is_(None), Silence.ends_at <= clock.now())
    return expired.order_by(Silence.ends_at, Silence.id)
