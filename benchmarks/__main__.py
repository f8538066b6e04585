"""All benchmarks, each in a process of its own, and one table of all figures at the end.

``python -m benchmarks``; ``--quick`` the most important ones, on SQLite; ``--all`` also those that nothing was
promised of. The exit status is 1 when a figure misses what it must reach.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from benchmarks import alert_list, alerts, data, events, findings, lists, namespaces, startup, transfers
from benchmarks.cache import CLUSTER
from benchmarks.figures import DATABASES, FULL, QUICK, Figure, conclude
from tests.support.databases import postgres_server

IMPORTANT = (lists, alerts, events)
PROMISED = (*IMPORTANT, transfers, startup)
OTHERS = (alert_list, findings, namespaces)


def main() -> int:
    """Run what was asked for, one after the other."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--all", action="store_true")
    arguments.add_argument("--database", choices=DATABASES, action="append", help="only on this one")
    options = arguments.parse_args()
    effort = QUICK if options.quick else FULL
    modules = IMPORTANT if options.quick else (*PROMISED, *(OTHERS if options.all else ()))
    databases = options.database or (DATABASES[:1] if options.quick else DATABASES)
    if "postgresql" in databases:
        postgres_server(CLUSTER)  # for all processes that come
    data.make(databases, effort)
    figures: list[Figure] = []
    began = time.monotonic()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn, max_tasks_per_child=1) as processes:
        for database in databases:
            for module in modules:
                print(f"{time.monotonic() - began:4.0f} s  {module.__name__} on {database}", flush=True)
                figures += processes.submit(module.measure, database, effort).result()
    print(f"{time.monotonic() - began:4.0f} s  done")
    return conclude(figures)


if __name__ == "__main__":
    sys.exit(main())
