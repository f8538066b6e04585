"""What benchmarks find: figures with what they must and should reach, the table of them, and what it means."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

DATABASES = ("sqlite", "postgresql")
MISSED, MUST, GOAL = "missed", "must", "goal"
HEAD = ("figure", "conditions", "median", "rounds", "must", "goal", "reached", "beside it")


@dataclass(frozen=True)
class Target:
    """What a figure must reach and what it should; ``at_most`` says that less is better."""

    must: float
    goal: float
    unit: str = ""
    at_most: bool = False

    def reached(self, value: float) -> str:
        """How far a value comes."""
        sign = -1 if self.at_most else 1
        if sign * value >= sign * self.goal:
            return GOAL
        return MUST if sign * value >= sign * self.must else MISSED

    def tell(self, bound: float) -> str:
        """One of the two, as the table says it."""
        return f"{'≤' if self.at_most else '≥'} {number(bound)}"


@dataclass(frozen=True)
class Figure:
    """Something measured in each of some rounds; without a target it is only told."""

    name: str
    conditions: str
    rounds: tuple[float, ...]
    target: Target | None = None
    beside: str = ""
    unit: str = ""

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def reached(self) -> str:
        """``goal``, ``must`` or ``missed``; nothing where nothing is asked."""
        return self.target.reached(self.value) if self.target else ""

    def cells(self) -> tuple[str, ...]:
        """A row of the table, as under ``HEAD``."""
        unit = self.target.unit if self.target else self.unit
        spread = f"{number(min(self.rounds))} to {number(max(self.rounds))}" if len(self.rounds) > 1 else ""
        asked = (self.target.tell(self.target.must), self.target.tell(self.target.goal)) if self.target else ("", "")
        value = f"{number(self.value)} {unit}".strip()
        return (self.name, self.conditions, value, spread, *asked, self.reached, self.beside)


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, the seconds of a case in each, and whether small data will do."""

    rounds: int = 5
    seconds: int = 2
    quick: bool = False


FULL, QUICK = Effort(), Effort(rounds=2, seconds=1, quick=True)

Measure = Callable[[str, Effort], list[Figure]]


def number(value: float) -> str:
    """A number with the digits that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(figures: Sequence[Figure]) -> str:
    """All figures, as a table of Markdown that can be read as it is."""
    rows = [HEAD, *(figure.cells() for figure in figures)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    lines = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in rows]
    lines.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return "\n".join(lines)


def conclude(figures: Sequence[Figure]) -> int:
    """Print the table and its sum; the exit status, which is 1 when a must is missed or nothing was measured."""
    print(f"\n{table(figures)}\n", flush=True)
    asked = [figure for figure in figures if figure.target]
    counts = {reached: sum(figure.reached == reached for figure in asked) for reached in (GOAL, MUST, MISSED)}
    print(
        f"{len(asked)} figures: {counts[GOAL]} reach the goal, {counts[MUST]} only the must, {counts[MISSED]} miss it"
    )
    return int(counts[MISSED] > 0 or not asked)


def run(measure: Measure, description: str | None) -> int:
    """A benchmark by itself, from the command line; its exit status."""
    arguments = parser(description)
    options = arguments.parse_args()
    return conclude(measure(options.database, effort_of(options)))


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--database", choices=DATABASES, default=DATABASES[0])
    arguments.add_argument("--rounds", type=int, default=FULL.rounds)
    arguments.add_argument("--seconds", type=int, default=FULL.seconds, help="of a case in each round")
    arguments.add_argument("--quick", action="store_true", help="with little data, for a first look")
    return arguments


def effort_of(options: argparse.Namespace) -> Effort:
    """The effort that was asked for."""
    return Effort(options.rounds, options.seconds, options.quick)
