"""Acknowledging and resolving of alerts by a link in a message (acknowledging reference, section 1)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import joinedload

from project_service.areas.alerts.alerts import service
from project_service.areas.alerts.effects.incidents import note
from project_service.areas.alerts.models import TARGET, Alert, Status
from project_service.areas.alerts.queries import OPEN
from project_service.domain.accounts.users import User
from project_service.domain.alerts.alert_actions import Acknowledged, Acknowledgement
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db

STATUS_NOTE = "changed the status to **"


def on_acknowledgement(request: Acknowledgement) -> Acknowledged:
    """Acknowledge those alerts of a message that are still triggered, or resolve those that are open."""
    former, status = ((Status.TRIGGERED,), Status.ACKNOWLEDGED) if not request.resolves else (OPEN, Status.RESOLVED)
    changeable = select(Alert).where(Alert.id.in_(list(request.alert_ids)), Alert.status.in_(former))
    changeable = changeable.options(joinedload(Alert.project)).order_by(Alert.id)
    alerts = db.session.scalars(changeable.with_for_update(of=Alert)).all()
    for alert in alerts:
        service.change_status(request.author, alert, status)
        if request.note is not None:
            note(request.author, alert, request.note)
    return Acknowledged(len(alerts), None if alerts else _last_changed_by(request.alert_ids))


def on_question(alert_ids: Sequence[int], *, acknowledged: bool) -> set[int]:
    """Return which of some alerts are triggered or, if these count, acknowledged."""
    statuses = OPEN if acknowledged else (Status.TRIGGERED,)
    return set(db.session.scalars(select(Alert.id).where(Alert.id.in_(list(alert_ids)), Alert.status.in_(statuses))))


def _last_changed_by(alert_ids: Sequence[int]) -> str | None:
    changes = (
        select(User.username)
        .join(Note, Note.author_id == User.id)
        .where(
            Note.noteable_type == TARGET,
            Note.noteable_id.in_(list(alert_ids)),
            Note.system.is_(True),
            Note.body.startswith(STATUS_NOTE, autoescape=True),
        )
    )
    return db.session.scalar(changes.order_by(Note.id.desc()).limit(1))
