"""Job: begin silences whose start has come, and end those that have expired (silences reference, section 3)."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import select

from project_service.areas.silences import queries
from project_service.domain.silences import holding
from project_service.domain.silences.models import ACTIVE, EXPIRED, Silence
from project_service.kit import clock, jobs
from project_service.kit.db.session import db

UPDATE_SECONDS = 10


@jobs.periodic(every=dt.timedelta(seconds=UPDATE_SECONDS))
@jobs.job("silences.jobs.update_silences")
def update_silences() -> None:
    """Match the open alerts with silences that begin, and announce what those that end have held back."""
    with jobs.step():
        begun, ending = (list(db.session.scalars(query())) for query in (queries.unbegun, queries.ending_when_resolved))
    for silence_id in begun:
        with jobs.step():
            silence = _locked(silence_id)
            if silence is not None and silence.begun_at is None and silence.state == ACTIVE:
                holding.begun.send(silence)
                silence.begun_at = clock.now()
    for silence_id in ending:
        with jobs.step():
            silence = _locked(silence_id)
            if silence is not None and silence.state == ACTIVE:
                holding.end_when_resolved(silence)
    with jobs.step():
        expired = list(db.session.scalars(queries.unfinished()))
    for silence_id in expired:
        with jobs.step():
            silence = _locked(silence_id)
            if silence is not None and silence.finished_at is None and silence.state == EXPIRED:
                holding.finish(silence)


def _locked(silence_id: int) -> Silence | None:
    statement = select(Silence).where(Silence.id == silence_id).with_for_update()
    return db.session.scalar(statement.execution_options(populate_existing=True))
