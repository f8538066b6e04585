"""Open findings of a branch by day: what is recorded at each change, and the chart of it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator

from sqlalchemy import func, select

from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.models import OpenFindingDay, TrackedFindingState
from project_service.areas.vulnerabilities.tracking.sightings import WORST
from project_service.areas.vulnerabilities.tracking.states import DETECTED
from project_service.kit import clock
from project_service.kit.charts import Chart, stacked
from project_service.kit.db.session import db, insert

MAX_DAYS = 30
WORST_FIRST = sorted(FindingSeverity, reverse=True)


def record(project_id: int, branches: Iterable[str]) -> None:
    """Store how many findings of branches are open today, in the transaction that has changed them."""
    key = ["project_id", "ref", "day", "severity_order"]
    rows = [
        {"project_id": project_id, "ref": ref, "day": clock.today(), "severity_order": order, "open": count}
        for ref in branches
        for order, count in _open_findings(project_id, ref).items()
    ]
    if rows:
        statement = insert(OpenFindingDay).values(rows)
        update = {"open": statement.excluded.open}
        db.session.execute(statement.on_conflict_do_update(index_elements=key, set_=update))


def open_by_day(project_id: int, branch: str) -> Chart:
    """Return a chart of the open findings of the last days; a day without a change is like the one before."""
    today = clock.today()
    first = today - dt.timedelta(days=MAX_DAYS - 1)
    of_branch = OpenFindingDay.project_id == project_id, OpenFindingDay.ref == branch
    before = select(func.max(OpenFindingDay.day)).where(*of_branch, OpenFindingDay.day < first).scalar_subquery()
    columns = OpenFindingDay.day, OpenFindingDay.severity_order, OpenFindingDay.open
    rows = db.session.execute(
        select(*columns).where(*of_branch, OpenFindingDay.day >= func.coalesce(before, first)).order_by(*columns[:1])
    )
    recorded: dict[dt.date, Counter[FindingSeverity]] = {}
    for day, order, count in rows:
        recorded.setdefault(max(day, first), Counter())[FindingSeverity(WORST - order)] = count
    return stacked(list(_every_day(recorded, today)), WORST_FIRST)


def _every_day(
    recorded: dict[dt.date, Counter[FindingSeverity]], today: dt.date
) -> Iterator[tuple[dt.date, Counter[FindingSeverity]]]:
    if not recorded:
        return
    day = min(recorded)
    counts: Counter[FindingSeverity] = Counter()
    while day <= today:
        counts = recorded.get(day, counts)
        yield day, counts
        day += dt.timedelta(days=1)


def _open_findings(project_id: int, ref: str) -> Counter[int]:
    """Count the detected findings that are not dismissed, by the order of their severity."""
    state = TrackedFindingState
    is_open = state.project_id == project_id, state.ref == ref, state.state == DETECTED, state.dismissed.is_(False)
    counted = select(state.severity_order, func.count()).where(*is_open).group_by(state.severity_order)
    counts = Counter({WORST - severity: 0 for severity in FindingSeverity})
    for order, count in db.session.execute(counted):
        counts[order] = count
    return counts
