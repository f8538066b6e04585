"""Schemas of discussions."""

from __future__ import annotations

from project_service.domain.tracker.schemas import NoteSchema
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Schema


class DiscussionSchema(Schema):
    """A comment with its replies."""

    id = fields.String()
    individual_note = fields.Boolean()
    notes = fields.Array(Embedded(NoteSchema))


class DiscussionNoteCreateSchema(Schema):
    """A new discussion, or a reply in one."""

    body = fields.String(required=True)
    created_at = fields.DateTime(metadata={"description": "For administrators and owners of the project."})


class DiscussionCreateSchema(DiscussionNoteCreateSchema):
    """A new discussion."""

    confidential = fields.Boolean(default=False)
    internal = fields.Boolean()


class DiscussionNoteUpdateSchema(Schema):
    """Changes of a note in a discussion."""

    exactly_one = ("body", "resolved")

    body = fields.String()
    resolved = fields.Boolean(metadata={"description": "Refused: discussions of issues are not resolved."})
