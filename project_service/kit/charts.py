"""Layout of stacked bar charts, which ``templates/components/charts.html`` renders as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT, GAP = 600, 80, 4
MAX_BAR_WIDTH = 40  # of few columns


@dataclass(frozen=True, slots=True)
class Bar:
    """The rectangle of one level of one column, in SVG units."""

    level: Any
    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and its data: for each column the count of each level. Levels are in order of severity, worst first."""

    columns: Sequence[tuple[Any, Mapping[Any, int]]]
    levels: Sequence[Any]
    bars: list[Bar]
    bar: float
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def total(self) -> int:
        """The sum over all columns."""
        return sum(sum(counts.values()) for _, counts in self.columns)

    @property
    def highest(self) -> int:
        """The sum of the highest column, which has the full height."""
        return max((sum(counts.values()) for _, counts in self.columns), default=0)

    @property
    def shown_levels(self) -> list[Any]:
        """The levels that occur."""
        return [level for level in self.levels if any(counts.get(level) for _, counts in self.columns)]


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A small bar chart without axes as one SVG path, in SVG units. ``highest`` is the position of the highest bar."""

    path: str
    width: int
    height: int
    total: int
    highest: int


def sparkline(counts: Sequence[int], step: int = 4, height: int = 24) -> Sparkline:
    """Lay out one bar per count; the highest has the full height, and no count above 0 is invisible."""
    maximum = max(counts, default=0)
    bars = []
    for position, count in enumerate(counts):
        if count:
            length = max(round(count / maximum * height, 1), 1)
            bars.append(f"M{position * step} {height}v-{length:g}h{step - 1}v{length:g}z")
    highest = max(range(len(counts)), key=counts.__getitem__, default=0)
    return Sparkline("".join(bars), len(counts) * step, height, sum(counts), highest)


def stacked(columns: Sequence[tuple[Any, Mapping[Any, int]]], levels: Sequence[Any]) -> Chart:
    """Lay out columns of equal width, with the first level on top; the highest column has the full height."""
    step = WIDTH / max(len(columns), 1)
    bar = min(step - GAP, MAX_BAR_WIDTH)
    margin = (step - GAP - bar) / 2
    maximum = max((sum(counts.values()) for _, counts in columns), default=0)
    bars = []
    for position, (_, counts) in enumerate(columns):
        y = float(HEIGHT)
        for level in reversed(levels):
            if count := counts.get(level):
                height = count / maximum * HEIGHT
                y -= height
                bars.append(Bar(level, round(position * step + margin, 2), round(y, 2), round(height, 2)))
    return Chart(columns, levels, bars, round(bar, 2))
