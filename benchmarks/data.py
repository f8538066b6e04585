"""Makes what is missing of the data that benchmarks keep under ``.cache/bench``: ``python -m benchmarks.data``."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import alerts, events, transfers
from benchmarks.cache import CACHE
from benchmarks.figures import DATABASES, FULL, QUICK, Effort


def make(databases: Sequence[str], effort: Effort) -> None:
    """All that an effort measures with."""
    for database in databases:
        for stored in (0, alerts.STORED):
            alerts.make_data(database, stored)
        for size in (events.SMALL, events.rows_of(effort)):
            events.make_data(database, size)
    if not effort.quick:
        for issues in (transfers.SMALL, transfers.LARGE):
            transfers.archive_of(issues)
        transfers.archive_of(transfers.LARGE, with_bundle=True)


def main() -> None:
    """Make everything."""
    make(DATABASES[:1], QUICK)
    make(DATABASES, FULL)
    size = sum(path.lstat().st_blocks * 512 for path in CACHE.rglob("*"))
    print(f"{size / (1 << 30):.1f} GiB are kept in {CACHE}")


if __name__ == "__main__":
    main()
