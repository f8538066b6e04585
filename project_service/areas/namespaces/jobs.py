"""Daily count of the seats of groups."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import select

from project_service.areas.namespaces import service
from project_service.domain.namespaces import Group
from project_service.kit import jobs
from project_service.kit.db.session import db

GROUP_BATCH_SIZE = 100


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("namespaces.jobs.refresh_seats")
def refresh_seats() -> None:
    """Count the seats of every group with a plan, once a day."""
    last = 0
    while True:
        with jobs.step():
            batch = (
                select(Group.id)
                .where(Group.plan.is_not(None), Group.id > last)
                .order_by(Group.id)
                .limit(GROUP_BATCH_SIZE)
            )
            ids = list(db.session.scalars(batch))
            service.count_seats(ids)
        if not ids:
            return
        last = ids[-1]
