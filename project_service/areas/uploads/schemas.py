"""Schemas of uploads (uploads reference, section 1)."""

from __future__ import annotations

from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Schema


class UploaderSchema(Schema):
    """Who uploaded a file."""

    id = fields.Integer()
    username = fields.String()
    public_email = fields.String()
    name = fields.String()


class ProjectUploadSchema(Schema):
    """An upload in a list."""

    id = fields.Integer()
    size = fields.Integer()
    filename = fields.String()
    created_at = fields.Moment()
    uploaded_by = Embedded(UploaderSchema, keep_none=True)


class AttachmentSchema(Schema):
    """An upload that was just made, with the Markdown for it."""

    id = fields.Integer()
    alt = fields.String()
    url = fields.String()
    full_path = fields.String()
    markdown = fields.String()


class UploadCreateSchema(Schema):
    """A file to upload."""

    file = fields.Upload(required=True)
