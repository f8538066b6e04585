"""Matching of the findings of a report with tracked ones, best matches first (scanner formats reference, section 13).

A finding and a tracked one match at most once. Each round is a dictionary, so that the work grows with the number of
findings, not with its square.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from project_service.areas.vulnerabilities.tracking.states import TrackingState


@dataclass(slots=True)
class Sighting:
    """A finding of a report, as far as it is compared.

    ``key`` identifies it exactly; ``group`` is its type, file or package and primary identifier; ``marks`` are digests
    of what its scanner or its code says about it.
    """

    report_type: str
    key: str
    group: str
    marks: tuple[str, ...]
    name: str
    start: int | None
    end: int | None
    version: str | None
    severity_order: int
    is_package: bool
    finding_id: int = 0
    is_kept: bool = True


@dataclass(slots=True)
class Candidate:
    """A tracked finding of the series, with its states on the branch and on the default branch."""

    id: int
    report_type: str
    key: str
    group: str
    marks: tuple[str, ...]
    name: str
    start: int | None
    end: int | None
    version: str | None
    own_state: TrackingState | None
    default_state: TrackingState | None
    state: TrackingState | None
    is_seen: bool  # by another report of the pipeline
    reappearances: int

    @property
    def priority(self) -> tuple[int, int]:
        """Those of the branch are before those of the default branch, these before others."""
        rank = 0 if self.own_state is not None else 1 if self.default_state is not None else 2
        return rank, self.id


Pair = tuple[Sighting, Candidate]


def match_by_key(sightings: Iterable[Sighting], candidates: Iterable[Candidate], used: set[int]) -> Iterator[Pair]:
    """Match findings of the same type and key (round 1)."""
    yield from _match(sightings, _free(candidates, used), used, lambda finding: [(finding.report_type, finding.key)])


def match_group(sightings: list[Sighting], candidates: Iterable[Candidate], used: set[int]) -> Iterator[Pair]:
    """Match the remaining findings of one group in rounds 2 to 5."""
    free = [candidate for candidate in _free(candidates, used) if not candidate.is_seen]
    open_ = [candidate for candidate in free if candidate.state is not TrackingState.RESOLVED]
    matched: set[int] = set()

    def one_round(
        choices: list[Candidate], keys: Callable[[Sighting | Candidate], Iterable[Hashable]]
    ) -> Iterator[Pair]:
        rest = [sighting for sighting in sightings if id(sighting) not in matched]
        for pair in _match(rest, choices, used, keys):
            matched.add(id(pair[0]))
            yield pair

    yield from one_round(free, lambda finding: finding.marks)
    yield from one_round(open_, lambda finding: () if finding.start is None else (finding.start,))
    for is_package in (True, False):
        rest = [sighting for sighting in sightings if id(sighting) not in matched and sighting.is_package is is_package]
        left = [candidate for candidate in open_ if candidate.id not in used]
        pairs = (
            _in_order(rest, left, lambda finding: finding.version or "") if is_package else _without_marks(rest, left)
        )
        for sighting, candidate in pairs:
            used.add(candidate.id)
            matched.add(id(sighting))
            yield sighting, candidate


def _without_marks(sightings: list[Sighting], candidates: list[Candidate]) -> Iterator[Pair]:
    """Match those without fingerprint, line hash and snippet on both sides, of each name in the order of lines."""
    named: dict[str, tuple[list[Sighting], list[Candidate]]] = defaultdict(lambda: ([], []))
    for sighting in sightings:
        if not sighting.marks:
            named[sighting.name][0].append(sighting)
    for candidate in candidates:
        if not candidate.marks:
            named[candidate.name][1].append(candidate)
    for some, others in named.values():
        yield from _in_order(some, others, lambda finding: finding.start or 0)


def _in_order(
    sightings: list[Sighting], candidates: list[Candidate], order: Callable[[Sighting | Candidate], int | str]
) -> Iterator[Pair]:
    best = sorted(candidates, key=lambda candidate: candidate.priority)[: len(sightings)]
    return zip(sorted(sightings, key=order), sorted(best, key=order), strict=False)


def _match(
    sightings: Iterable[Sighting],
    candidates: Iterable[Candidate],
    used: set[int],
    keys: Callable[[Sighting | Candidate], Iterable[Hashable]],
) -> Iterator[Pair]:
    candidates_by_key: dict[Hashable, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda choice: choice.priority, reverse=True):
        for key in keys(candidate):
            candidates_by_key[key].append(candidate)
    for sighting in sightings:
        for key in keys(sighting):
            choices = candidates_by_key.get(key, [])
            while choices and choices[-1].id in used:
                choices.pop()
            if choices:
                candidate = choices.pop()
                used.add(candidate.id)
                yield sighting, candidate
                break


def _free(candidates: Iterable[Candidate], used: set[int]) -> list[Candidate]:
    return [candidate for candidate in candidates if candidate.id not in used]
