"""All benchmarks: ``python -m benchmarks``; ``--quick`` in a few minutes, ``--data`` only makes the data."""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks import events

DATABASES = ("sqlite", "postgresql")
ROWS = 1_000_000


def main() -> None:
    """Run each benchmark in a process of its own; the exit status is that of the first that fails."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--data", action="store_true")
    options = arguments.parse_args()
    if options.data:
        events.application("sqlite", ROWS)
        return
    groups = ["--groups", "500", "--seen", "50", "--requests", "60"] if options.quick else []
    _run("namespaces", *groups)
    for database in DATABASES[:1] if options.quick else DATABASES:
        _run("alerts", "--database", database, *(["--stored", "0", "--rounds", "3"] if options.quick else []))
        _run("alert_list", "--database", database)
        _run("findings", "--database", database)
        _run("events", "--rows", str(ROWS), "--database", database)


def _run(name: str, *options: str) -> None:
    print(f"== {name} {' '.join(options)}", flush=True)
    finished = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], check=False)
    if finished.returncode:
        sys.exit(finished.returncode)


main()
