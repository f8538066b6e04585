"""The format of a report, found out from its content (scanner formats reference, sections 3 and 11)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from project_service.areas.vulnerabilities.formats import (
    bandit,
    cyclonedx,
    grype,
    npm_audit,
    osv_scanner,
    pip_audit,
    safety,
    shapes,
    trivy,
)
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Entries
from project_service.areas.vulnerabilities.formats.sarif import sarif
from project_service.areas.vulnerabilities.formats.shapes import (
    Data,
    Reading,
    ReportEntry,
    SkippedEntries,
    obj,
    objs,
    text,
)
from project_service.areas.vulnerabilities.report_types import (
    CONTAINER_SCANNING,
    DAST,
    DEPENDENCY_SCANNING,
    REPORT_TYPES,
    SAST,
)

UNKNOWN = "Report format is not recognised"
OF_NONE = "none of GitLab, ZAP, SARIF, CycloneDX, bandit, pip-audit, npm audit, trivy, grype, osv-scanner and safety"
NOTHING_FITS = f"{OF_NONE}; give report_type for a report without entries"
MAX_SHOWN_LENGTH = 50
NO_TYPE = "a GitLab report whose scan.type or category does not tell its type: give report_type"
TITLES = {"gitlab": "GitLab", "zap": "ZAP", "sarif": "SARIF", "cyclonedx": "CycloneDX", "npm-audit": "npm audit"}
PACKAGE_TYPES = DEPENDENCY_SCANNING, CONTAINER_SCANNING
BEGINNING_BYTES = 4096
GITLAB_BEGINNING = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"version"\s*:\s*"[0-9.]+"\s*,\s*"(?:vulnerabilities|schema|scan)"\s*:'
)
CLUSTER_KEYS = {"ClusterName", "SchemaVersion", "ReportID", "CreatedAt", "Trivy", "Results", *trivy.RESOURCES}
PIP_AUDIT_KEYS = {"dependencies", "fixes"}
GITLAB_KEYS = {"version", "schema", "scan", "remediations", "dependency_files", "site", "$schema"}
GRYPE_KEYS = {"matches", "ignoredMatches", "alertsByPackage", "source", "distro", "descriptor"}
OSV_KEYS = {"results", "experimental_config", "license_summary", "image_metadata"}
Reader = Callable[[Any, Reading], Iterator[ReportEntry | SkippedEntries]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name in the API, and the types that a report of it may be given; all if there are none.

    ``version`` returns the version of the format that a document states. GitLab's and ZAP's have no ``reader``.
    """

    name: str
    types: tuple[str, ...] = ()
    version: Callable[[Data], str | None] = lambda _top: None
    reader: Reader | None = None

    @property
    def title(self) -> str:
        """The name in messages."""
        return TITLES.get(self.name, self.name)


def version_at(name: str) -> Callable[[Data], str | None]:
    """Return a function that takes the version of the format from a member of the document."""
    return lambda top: text(top.get(name)) or None


GITLAB = Format("gitlab", version=version_at("version"))
ZAP = Format("zap", (DAST,))
CYCLONEDX = Format("cyclonedx", PACKAGE_TYPES, version_at("specVersion"), cyclonedx.read)
TRIVY = Format("trivy", PACKAGE_TYPES, lambda top: text(obj(top).get("SchemaVersion")) or None, trivy.read)
GRYPE = Format("grype", PACKAGE_TYPES, reader=grype.read)
BANDIT = Format("bandit", (SAST,), reader=bandit.read)
PIP_AUDIT = Format("pip-audit", PACKAGE_TYPES, reader=pip_audit.read)
NPM_AUDIT = Format("npm-audit", (DEPENDENCY_SCANNING,), npm_audit.version_of, npm_audit.read)
SAFETY = Format("safety", (DEPENDENCY_SCANNING,), reader=safety.read)
OSV_SCANNER = Format("osv-scanner", PACKAGE_TYPES, reader=osv_scanner.read)
SARIF = Format("sarif", version=lambda _top: sarif.VERSION, reader=sarif.read)


def format_of(top: Any, report_type: str | None) -> Format:
    """Return the format of a document.

    Raises:
        BrokenReport: it has none that is taken, or one whose reports are not of the type that was given.

    """
    detected = next((report_format for fits, report_format in FORMATS if fits(top)), None)
    if detected is None:
        _refuse_others(top)
        if report_type is None:
            raise BrokenReport(UNKNOWN, NOTHING_FITS)
        _refuse_content_elsewhere(top)
        detected = GITLAB
    if report_type is not None and detected.types and report_type not in detected.types:
        reason = f"{detected.title} reports are {' or '.join(detected.types)}, not {report_type}"
        raise BrokenReport(f"{detected.title} report parsing failed", reason)
    return detected


def _refuse_content_elsewhere(top: Any) -> None:
    """Refuse an object without vulnerabilities that has content under other names: it is of another tool.

    Without content it is a report of GitLab's format in which nothing was found.
    """
    if not isinstance(top, dict) or "vulnerabilities" in top:
        return
    for name, value in top.items():
        if name not in GITLAB_KEYS and (is_list(value) or isinstance(value, dict)) and any(True for _ in value):
            shown_name = shapes.cut(name, MAX_SHOWN_LENGTH)
            raise BrokenReport(UNKNOWN, f"it has {shown_name} and no vulnerabilities: {OF_NONE}")


def begins_as_gitlab_report(file: IO[bytes]) -> bool:
    """Whether the first members of a document are those that GitLab's analyzers begin with, and no other format."""
    file.seek(0)
    return GITLAB_BEGINNING.match(file.read(BEGINNING_BYTES)) is not None


def type_of_gitlab_report(top: Any) -> str:
    """Return the type of a report in GitLab's format that was uploaded without one.

    Raises:
        BrokenReport: its type is not stated.

    """
    named = text(obj(obj(top).get("scan")).get("type"))
    if named in REPORT_TYPES:
        return named
    categories = {text(vulnerability.get("category")) for vulnerability in objs(obj(top).get("vulnerabilities"))}
    only = categories.pop() if len(categories) == 1 else ""
    if only in REPORT_TYPES:
        return only
    raise BrokenReport(UNKNOWN, NO_TYPE, "/scan/type")


def is_list(value: Any) -> bool:
    """Whether a value is a list."""
    return isinstance(value, list | Entries)


def every(value: Any, fits: Callable[[Data], bool]) -> bool:
    """Whether a value is a list of nothing but objects that fit."""
    return is_list(value) and all(isinstance(element, dict) and fits(element) for element in value)


def first_of(value: Any) -> Data:
    """Return the first entry of a list; an empty object if there is none, or if it is something else."""
    return obj(next(iter(value), None)) if is_list(value) else {}


def _is_sarif(top: Any) -> bool:
    return isinstance(top, dict) and "runs" in top and ("version" in top or "sarif" in text(top.get("$schema")))


def _is_trivy(top: Any) -> bool:
    if isinstance(top, dict):
        of_cluster = "ClusterName" in top and top.keys() <= CLUSTER_KEYS
        return ("SchemaVersion" in top and ("Results" in top or "ArtifactName" in top)) or of_cluster
    return bool(first_of(top)) and every(top, lambda result: "Target" in result)


def _is_bandit(top: Any) -> bool:
    return isinstance(top, dict) and is_list(top.get("results")) and {"metrics", "generated_at"} <= top.keys()


def _is_pip_audit(top: Any) -> bool:
    if isinstance(top, dict):
        dependencies = top.get("dependencies")
        if not every(dependencies, lambda dependency: "vulns" in dependency or "skip_reason" in dependency):
            return False
        return bool(first_of(dependencies)) or top.keys() <= PIP_AUDIT_KEYS
    return bool(first_of(top)) and every(
        top, lambda dependency: "name" in dependency and ("vulns" in dependency or "skip_reason" in dependency)
    )


def _is_npm_audit(top: Any) -> bool:
    if not isinstance(top, dict):
        return False
    error = obj(top.get("error"))
    return (
        "auditReportVersion" in top
        or _has_advisories(top)
        or isinstance(top.get("audit"), dict)
        or "code" in error
        or "summary" in error
    )


def _has_advisories(top: Data) -> bool:
    """Whether a document has the advisories of npm 6; composer's are lists by package."""
    advisories = top.get("advisories")
    return isinstance(advisories, dict) and "abandoned" not in top and not any(map(is_list, advisories.values()))


def _is_grype(top: Any) -> bool:
    matches = obj(top).get("matches")
    if not is_list(matches) or text(obj(top.get("descriptor")).get("name")) not in ("", "grype"):
        return False
    if matches is None or next(iter(matches), None) is None:
        return top.keys() <= GRYPE_KEYS or "descriptor" in top
    first = first_of(matches)
    return "vulnerability" in first or "artifact" not in first


def _is_osv_scanner(top: Any) -> bool:
    """Whether a document is of osv-scanner: its entries of packages contain the package, those of others are one."""
    if not isinstance(top, dict) or not every(top.get("results"), lambda result: "packages" in result):
        return False
    if not first_of(top["results"]):
        return top.keys() <= OSV_KEYS
    lists = (result["packages"] for result in top["results"] if is_list(result["packages"]))
    first = next((first_package for packages in lists if (first_package := first_of(packages))), None)
    if first is None:
        return all("source" in result or result.keys() == {"packages"} for result in top["results"])
    return "package" in first


def _is_zap(top: Any) -> bool:
    return isinstance(top, dict) and "site" in top and "vulnerabilities" not in top


def _is_gitlab(top: Any) -> bool:
    named = isinstance(top, dict) and "vulnerabilities" in top
    return named and any(name in top for name in ("version", "scan", "schema"))


FORMATS: tuple[tuple[Callable[[Any], bool], Format], ...] = (
    (_is_sarif, SARIF),
    (lambda top: obj(top).get("bomFormat") == "CycloneDX", CYCLONEDX),
    (_is_trivy, TRIVY),
    (_is_grype, GRYPE),
    (_is_bandit, BANDIT),
    (_is_pip_audit, PIP_AUDIT),
    (_is_npm_audit, NPM_AUDIT),
    (lambda top: "report_meta" in obj(top) and is_list(top.get("vulnerabilities")), SAFETY),
    (_is_osv_scanner, OSV_SCANNER),
    (_is_zap, ZAP),
    (_is_gitlab, GITLAB),
)


def _is_safety_1(top: Any) -> bool:
    first = next(iter(top), None) if is_list(top) else None
    return isinstance(first, list) and len(first) in (5, 7) and isinstance(first[0], str)


def _is_safety_scan(top: Any) -> bool:
    return "scan_results" in obj(top) and "scan_type" in obj(top.get("meta"))


def _is_semgrep(top: Any) -> bool:
    results = obj(top).get("results")
    return is_list(results) and ("check_id" in first_of(results) or ("errors" in top and "paths" in top))


# scanners whose SARIF contains more than their own JSON: how to recognise that, and the option to write SARIF
OTHERS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("semgrep", _is_semgrep, "write SARIF (semgrep scan --sarif)"),
    (
        "ESLint",
        lambda top: {"filePath", "messages"} <= first_of(top).keys(),
        "write SARIF (eslint -f @microsoft/eslint-formatter-sarif)",
    ),
    (
        "ruff",
        lambda top: {"code", "filename"} <= first_of(top).keys(),
        "write SARIF (ruff check --output-format sarif)",
    ),
    (
        "checkov",
        lambda top: "check_type" in obj(top) or "check_type" in first_of(top),
        "write SARIF (checkov --output sarif)",
    ),
    ("gitleaks", lambda top: "RuleID" in first_of(top), "write SARIF (gitleaks --report-format sarif)"),
    ("gosec", lambda top: "Issues" in obj(top) or "GosecVersion" in obj(top), "write SARIF (gosec -fmt sarif)"),
    ("safety 1", _is_safety_1, "write that of safety 2 (safety check --output json)"),
    ("safety 3 (safety scan)", _is_safety_scan, "write that of safety 2 (safety check --output json)"),
    ("SPDX", lambda top: "spdxVersion" in obj(top), "write CycloneDX"),
)


def _refuse_others(top: Any) -> None:
    for name, fits, advice in OTHERS:
        if fits(top):
            form = "SPDX" if name == "SPDX" else f"{name}'s own JSON"
            raise BrokenReport(UNKNOWN, f"this is {form}: {advice}")
