"""Daily removal of old events."""

from __future__ import annotations

import datetime as dt

from project_service.areas.activity import service
from project_service.kit import jobs

DAY = dt.timedelta(days=1)
PRUNE_BATCH_SIZE = 1000


@jobs.periodic(every=DAY, first=DAY)
@jobs.job("activity.jobs.prune_events")
def prune_events() -> None:
    """Remove events older than two years, in batches so that other writers are not blocked for long."""
    while True:
        with jobs.step():
            if not service.prune_batch(PRUNE_BATCH_SIZE):
                return
