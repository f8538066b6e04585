"""What tracking compares of a finding that is being stored."""

from __future__ import annotations

import hashlib
from typing import Any

from project_service.areas.vulnerabilities.formats import identifying
from project_service.areas.vulnerabilities.formats.shapes import line_number, obj, objs, text
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.locations import image_without_tag, place_of, resource_of
from project_service.areas.vulnerabilities.report_types import CONTAINER_SCANNING, COVERAGE_FUZZING
from project_service.areas.vulnerabilities.severity_order import FindingRank
from project_service.areas.vulnerabilities.tracking.matching import Sighting

MAX_NAME_LENGTH = 255
MAX_VERSION_LENGTH = 1_024
MAX_MARKS = 20
WORST = max(FindingSeverity)


def sighting_of(sort: int, key: str, data: dict[str, Any], marks: tuple[str, ...]) -> Sighting:
    """Return what is compared; ``key`` is the uuid in GitLab's format, else the project fingerprint."""
    rank, location = FindingRank.of(sort), data["location"]
    dependency = obj(location.get("dependency"))
    package = text(obj(dependency.get("package")).get("name"))
    first = obj(next(iter(data["identifiers"]), None))
    parts = (rank.report_type, _place(rank.report_type, location, package))
    group = "\0".join((*parts, text(first.get("external_type")), text(first.get("external_id"))))
    start = line_number(location.get("start_line"))
    return Sighting(
        report_type=rank.report_type,
        key=key,
        group=_digest(group),
        marks=marks[:MAX_MARKS],
        name=text(data["name"])[:MAX_NAME_LENGTH],
        start=start,
        end=line_number(location.get("end_line")) if start is not None else None,
        version=text(dependency.get("version"))[:MAX_VERSION_LENGTH] or None,
        severity_order=WORST - rank.severity,
        is_package=bool(package),
    )


def signatures_of(vulnerability: dict[str, Any]) -> tuple[str, ...]:
    """Return the marks of an entry in GitLab's format: the signatures of its tracking."""
    items = obj(vulnerability.get("tracking")).get("items")
    lists = (item.get("signatures") for item in objs(items if isinstance(items, list) else ()))
    signatures = (signature for some in lists for signature in objs(some if isinstance(some, list) else ()))
    values = ((text(signature.get("algorithm")), text(signature.get("value"))) for signature in signatures)
    return tuple(identifying.mark(f"signature:{name}", value) for name, value in values if value)


def _place(report_type: str, location: dict[str, Any], package: str) -> str:
    if package:
        image = text(location.get("image")) if report_type == CONTAINER_SCANNING else ""
        return f"{resource_of(location)}{image_without_tag(image) if image else text(location.get('file'))}:{package}"
    if report_type == COVERAGE_FUZZING:
        return place_of(report_type, location)
    parts = (text(location.get(name)) for name in ("file", "path", "param"))
    return resource_of(location) + ":".join(parts)


def _digest(value: str) -> str:
    return hashlib.sha1(value.encode(), usedforsecurity=False).hexdigest()
