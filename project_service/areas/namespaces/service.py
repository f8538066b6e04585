"""Count the seats of groups with a plan."""

from __future__ import annotations

from sqlalchemy import select

from project_service.areas.namespaces import queries
from project_service.domain.namespaces import FREE_PLANS, Group
from project_service.kit.db.session import db


def count_seats(group_ids: list[int]) -> None:
    """Recount the seats of these groups; free plans use none."""
    groups = list(db.session.scalars(select(Group).where(Group.id.in_(group_ids))))
    billable = queries.billable_members(list(groups))
    for group in groups:
        group.seats_in_use = 0 if group.plan in FREE_PLANS else billable.get(group.id, 0)
        group.max_seats_used = max(group.max_seats_used, group.seats_in_use)
