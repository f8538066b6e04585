"""Seats of groups with a plan, counted once a day."""

from __future__ import annotations

from sqlalchemy import select

from project_service.core.namespaces import FREE_PLANS, Group
from project_service.kit.database import db
from project_service.namespaces import queries


def count_seats(group_ids: list[int]) -> None:
    """Count the seats of these groups anew; free plans use none."""
    groups = list(db.session.scalars(select(Group).where(Group.id.in_(group_ids))))
    billable = queries.billable_members(list(groups))
    for group in groups:
        group.seats_in_use = 0 if group.plan in FREE_PLANS else billable.get(group.id, 0)
        group.max_seats_used = max(group.max_seats_used, group.seats_in_use)
