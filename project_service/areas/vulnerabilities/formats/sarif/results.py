"""Results of a SARIF run, as findings (scanner formats reference, section 5)."""

from __future__ import annotations

import re
from functools import cached_property
from urllib.parse import urlsplit

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.grading import confidence_word, severity_word
from project_service.areas.vulnerabilities.formats.paths import BrokenPath
from project_service.areas.vulnerabilities.formats.sarif import texts as sarif_texts
from project_service.areas.vulnerabilities.formats.sarif.own_results import own_result
from project_service.areas.vulnerabilities.formats.sarif.rules import LEVELS, Rule, confidence_of_tags, severities_of
from project_service.areas.vulnerabilities.formats.sarif.runs import TYPES_OF_SCANNERS, Run
from project_service.areas.vulnerabilities.formats.shapes import BrokenEntry, Data, ReportEntry, obj, objs, text, texts
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity
from project_service.areas.vulnerabilities.models import DISMISSAL_REASONS
from project_service.areas.vulnerabilities.report_types import (
    CONTAINER_SCANNING,
    DAST,
    DEPENDENCY_SCANNING,
    REPORT_TYPES,
    SAST,
    SECRET_DETECTION,
)

OPEN_KINDS = ("review", "open")
NOT_SETTLED = ("underReview", "rejected")
TYPES_OF_RULES = {  # trivy's
    "OsPackageVulnerability": CONTAINER_SCANNING,
    "LanguageSpecificPackageVulnerability": DEPENDENCY_SCANNING,
    "Misconfiguration": SAST,
    "Secret": SECRET_DETECTION,
}
MAX_REMEMBERED = 10_000
SYSTEM_PACKAGES = ("apk", "deb", "rpm")
FALSE_POSITIVE = re.compile(r"false[ -]positive", re.IGNORECASE)


class Result:
    """One result: what its entries have in common."""

    def __init__(self, run: Run, result: Data, rule_id: str, rule: Rule, pointer: str) -> None:
        self.run, self.result, self.rule_id, self.rule, self.pointer = run, result, rule_id, rule, pointer
        self.properties = obj(result.get("properties"))
        self.own = own_result(result)
        self.tags = texts(self.properties.get("tags")) if self.properties else []
        related = result.get("relatedLocations")
        self.related = related if isinstance(related, list) else []
        plain, marked = sarif_texts.message_of(obj(result.get("message")), rule.messages, run.rules.messages)
        if not plain.strip():
            plain = next(
                (candidate for candidate in (rule.summary, rule.full, rule.name, rule_id) if candidate.strip()), ""
            )
        places = self._places() if "](" in plain or "](" in marked else {}
        self.message, described = sarif_texts.without_links(plain, places)
        self.description = sarif_texts.without_links(marked, places)[1] if marked else described
        self.package = self._package()
        self.report_type, self.image = self._type()
        self.identifiers = self._identifiers()

    def entry(self, location: Data) -> ReportEntry:
        """Return the finding at one location."""
        physical = obj(location.get("physicalLocation"))
        finding_location = self._place(location, physical)
        region = obj(physical.get("region"))
        snippet = text(obj(region.get("snippet")).get("text"))
        key = (self.own.key if self.own else "") or identifying.key_of(
            self.report_type,
            finding_location,
            self.identifiers[0],
            message=self.message,
            snippet=snippet,
            fingerprints=self.result.get("fingerprints"),
            partial=self.result.get("partialFingerprints"),
        )
        title = self.title
        if "dependency" in finding_location and self.package and not self.own:
            title = identifying.package_title(self.identifiers, self.package[0], self.package[1])
        code = ""
        if self.report_type != SECRET_DETECTION:
            code = snippet or text(obj(obj(physical.get("contextRegion")).get("snippet")).get("text"))
        rule = self.rule
        texts_of_rule = () if self.own else (rule.full or rule.summary, rule.help)
        data = shapes.finding_data(
            scanner=self.run.scanner,
            name=shapes.cut(title, shapes.MAX_NAME_LENGTH),
            identifiers=self.identifiers,
            location=finding_location,
            described=shapes.description(title, self.description, *texts_of_rule, code=code),
            solution=self.solution,
            urls=shapes.links(((rule.url or "", ""), (text(self.result.get("hostedViewerUri")), ""))),
            details=self.details,
        )
        marks = identifying.marks_of(snippet, self.result.get("fingerprints"), self.result.get("partialFingerprints"))
        if "dependency" in finding_location:
            marks = ()
        elif self.own:
            marks = self.own.marks
        return ReportEntry(self.run.section, self.report_type, *self.levels, key, data, self.suppression, marks)

    @cached_property
    def title(self) -> str:
        """Return the name, the same at every location; an advisory that the rule or the message names comes first."""
        if self.own:
            return shapes.title(self.message)
        title = shapes.title(sarif_texts.summary_of(self.message, self.rule.summary))
        named = identifying.advisory_in(self.rule_id) or identifying.advisory_in(title)
        if not named or title.upper().startswith((named.upper(), f"[{named.upper()}]")):
            return title
        return shapes.cut(f"{named}: {title}", shapes.MAX_NAME_LENGTH)

    def _place(self, location: Data, physical: Data) -> Data:
        finding_location = self._place_in_document(location, self.run.place(physical, self.pointer))
        if self.own is None:
            return finding_location
        if self.own.key and "endLine" not in obj(physical.get("region")):
            finding_location.pop("end_line", None)  # its report told the first line only
        return finding_location | self.own.location

    def _place_in_document(self, location: Data, place: Data) -> Data:
        if self.report_type == DAST:
            return self._on_site(place)
        if self.package:
            name, version, _ = self.package
            if max(len(name), len(version)) > shapes.MAX_PATH_LENGTH:
                raise BrokenEntry
            file = place.get("file", "")
            return identifying.package_location(name, version, file=file, image=self.image)
        if self.image and self.report_type == CONTAINER_SCANNING:
            place["image"] = self.image
        method = self._method(location)
        if method:
            place["method"] = method
        return place

    def _method(self, location: Data) -> str:
        logical = location.get("logicalLocations")
        first = obj(logical[0]) if isinstance(logical, list) and logical else {}
        index, logical_locations = shapes.whole(first.get("index")), self.run.run.get("logicalLocations")
        if index is not None and isinstance(logical_locations, list) and 0 <= index < len(logical_locations):
            first = {**obj(logical_locations[index]), **first}
        return shapes.cut(text(first.get("fullyQualifiedName")) or text(first.get("name")), shapes.MAX_PATH_LENGTH)

    def _on_site(self, place: Data) -> Data:
        request = obj(self.result.get("webRequest"))
        target = text(request.get("target"))
        if not target and shapes.is_web(place.get("file", "")):
            target = place["file"]
        if not target:
            return place
        try:
            parts = urlsplit(target)
        except ValueError:
            return {"path": target[: shapes.MAX_PATH_LENGTH]}
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        site: Data = {"path": path[: shapes.MAX_PATH_LENGTH]}
        if parts.netloc:
            site = {"hostname": f"{parts.scheme}://{parts.netloc}", **site}
        if method := text(request.get("method")):
            site["method"] = method
        return site

    @cached_property
    def levels(self) -> tuple[FindingSeverity, Confidence]:
        """Return the severity and the confidence, the same at every location."""
        if self.own and self.own.severity:
            return self.own.severity, self.own.confidence or Confidence.UNKNOWN
        own = severities_of(self.properties)
        rule = self.rule.severities
        kind = text(self.result.get("kind"))
        level = next(
            (
                candidate
                for candidate in (text(self.result.get("level")), self.run.rules.level_of(self.rule))
                if candidate in LEVELS
            ),
            "",
        )
        words = (severity_word(self.properties.get("issue_severity")), own[2], rule[2])
        severity = next(
            (candidate for candidate in (own[0], rule[0], own[1], rule[1], *words) if candidate is not None), None
        )
        if severity is None and kind in OPEN_KINDS:
            severity = FindingSeverity.UNKNOWN
        return severity or LEVELS[level or "warning"], self._confidence()

    def _confidence(self) -> Confidence:
        words = (self.properties.get("confidence"), self.properties.get("issue_confidence"))
        own = next((confidence for word in words if (confidence := confidence_word(word))), None)
        return own or confidence_of_tags(self.tags) or self.rule.confidence or Confidence.UNKNOWN

    def _identifiers(self) -> list[Data]:
        """Return the identifiers; those that are of the rule alone are made once."""
        if self.own and self.own.identifiers:
            return self.own.identifiers
        if not self.rule_id or self.properties or self.result.get("taxa"):
            return self._own_identifiers()
        key = self.rule_id, id(self.rule)
        identifiers = self.run.identifiers_of_rules
        if key not in identifiers:
            if len(identifiers) == MAX_REMEMBERED:
                identifiers.clear()
            identifiers[key] = self._own_identifiers()
        return identifiers[key]

    def _own_identifiers(self) -> list[Data]:
        rule_id, rule, scanner = self.rule_id, self.rule, self.run.scanner.id
        if rule_id:
            primary = identifying.known_id(rule_id, rule.url)
            identifiers = [primary or identifying.identifier(f"{scanner}_rule_id", rule_id, url=rule.url)]
            if primary is None and (inside := identifying.CVE.search(rule_id)):
                identifiers.append(identifying.identifier("cve", inside[0].upper()))
        else:
            identifiers = [identifying.identifier(f"{scanner}_message", shapes.title(self.message))]
        references = [
            reference for reference in shapes.members(self.result.get("taxa")) if self.run.rules.is_weakness(reference)
        ]
        cwe = self.properties.get("cwe")
        tags = (*rule.tags, *self.tags)
        identifiers += identifying.weaknesses(
            (
                *(reference.get("id") for reference in references),
                *rule.related_weaknesses,
                *(cwe[: shapes.MAX_VALUES] if isinstance(cwe, list) else [cwe]),
                *rule.weaknesses,
                *(tag for tag in tags if "cwe-" in tag.lower()),
            )
        )
        identifiers += identifying.owasp(tags)
        if len(identifiers) > identifying.MAX_IDENTIFIERS:
            self.run.reading.warn("over_limit", self.pointer)
        return identifiers[: identifying.MAX_IDENTIFIERS]

    def _package(self) -> tuple[str, str, str] | None:
        """Return name, version and fixed version of the package that the message or the help of the rule names."""
        for lines in (self.message, self.rule.help_text):
            if "Package:" in lines and (name := sarif_texts.value_of(sarif_texts.PACKAGE, lines)):
                return (
                    name,
                    sarif_texts.value_of(sarif_texts.VERSION, lines),
                    sarif_texts.value_of(sarif_texts.FIXED, lines),
                )
        return None

    def _type(self) -> tuple[str, str]:
        """Return the report type and the image."""
        requested, image = self.run.reading.options.report_type, self.run.image
        if self.own:
            image = self.own.image or image
            if self.own.report_type in REPORT_TYPES:
                return requested or self.own.report_type, image
        if requested:
            return requested, image
        report_type = TYPES_OF_RULES.get(self.rule.name) if self.run.scanner.id == "trivy" else None
        if report_type is None and self.package:
            kind = sarif_texts.value_of(sarif_texts.TYPE, self.message, self.rule.help_text)
            is_system = kind.lower() in SYSTEM_PACKAGES
            report_type = CONTAINER_SCANNING if is_system else DEPENDENCY_SCANNING
        report_type = report_type or TYPES_OF_SCANNERS.get(self.run.scanner.id, SAST)
        return CONTAINER_SCANNING if self.run.image and report_type == DEPENDENCY_SCANNING else report_type, image

    @cached_property
    def solution(self) -> str | None:
        """Return the solution, the same at every location."""
        if self.own:
            return self.own.solution or None
        if self.package and self.package[2]:
            return f"Upgrade {self.package[0]} to {self.package[2]}."
        fixes = shapes.members(self.result.get("fixes"))
        texts_of_fixes = (text(obj(fix.get("description")).get("text")) for fix in fixes)
        return "\n".join(fix_text for fix_text in texts_of_fixes if fix_text.strip()) or None

    @cached_property
    def details(self) -> Data:
        """Return the details, the same at every location."""
        flows = self.result.get("codeFlows")
        details: Data = {}
        threads = obj(flows[0]).get("threadFlows") if isinstance(flows, list) and flows else None
        steps = obj(threads[0]).get("locations") if isinstance(threads, list) and threads else None
        locations = [obj(step.get("location")) for step in objs(steps)] if isinstance(steps, list) else []
        if items := self.run.steps(locations, self.pointer):
            details["code_flow"] = {"name": "Code flow", "type": "list", "items": items}
        if items := self.run.steps(self.related, self.pointer):
            details["related_locations"] = {"name": "Related locations", "type": "list", "items": items}
        return details

    def _places(self) -> dict[str, str]:
        """Return the places of related locations by their ids, as links of messages refer to them."""
        places: dict[str, str] = {}
        for related in objs(self.related[: shapes.MAX_STEPS]):
            try:
                file_location = self.run.place(obj(related.get("physicalLocation")), self.pointer)
            except BrokenPath:
                continue
            if "file" in file_location and (number := text(related.get("id"))):
                line = f":{file_location['start_line']}" if "start_line" in file_location else ""
                places.setdefault(number, f"{file_location['file']}{line}")
        return places

    @cached_property
    def suppression(self) -> Data | None:
        """Return the dismissal, the same at every location."""
        suppressions = shapes.members(self.result.get("suppressions"))
        if not suppressions or any(entry.get("status") in NOT_SETTLED for entry in suppressions):
            return None
        justification = next((reason for entry in suppressions if (reason := text(entry.get("justification")))), "")
        is_false = FALSE_POSITIVE.search(justification) is not None
        own = text(obj(suppressions[0].get("properties")).get("dismissal_reason")) if self.own else ""
        return {
            "kind": text(suppressions[0].get("kind")) or None,
            "status": text(suppressions[0].get("status")) or None,
            "justification": shapes.cut(justification, shapes.MAX_DESCRIPTION_LENGTH) or None,
            "dismissal_reason": own
            if own in DISMISSAL_REASONS
            else "false_positive"
            if is_false
            else "acceptable_risk",
        }
