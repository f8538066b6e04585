"""Schemas of tracked findings."""

from __future__ import annotations

from project_service.areas.vulnerabilities.findings.schemas import OptionalString
from project_service.areas.vulnerabilities.levels import SEVERITIES, THRESHOLDS
from project_service.areas.vulnerabilities.models import DISMISSAL, ISSUE, TrackedFindingState
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.areas.vulnerabilities.tracking.queries import STATES, shown_state
from project_service.domain import page_paths
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Schema

EXPORT_FORMATS = ("csv", "sarif", "cyclonedx")


def dismissal_reason(row: TrackedFindingState) -> str | None:
    """Return the reason of a dismissal: of people, else of the report."""
    feedback = row.finding.feedback.get(DISMISSAL)
    reason = feedback.dismissal_reason if feedback is not None else None
    return reason or (row.finding.data.get("suppression") or {}).get("dismissal_reason")


def issue_iid(row: TrackedFindingState) -> int | None:
    """Return the number of the issue that was created for a tracked finding."""
    feedback = row.finding.feedback.get(ISSUE)
    return feedback.issue.iid if feedback is not None and feedback.issue is not None else None


class TrackedFindingSchema(Schema):
    """A tracked finding with its state on a branch, and its newest place there."""

    id = fields.Integer(attribute="tracked_id")
    state = fields.Computed(shown_state)
    severity = fields.Computed(lambda row: row.finding.severity.text)
    confidence = fields.Computed(lambda row: row.finding.confidence.text)
    name = fields.Computed(lambda row: row.finding.data["name"])
    report_type = fields.String(attribute="tracked.report_type")
    scanner = fields.String(attribute="tracked.scanner")
    category = fields.String(attribute="tracked.category")
    branch = fields.String(attribute="ref")
    location = fields.Computed(lambda row: row.finding.data["location"], type="object")
    identifiers = fields.Computed(lambda row: row.finding.data["identifiers"], type="array")
    uuid = fields.String(attribute="finding.uuid")
    project_fingerprint = fields.String(attribute="finding.project_fingerprint")
    first_seen_at = fields.Moment(attribute="tracked.first_seen_at")
    first_seen_pipeline_id = fields.Integer(attribute="tracked.first_seen_pipeline_id")
    last_seen_at = fields.Moment()
    last_seen_pipeline_id = fields.Integer()
    resolved_at = fields.Moment()
    resolved_pipeline_id = fields.Integer()
    reappeared_at = fields.Moment()
    reappearances = fields.Integer()
    dismissal_reason = fields.Computed(dismissal_reason)
    issue_iid = fields.Computed(issue_iid, type="integer")
    web_url = fields.Computed(
        lambda row: urls.absolute(f"/{row.finding.pipeline.project.full_path}{page_paths.finding(row.finding_id)}")
    )


class TrackedFindingFilterSchema(Schema):
    """Which tracked findings to list."""

    branch = OptionalString(metadata={"description": "The default branch by default."})
    state = fields.Array(
        fields.String(choices=STATES), metadata={"description": "`detected` and `dismissed` by default."}
    )
    severity = fields.Array(fields.String(choices=tuple(SEVERITIES)))
    report_type = fields.Array(fields.String(choices=tuple(REPORT_TYPES)))
    scanner = OptionalString(metadata={"description": "The id of the scanner."})
    category = OptionalString()


class FindingExportSchema(TrackedFindingFilterSchema):
    """Which tracked findings to export, and how."""

    format = fields.String(required=True, choices=EXPORT_FORMATS)


class SecurityGateFilterSchema(Schema):
    """What a quality gate judges."""

    fail_on = fields.String(choices=THRESHOLDS, default="high", metadata={"description": "This severity and worse."})
    fail_on_unknown = fields.Boolean(default=False, metadata={"description": "Whether unknown severities count."})
    pipeline_id = fields.Integer(metadata={"description": "The newest of the branch by default."})
    branch = OptionalString(metadata={"description": "The default branch by default."})
    report_type = OptionalString(choices=tuple(REPORT_TYPES))


class SecurityGateSchema(Schema):
    """The result of a quality gate."""

    status = fields.String(metadata={"description": "`passed` or `failed`."})
    fail_on = fields.String()
    fail_on_unknown = fields.Boolean()
    branch = fields.String()
    compared_with = fields.Computed(lambda gate: gate["compared_with"], type="object")
    new = fields.Computed(lambda gate: gate["new"], type="object")
    known = fields.Integer()
    failing = fields.Integer()
    findings = fields.Computed(lambda gate: gate["findings"], type="array")
    message = fields.String()
