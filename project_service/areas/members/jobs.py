"""What happens to memberships by itself, once a day."""

from __future__ import annotations

import datetime as dt

from project_service.areas.members import service
from project_service.kit import jobs


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("members.jobs.expire_memberships")
def expire_memberships() -> None:
    """End memberships whose last day has come."""
    with jobs.step():
        ids = service.expired_ids()
    jobs.for_each(ids, _expire)


def _expire(membership_id: int) -> None:
    with jobs.step():
        service.expire(membership_id)
