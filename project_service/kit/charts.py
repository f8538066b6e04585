"""Small pictures of stacked bars, with the numbers they show; ``templates/_charts.html`` draws them as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT, GAP = 600, 80, 4


@dataclass(frozen=True, slots=True)
class Bar:
    """One level of one column, in the units of the picture."""

    level: Any
    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """The picture, and the numbers it shows: of each column how many of each level. Levels are the worst first."""

    columns: Sequence[tuple[Any, Mapping[Any, int]]]
    levels: Sequence[Any]
    bars: list[Bar]
    bar: float
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def total(self) -> int:
        """How much all columns have."""
        return sum(sum(found.values()) for _, found in self.columns)


def stacked(columns: Sequence[tuple[Any, Mapping[Any, int]]], levels: Sequence[Any]) -> Chart:
    """Draw columns of equal width, each a stack with the first of the levels on top; the highest fills the picture."""
    step = WIDTH / max(len(columns), 1)
    most = max((sum(found.values()) for _, found in columns), default=0)
    bars = []
    for position, (_, found) in enumerate(columns):
        y = float(HEIGHT)
        for level in reversed(levels):
            if count := found.get(level):
                height = count / most * HEIGHT
                y -= height
                bars.append(Bar(level, round(position * step, 2), round(y, 2), round(height, 2)))
    return Chart(columns, levels, bars, round(step - GAP, 2))
