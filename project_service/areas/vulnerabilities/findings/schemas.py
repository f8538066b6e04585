"""Schemas of findings, reports and feedback (findings reference, sections 8 and 14)."""

from __future__ import annotations

import functools
from typing import Any
from urllib.parse import quote

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.rules import may_see_issue
from project_service.areas.vulnerabilities.levels import CONFIDENCES, SEVERITIES, THRESHOLDS
from project_service.areas.vulnerabilities.locations import text
from project_service.areas.vulnerabilities.models import DISMISSAL, ISSUE, MERGE_REQUEST, Feedback, Finding
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.domain.projects import Project
from project_service.domain.schemas import UserBasicSchema
from project_service.kit import clock
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Nested, Schema


def feedback_path(project: Project) -> str:
    """Return the path that feedback on findings of a project is sent to."""
    return f"/{project.full_path}/-/vulnerability_feedback"


def blob_path(finding: Finding, revision: str | None = None) -> str:
    """Return the path of the source of a finding at the commit of its pipeline; empty when it is in no file."""
    location = finding.data["location"]
    file = location.get("file")
    if not isinstance(file, str) or not file or ".." in file.split("/"):
        return ""
    first, last = (_line(location.get(name)) for name in ("start_line", "end_line"))
    pipeline = finding.pipeline
    revision = revision or pipeline.sha or pipeline.ref
    path = f"/{pipeline.project.full_path}/-/blob/{_quoted(revision)}/{_quoted(file.lstrip('/'))}"
    if not first:
        return path
    return f"{path}#L{first}" if last in ("", first) else f"{path}#L{first}-{last}"


@functools.lru_cache(maxsize=256)
def _quoted(path: str) -> str:
    return quote(path)


def _line(value: Any) -> str:
    """Return a line number, which some scanners write as text; empty for anything else."""
    number = text(value)
    return number if number.isascii() and number.isdigit() else ""


def _feedback_of(feedback_type: str) -> fields.Computed:
    def shown(finding: Finding) -> dict[str, Any] | None:
        feedback = finding.feedback.get(feedback_type)
        return None if feedback is None else FeedbackSchema.dump_value(feedback)

    return fields.Computed(shown, type="object")


def _from_report(name: str, type: str | None = None) -> fields.Computed:
    """Return a field with data of the report (``normalising.finding_data``)."""
    return fields.Computed(lambda finding: finding.data[name], type=type)


def _path() -> fields.Computed:
    return fields.Computed(lambda finding: feedback_path(finding.pipeline.project))


class ProjectOfFindingSchema(Schema):
    """The project inside a finding; its path begins with a slash."""

    id = fields.Integer()
    name = fields.String()
    full_path = fields.Computed(lambda project: f"/{project.full_path}")
    full_name = fields.Computed(lambda project: project.name_with_namespace)


class FeedbackAuthorSchema(UserBasicSchema):
    """The author of feedback."""

    path = fields.Computed(lambda user: f"/{user.username}")


def _comment(feedback: Feedback) -> dict[str, Any]:
    author = feedback.comment_author
    return {
        "comment": feedback.comment,
        "comment_timestamp": clock.isoformat(feedback.commented_at) if feedback.commented_at else None,
        "comment_author": None if author is None else FeedbackAuthorSchema.dump_value(author),
    }


def _can_read_issue(feedback: Feedback) -> bool:
    return (
        feedback.issue is not None
        and allowed(caller(), Ability.READ_ISSUES, feedback.project)
        and may_see_issue(caller(), feedback.issue)
    )


def _can_read_merge_request(feedback: Feedback) -> bool:
    return feedback.merge_request is not None and allowed(caller(), Ability.READ_MERGE_REQUESTS, feedback.project)


def _below(feedback: Feedback, path: str) -> str:
    return f"/{feedback.project.full_path}/-/{path}"


class FeedbackSchema(Schema):
    """Feedback on a finding; optional keys are present when they apply."""

    id = fields.Integer()
    created_at = fields.Moment()
    project_id = fields.Integer()
    author = Embedded(FeedbackAuthorSchema, keep_none=True)
    comment_details = fields.ConditionalField(lambda feedback: bool(feedback.comment), _comment, type="object")
    finding_uuid = fields.String()
    pipeline = fields.ConditionalField(
        lambda feedback: feedback.pipeline_id is not None,
        lambda feedback: {"id": feedback.pipeline_id, "path": _below(feedback, f"pipelines/{feedback.pipeline_id}")},
        type="object",
    )
    issue_iid = fields.ConditionalField(
        lambda feedback: feedback.issue is not None, lambda feedback: feedback.issue.iid, type="integer"
    )
    issue_url = fields.ConditionalField(
        _can_read_issue, lambda feedback: urls.absolute(_below(feedback, f"issues/{feedback.issue.iid}"))
    )
    merge_request_iid = fields.ConditionalField(
        lambda feedback: feedback.merge_request is not None, lambda feedback: feedback.merge_request.iid, type="integer"
    )
    merge_request_path = fields.ConditionalField(
        _can_read_merge_request, lambda feedback: _below(feedback, f"merge_requests/{feedback.merge_request.iid}")
    )
    destroy_vulnerability_feedback_dismissal_path = fields.ConditionalField(
        lambda feedback: (
            feedback.feedback_type == DISMISSAL and allowed(caller(), Ability.DISMISS_VULNERABILITIES, feedback.project)
        ),
        lambda feedback: _below(feedback, f"vulnerability_feedback/{feedback.id}"),
    )
    category = fields.String()
    feedback_type = fields.String()
    branch = fields.Computed(lambda feedback: feedback.pipeline.ref if feedback.pipeline else None)
    project_fingerprint = fields.String()
    dismissal_reason = fields.String()


class FindingSchema(Schema):
    """A finding. ``queries.prepare`` adds ``feedback`` and ``remediations``; the rest is from its report."""

    id = fields.Constant(None, metadata={"type": "integer"})
    report_type = fields.String()
    name = _from_report("name", "string")
    severity = fields.Computed(lambda finding: finding.severity.text)
    confidence = fields.Computed(lambda finding: finding.confidence.text)
    scanner = _from_report("scanner", "object")
    identifiers = _from_report("identifiers", "array")
    project_fingerprint = fields.String()
    uuid = fields.String()
    create_vulnerability_feedback_issue_path = _path()
    create_vulnerability_feedback_merge_request_path = _path()
    create_vulnerability_feedback_dismissal_path = _path()
    project = Embedded(ProjectOfFindingSchema, attribute="pipeline.project")
    dismissal_feedback = _feedback_of(DISMISSAL)
    issue_feedback = _feedback_of(ISSUE)
    merge_request_feedback = _feedback_of(MERGE_REQUEST)
    description = _from_report("description", "string")
    links = _from_report("links", "array")
    location = _from_report("location", "object")
    remediations = fields.Computed(lambda finding: finding.remediations, type="array")
    solution = _from_report("solution", "string")
    evidence = _from_report("evidence", "string")
    request = _from_report("request", "object")
    response = _from_report("response", "object")
    evidence_source = _from_report("evidence_source")
    supporting_messages = _from_report("supporting_messages")
    assets = _from_report("assets", "array")
    details = _from_report("details", "object")
    state = fields.Computed(lambda finding: "dismissed" if finding.dismissed else "detected")
    suppression = fields.ConditionalField(
        lambda finding: "suppression" in finding.data, lambda finding: finding.data["suppression"], type="object"
    )
    tracked_id = fields.Integer(metadata={"description": "The tracked finding that it is a place of."})
    first_seen_at = fields.Moment()
    last_seen_at = fields.Moment()
    category = fields.String(attribute="report.category")
    scan = fields.Computed(lambda finding: finding.report.scan, type="object")
    blob_path = fields.Computed(blob_path)


class OptionalString(fields.String):
    """A string; an empty one counts as absent, because scripts send it for a variable that is not set."""

    blank_is_absent = True


class FindingFilterSchema(Schema):
    """Which findings to list."""

    report_type = fields.Array(fields.String(choices=tuple(REPORT_TYPES)))
    scope = fields.String(choices=("all", "dismissed"), default="dismissed")
    severity = fields.Array(fields.String(choices=tuple(SEVERITIES)))
    confidence = fields.Array(fields.String(choices=tuple(CONFIDENCES)))
    pipeline_id = fields.String()


class ReportUploadSchema(Schema):
    """A report to upload, and its pipeline."""

    file = fields.Upload(
        required=True, metadata={"description": "JSON in UTF-8 or UTF-16, also compressed with gzip; at most 512 MB."}
    )
    report_type = OptionalString(
        choices=tuple(REPORT_TYPES), metadata={"description": "Found out from the file by default."}
    )
    ref = OptionalString(metadata={"description": "The branch; the default branch by default."})
    branch = OptionalString(metadata={"description": "Another name of `ref`."})
    sha = OptionalString()
    commit = OptionalString(metadata={"description": "Another name of `sha`."})
    category = OptionalString(
        metadata={"description": "Distinguishes several runs of one scanner; the same in every pipeline."}
    )
    source_root = OptionalString(metadata={"description": "Absolute path that is cut off from paths of files."})
    pipeline_id = fields.Integer()
    dry_run = fields.Boolean(metadata={"description": "Do everything but store; the answer is 200 then."})
    fail_on = OptionalString(
        choices=THRESHOLDS, metadata={"description": "The answer has a `gate` that fails on this severity and worse."}
    )
    fail_on_unknown = fields.Boolean(metadata={"description": "Whether unknown severities fail the gate, too."})
    list_new = fields.Boolean(metadata={"description": "The `gate` lists up to 1000 new findings."})


class LeftSchema(Schema):
    """Entries of a report that are no findings."""

    total = fields.Integer()
    reasons = fields.Anything(metadata={"type": "object", "additionalProperties": {"type": "integer"}})


class TrackingCountsSchema(Schema):
    """Findings compared with the reports before: `new` + `reappeared` + `known` is `merged`."""

    new = fields.Integer(metadata={"description": "Never seen on this branch."})
    reappeared = fields.Integer(metadata={"description": "Were resolved."})
    known = fields.Integer(metadata={"description": "Were there before."})
    moved = fields.Integer(metadata={"description": "Known ones in other lines or versions."})
    resolved = fields.Integer(metadata={"description": "Gone by this report."})


class CountsSchema(Schema):
    """Counts of a report: `found` is `merged` + `dropped` + `left.total`."""

    found = fields.Integer(metadata={"description": "Entries of the report."})
    merged = fields.Integer(metadata={"description": "Findings that are in the list of the pipeline."})
    dropped = fields.Integer(metadata={"description": "Findings that are the same as others of the pipeline."})
    left = Embedded(LeftSchema)
    suppressed = fields.Integer(metadata={"description": "Merged findings that the report itself has dismissed."})
    tracking = Embedded(TrackingCountsSchema)


class ScannerOfReportSchema(Schema):
    """The scanner of a report."""

    external_id = fields.String()
    name = fields.String()
    version = fields.String()


class ReportOfScannerSchema(CountsSchema):
    """What one scanner and category of an upload has."""

    scanner = Embedded(ScannerOfReportSchema)
    category = fields.String()
    report_types = fields.Array(fields.String())
    complete = fields.Boolean(metadata={"description": "Whether the scanner looked at everything."})


class ReportWarningSchema(Schema):
    """A kind of remark about an upload, with the pointer of the first occurrence."""

    code = fields.String()
    count = fields.Integer()
    pointer = fields.String()
    message = fields.String()


class IngestedSchema(CountsSchema):
    """Result of an ingestion."""

    pipeline_id = fields.Integer()
    format = fields.String(metadata={"description": "The recognised format."})
    format_version = fields.String()
    report_type = fields.String(metadata={"description": "The type, if all findings have the same one."})
    components = fields.Integer(metadata={"description": "Components for the list of dependencies."})
    reports = Embedded(ReportOfScannerSchema, many=True)
    warnings = Embedded(ReportWarningSchema, many=True)
    gate = fields.ConditionalField(lambda upload: upload.gate is not None, lambda upload: upload.gate, type="object")


class DependencyFilterSchema(Schema):
    """Which dependencies to list."""

    branch = OptionalString(metadata={"description": "The default branch by default."})
    search = OptionalString(metadata={"description": "Words that the name contains."})
    package_manager = fields.Array(fields.String(), metadata={"description": "Such as `npm` or `pip`."})
    license = fields.Array(fields.String(), metadata={"description": "Such as `MIT`; `unknown` for none."})


def _findings_of(dependency: Any) -> list[dict[str, Any]]:
    path = f"/{dependency.project.full_path}/-/security/findings"
    return [
        {"name": finding.data["name"], "severity": finding.severity.text, "url": urls.absolute(f"{path}/{finding.id}")}
        for finding in dependency.findings
    ]


class DependencySchema(Schema):
    """An entry of the list of dependencies."""

    name = fields.String(attribute="component.name")
    version = fields.String(attribute="component.version")
    package_manager = fields.String(attribute="component.package_manager")
    dependency_file_path = fields.String(attribute="component.dependency_file_path")
    vulnerabilities = fields.Computed(_findings_of, type="array")
    licenses = fields.Computed(lambda dependency: dependency.component.licenses, type="array")
    purl = fields.String(attribute="component.purl")
    type = fields.String(attribute="component.type")
    direct = fields.Boolean(attribute="component.direct")


class FeedbackCreateSchema(Schema):
    """Feedback to create."""

    feedback_type = fields.String()
    category = fields.String()
    project_fingerprint = fields.String()
    finding_uuid = fields.String()
    comment = fields.String()
    dismissal_reason = fields.String()
    pipeline_id = fields.Integer()
    merge_request_iid = fields.Integer()
    vulnerability_data = fields.Hash()


class FeedbackEnvelopeSchema(Schema):
    """Feedback to create, wrapped as clients send it."""

    vulnerability_feedback = Nested(FeedbackCreateSchema, required=True)
