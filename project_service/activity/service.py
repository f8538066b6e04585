"""Retention of events, and memberships that run out."""

from __future__ import annotations

import datetime as dt

from dateutil.relativedelta import relativedelta
from sqlalchemy import delete, func, select

from project_service.core.memberships import Membership
from project_service.core.projects import Project
from project_service.events.models import Action, Event
from project_service.events.recording import record
from project_service.kit import clock
from project_service.kit.database import db

KEPT = relativedelta(years=2)


def oldest_kept() -> dt.datetime:
    """Events before this moment are removed (specification, Events, rule 1); one at exactly this moment stays."""
    return clock.now() - KEPT


def count_old() -> int:
    """How many events would be removed now."""
    return db.session.scalar(select(func.count()).select_from(Event).where(Event.created_at < oldest_kept())) or 0


def prune_batch(size: int) -> int:
    """Remove some of the oldest events; how many."""
    old = select(Event.id).where(Event.created_at < oldest_kept()).order_by(Event.created_at, Event.id).limit(size)
    ids = list(db.session.scalars(old))
    if ids:
        db.session.execute(delete(Event).where(Event.id.in_(ids)))
    return len(ids)


def expire_batch(size: int) -> int:
    """End some of the memberships whose last day has come; those of projects have an event."""
    over = select(Membership).where(Membership.expires_at <= clock.today()).order_by(Membership.id).limit(size)
    found = list(db.session.scalars(over))
    for membership in found:
        if membership.project_id is not None:
            project = db.session.get_one(Project, membership.project_id)
            if project.deleting_since is None:
                record(membership.user, Action.EXPIRED, project)
        db.session.delete(membership)
    return len(found)
