"""What happens to memberships by itself, once a day."""

from __future__ import annotations

import datetime as dt

from project_service.areas.members import service
from project_service.kit import jobs

AT_ONCE = 200


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("members.jobs.expire_memberships")
def expire_memberships() -> None:
    """End memberships whose last day has come."""
    while True:
        with jobs.step():
            if not service.expire_some(AT_ONCE):
                return
