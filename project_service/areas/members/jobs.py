"""Daily removal of expired memberships and invitations."""

from __future__ import annotations

import datetime as dt

from project_service.areas.members import invitations, service
from project_service.kit import jobs


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("members.jobs.expire_memberships")
def expire_memberships() -> None:
    """Delete expired memberships, each in its own transaction."""
    with jobs.step():
        ids = service.expired_ids()
    jobs.for_each(ids, _expire)


def _expire(membership_id: int) -> None:
    with jobs.step():
        service.expire(membership_id)


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("members.jobs.prune_invitations")
def prune_invitations() -> None:
    """Delete invitations whose links have expired."""
    invitations.prune()
