"""What an upload consists of before it is stored, and what is answered when it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from project_service.areas.vulnerabilities.formats.detection import TITLES
from project_service.areas.vulnerabilities.tracking.states import COUNTED

Data = dict[str, Any]
GITLAB_FORMATS = "gitlab", "zap"


@dataclass(eq=False, slots=True)
class Part:
    """The findings of one type, scanner and category, which become one stored report.

    ``scanner`` is in the form of the API; ``found`` counts the findings, with those that are dropped later.
    """

    report_type: str
    scanner: Data
    category: str = ""
    scan: Data | None = None
    found: int = 0
    remediations: Iterable[Data] = ()


@dataclass(eq=False, slots=True)
class PartGroup:
    """The parts of one scanner and category, with the entries of its report that are no findings, by reason."""

    scanner: Data
    category: str
    complete: bool
    parts: list[Part] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False, slots=True)
class ReadReport:
    """A report that was read and can be stored.

    ``rows`` takes the id of the project and returns the values of findings (``ingestion.ROW``), each with the index of
    its part.
    """

    format: str
    format_version: str | None
    given_type: str | None
    groups: list[PartGroup]
    rows: Callable[[int], Iterator[tuple[Any, ...]]]
    warnings: list[Data] = field(default_factory=list)
    components: list[Data] = field(default_factory=list)

    @property
    def parts(self) -> list[Part]:
        """The parts of all groups."""
        return [part for group in self.groups for part in group.parts]

    @property
    def is_foreign(self) -> bool:
        """Whether it is in another format than GitLab's."""
        return self.format not in GITLAB_FORMATS


@dataclass(frozen=True, slots=True)
class Ingested:
    """Result of an ingestion: ``merged`` findings are listed in the pipeline, ``dropped`` ones are duplicates.

    ``left`` counts the entries that are no findings; ``suppressed`` the merged ones that the report dismissed.
    ``gate`` is the judgement of the pipeline, if one was asked for.
    """

    pipeline_id: int | None
    format: str
    format_version: str | None
    report_type: str | None
    found: int
    merged: int
    dropped: int
    left: Data
    suppressed: int
    components: int
    tracking: dict[str, int]
    reports: list[Data]
    warnings: list[Data]
    gate: Data | None = None


def ingested(
    upload: ReadReport, pipeline_id: int | None, counts: dict[int, tuple[int, int]], tracking: list[dict[str, int]]
) -> Ingested:
    """Return the answer.

    ``counts`` has the merged and the suppressed findings of each part, by its index; ``tracking`` the counts of each
    group.
    """
    counts_of_parts = dict(
        zip(map(id, upload.parts), (counts[index] for index in range(len(upload.parts))), strict=True)
    )
    reports = [
        {**_report(group, [counts_of_parts[id(part)] for part in group.parts]), "tracking": tracked}
        for group, tracked in zip(upload.groups, tracking, strict=True)
    ]
    left: Counter[str] = Counter()
    for group in upload.groups:
        left.update(group.left)
    types = {part.report_type for part in upload.parts if part.found}
    sums = {name: sum(report[name] for report in reports) for name in ("found", "merged", "dropped", "suppressed")}
    return Ingested(
        pipeline_id=pipeline_id,
        format=upload.format,
        format_version=upload.format_version,
        report_type=upload.given_type or (types.pop() if len(types) == 1 else None),
        left=_left(left),
        components=len(upload.components),
        tracking={name: sum(counts_of_series[name] for counts_of_series in tracking) for name in COUNTED},
        reports=reports,
        warnings=upload.warnings,
        **sums,
    )


def _report(group: PartGroup, counts: list[tuple[int, int]]) -> Data:
    entries = sum(part.found for part in group.parts)
    merged, suppressed = (sum(values) for values in zip(*counts, strict=True)) if counts else (0, 0)
    return {
        "scanner": {name: group.scanner.get(name) for name in ("external_id", "name", "version")},
        "category": group.category,
        "report_types": sorted(part.report_type for part in group.parts),
        "complete": group.complete,
        "found": entries + group.left.total(),
        "merged": merged,
        "dropped": entries - merged,
        "left": _left(group.left),
        "suppressed": suppressed,
    }


def _left(reasons: Counter[str]) -> Data:
    return {"total": reasons.total(), "reasons": dict(reasons)}


def summary(result: Ingested) -> str:
    """Return a sentence about an upload, for pages."""
    names = sorted(
        {report["scanner"]["name"] or report["scanner"]["external_id"] or "" for report in result.reports} - {""}
    )
    of = f" of {', '.join(names)}" if names else ""
    version = f" {result.format_version}" if result.format_version else ""
    if not result.found:
        remarks = "".join(f" {warning['message']}" for warning in result.warnings)
        listed = f" {result.components} components for the list of dependencies." if result.components else ""
        title = TITLES.get(result.format, result.format)
        return f"Recognised as {title}{version}{of}. The report has no findings.{listed}{remarks}"
    counts = [f"{result.found} {'entry' if result.found == 1 else 'entries'} read, {result.merged} listed"]
    if result.dropped:
        counts.append(f"{result.dropped} the same as others")
    if result.left["total"]:
        reasons = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in result.left["reasons"].items())
        counts.append(f"{result.left['total']} left out ({reasons})")
    if result.components:
        counts.append(f"{result.components} components for the list of dependencies")
    title = TITLES.get(result.format, result.format)
    remarks = "".join(f" {warning['message']}" for warning in result.warnings)
    return f"Recognised as {title}{version}{of}: {', '.join(counts)}.{remarks}"
