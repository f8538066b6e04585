"""Plans and seats of groups: set by administrators, counted once a day."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import select

from project_service.core.namespaces import FREE_PLANS, Group
from project_service.kit.database import db
from project_service.namespaces import queries


def set_plan(
    group: Group, plan: str | None, *, trial_ends_on: dt.date | None = None, trial: bool | None = None
) -> Group:
    """Give a group a plan, or take it away with ``None``."""
    group.plan = plan
    group.trial_ends_on = trial_ends_on
    group.trial = trial_ends_on is not None if trial is None else trial
    if plan is None:
        group.seats_in_use = group.max_seats_used = 0
    return group


def count_seats(group_ids: list[int]) -> None:
    """Count the seats of these groups anew; free plans use none."""
    groups = list(db.session.scalars(select(Group).where(Group.id.in_(group_ids))))
    billable = queries.billable_members(list(groups))
    for group in groups:
        group.seats_in_use = 0 if group.plan in FREE_PLANS else billable.get(group.id, 0)
        group.max_seats_used = max(group.max_seats_used, group.seats_in_use)
