"""All benchmarks: ``python -m benchmarks``; ``--quick`` in a few minutes, ``--data`` only makes the data."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass

from benchmarks import events

DATABASES = ("sqlite", "postgresql")
ROWS = 1_000_000
MISSED = re.compile(r"missed$|(below|above) the goal|TOO SLOW", re.IGNORECASE)


@dataclass(frozen=True)
class Result:
    """Whether a benchmark reached all its goals."""

    name: str
    met: bool


def main() -> None:
    """Run each benchmark in a process of its own, show what was met; the exit status is 1 when something was not."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--data", action="store_true")
    options = arguments.parse_args()
    if options.data:
        events.application("sqlite", ROWS)
        return
    rounds = ["--rounds", "2", "--seconds", "1"] if options.quick else []
    groups = ["--groups", "500", "--seen", "50", "--requests", "60"] if options.quick else []
    results = [_run("namespaces", *groups)]
    for database in DATABASES[:1] if options.quick else DATABASES:
        on = ("--database", database)
        results.append(_run("lists", *on, *rounds))
        results.append(_run("alerts", *on, *(["--stored", "0", "--rounds", "3"] if options.quick else [])))
        results.append(_run("alert_list", *on))
        results.append(_run("findings", *on))
        results.append(_run("events", "--rows", str(ROWS), *on))
    print(f"\n{'benchmark':<60}{'goals':>8}")
    for result in results:
        print(f"{result.name:<60}{'met' if result.met else 'missed':>8}")
    sys.exit(any(not result.met for result in results))


def _run(name: str, *options: str) -> Result:
    """Run one, showing what it tells; it missed a goal when it says so or fails."""
    title = " ".join((name, *options))
    print(f"== {title}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    met = True
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            met = met and MISSED.search(line) is None
    return Result(title, met and process.returncode == 0)


main()
