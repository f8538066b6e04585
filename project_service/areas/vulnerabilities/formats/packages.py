"""Findings about packages, as the formats of dependency scanners have them in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.shapes import (
    MAX_PATH_LENGTH,
    BrokenEntry,
    Data,
    ReportEntry,
    ScannerSection,
)
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity

PURL = "pkg:"
WITHOUT_NAMESPACE = ("deb", "apk", "rpm")  # theirs is the distribution
PACKAGE_MANAGERS = {"pypi": "pip", "golang": "go", "gem": "bundler"}
UNKNOWN_MANAGER = "unknown"


@dataclass(frozen=True, slots=True)
class Package:
    """A package; ``name`` as in its ecosystem, and the known parts of its place."""

    name: str
    version: str = ""
    file: str = ""
    image: str = ""
    system: str = ""
    manager: str = UNKNOWN_MANAGER
    resource: Data | None = None  # of a cluster


def package_entry(
    section: ScannerSection,
    report_type: str,
    package: Package,
    identifiers: list[Data],
    severity: FindingSeverity,
    *,
    texts: Iterable[str] = (),
    solution: str | None = None,
    urls: Iterable[tuple[str, str]] = (),
    suppression: Data | None = None,
) -> ReportEntry:
    """Return a finding about a package.

    Raises:
        BrokenEntry: a part is too long.

    """
    if any(len(part) > MAX_PATH_LENGTH for part in (package.name, package.version, package.file, package.image)):
        raise BrokenEntry
    location = identifying.package_location(
        package.name, package.version, file=package.file, image=package.image, system=package.system
    )
    if package.resource:
        location["kubernetes_resource"] = package.resource
    name = shapes.cut(identifying.package_title(identifiers, package.name, package.version), shapes.MAX_NAME_LENGTH)
    data = shapes.finding_data(
        scanner=section.scanner,
        name=name,
        identifiers=identifiers[: identifying.MAX_IDENTIFIERS],
        location=location,
        described=shapes.description(name, "", *texts),
        solution=solution,
        urls=shapes.links(urls),
    )
    key = identifying.package_key(report_type, location, identifiers[0])
    return ReportEntry(section, report_type, severity, Confidence.UNKNOWN, key, data, suppression)


def upgrade(package: str, versions: list[str]) -> str | None:
    """Return the solution that names the versions without a vulnerability."""
    return f"Upgrade {package} to {' or '.join(versions)}." if versions else None


def dismissal(reason: str, justification: str) -> Data:
    """Return the dismissal of a finding by its report."""
    return {
        "kind": "external",
        "status": "accepted",
        "justification": shapes.cut(justification, shapes.MAX_DESCRIPTION_LENGTH) or None,
        "dismissal_reason": reason,
    }


def package_of_purl(purl: str) -> Package | None:
    """Return the package of a package URL; ``None`` if it is none."""
    if not purl.startswith(PURL):
        return None
    path = purl[len(PURL) :].partition("#")[0].partition("?")[0].strip("/")
    kind, _, path = path.partition("/")
    namespace, _, last = path.rpartition("/")
    name, _, version = last.partition("@")
    if not kind or not name:
        return None
    kind = kind.lower()
    name = unquote(name)
    if namespace and kind not in WITHOUT_NAMESPACE:
        name = f"{unquote(namespace)}/{name}"
    return Package(name, unquote(version), manager=PACKAGE_MANAGERS.get(kind, kind))


def pointer_part(name: Any) -> str:
    """Return a member's name as a part of a JSON pointer."""
    return str(name).replace("~", "~0").replace("/", "~1")
