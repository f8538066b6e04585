"""What happens to events by itself, once a day."""

from __future__ import annotations

import datetime as dt

from project_service.areas.activity import service
from project_service.kit import jobs

DAY = dt.timedelta(days=1)
PRUNED_AT_ONCE = 1000


@jobs.periodic(every=DAY, first=DAY)
@jobs.job("activity.jobs.prune_events")
def prune_events() -> None:
    """Remove events older than two years, in batches that let writers through."""
    while True:
        with jobs.step():
            if not service.prune_batch(PRUNED_AT_ONCE):
                return
