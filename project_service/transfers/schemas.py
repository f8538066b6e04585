"""Schemas of imports and exports (import reference, section 1; export reference, section 3)."""

from __future__ import annotations

from typing import Any

from project_service.areas.projects.schemas import ProjectOptionsSchema
from project_service.domain.schemas import ProjectIdentitySchema, project_url
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Nested, Schema
from project_service.transfers.models import FINISHED, ProjectExport, ProjectImport

METHODS = ("PUT", "POST")


class ImportFailureSchema(Schema):
    """A row that was left out."""

    id = fields.Integer()
    created_at = fields.Moment()
    exception_class = fields.String()
    exception_message = fields.String()
    source = fields.String()
    relation_name = fields.String()
    line_number = fields.Integer()


class ProgressSchema(Schema):
    """The progress of a transfer; totals are null until it has begun."""

    rows_done = fields.Integer()
    rows_total = fields.Integer()
    relations_done = fields.Integer()
    relations_total = fields.Integer()


def progress_of(transfer: ProjectImport | ProjectExport | None) -> dict[str, Any] | None:
    """Return the progress of a transfer, if there is one."""
    return None if transfer is None else ProgressSchema.dump_value(transfer)


class ImportStatusSchema(ProjectIdentitySchema):
    """A project with the state of its import; ``record`` and ``failures`` are prepared by the view."""

    import_type = fields.Computed(lambda project: "gitlab_project" if project.record else None)
    import_status = fields.String()
    correlation_id = fields.Computed(lambda project: project.record.correlation_id if project.record else None)
    failed_relations = Embedded(ImportFailureSchema, many=True, attribute="failures")
    import_error = fields.String()
    stats = fields.Constant(None)
    progress = fields.Computed(lambda project: progress_of(project.record), type="object")


class ExportStatusSchema(ProjectIdentitySchema):
    """A project with the state of its export; ``record`` and ``export_status`` are prepared by the view."""

    export_status = fields.String()
    _links = fields.ConditionalField(
        lambda project: project.export_status == FINISHED,
        lambda project: {
            "api_url": urls.absolute_api(f"/projects/{project.id}/export/download"),
            "web_url": f"{project_url(project)}/download_export",
        },
        type="object",
    )
    progress = fields.Computed(lambda project: progress_of(project.record), type="object")


class UploadSchema(Schema):
    """Where to upload a finished export."""

    url = fields.String(required=True)
    http_method = fields.String(default="PUT")


class ExportCreateSchema(Schema):
    """Options of an export."""

    description = fields.String()
    upload = Nested(UploadSchema)


class OverrideSchema(ProjectOptionsSchema):
    """Settings that replace those of the archive; the fields below can be set by archives and imports only."""

    class Meta(Schema.Meta):
        exclude = ("avatar",)  # import reference, section 9

    archived = fields.Boolean()
    public_jobs = fields.Boolean()
    service_desk_enabled = fields.Boolean()
    approvals_before_merge = fields.Integer()
    issues_template = fields.String()
    merge_requests_template = fields.String()
    external_authorization_classification_label = fields.String()


class Overrides(Nested):
    """The overrides, without blank texts, which override nothing (import reference, section 9)."""

    def __init__(self) -> None:
        super().__init__(OverrideSchema)

    def read(self, value: Any) -> Any:
        if isinstance(value, dict):
            value = {name: each for name, each in value.items() if not isinstance(each, str) or each.strip()}
        return super().read(value)


class ImportOptionsSchema(Schema):
    """Parameters of both kinds of import."""

    exclusive = (("namespace", "namespace_id", "namespace_path"),)

    name = fields.String()
    namespace = fields.String()
    namespace_id = fields.Integer()
    namespace_path = fields.String()
    overwrite = fields.Boolean(default=False)
    override_params = Overrides()


class ImportCreateSchema(ImportOptionsSchema):
    """An import of an uploaded archive."""

    class Meta(Schema.Meta):
        fields = ("path", "file", "name", "namespace", "namespace_id", "namespace_path", "overwrite", "override_params")

    path = fields.String(required=True)
    file = fields.Upload(required=True)


class RemoteImportCreateSchema(ImportOptionsSchema):
    """An import of a remote archive."""

    class Meta(Schema.Meta):
        fields = ("url", "path", "name", "namespace", "namespace_id", "namespace_path", "overwrite", "override_params")

    url = fields.String(required=True)
    path = fields.String(required=True)
