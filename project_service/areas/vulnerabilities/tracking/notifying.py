"""Events of new findings that people and channels are notified of (notifications reference, section 1)."""

from __future__ import annotations

from collections import Counter

from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.models import Pipeline
from project_service.areas.vulnerabilities.tracking.matching import Sighting
from project_service.domain.notifications import events
from project_service.domain.notifications.events import EventFields
from project_service.domain.notifications.models import NEW_FINDING
from project_service.kit.http import urls

MAX_LISTED = 10
WORST = max(FindingSeverity)


def record(pipeline: Pipeline, scanner: str, new: list[Sighting]) -> None:
    """Record what a report of the default branch has found first, as one event with the worst findings."""
    if not new or not events.is_listened_to(pipeline.project_id):
        return
    worst = sorted(new, key=lambda sighting: sighting.severity_order)[:MAX_LISTED]
    counts = Counter(_severity(sighting) for sighting in new)
    path = f"/{pipeline.project.full_path}/-/security/dashboard"
    snapshot = {
        "id": pipeline.id,
        "title": worst[0].name,
        "count": len(new),
        "counts": dict(counts),
        "scanner": scanner,
        "branch": pipeline.ref,
        "commit": pipeline.sha,
        "worst": [{"title": sighting.name, "severity": _severity(sighting), "scanner": scanner} for sighting in worst],
        "url": urls.absolute(f"{path}?pipeline_id={pipeline.id}"),
    }
    events.record(pipeline.project_id, [EventFields(NEW_FINDING, pipeline.id, _severity(worst[0]), None, snapshot)])


def _severity(sighting: Sighting) -> str:
    return FindingSeverity(WORST - sighting.severity_order).text
