"""Notes and milestones as they travel, by themselves and inside other answers."""

from __future__ import annotations

from project_service.core.schemas import UserBasicSchema
from project_service.kit import clock, fields, urls
from project_service.kit.schemas import Inside, Schema
from project_service.tracker.milestones import Milestone
from project_service.tracker.notes import DIFF_NOTE


class NoteSchema(Schema):
    """A note; ``noteable_iid`` is prepared with the page."""

    id = fields.Integer()
    type = fields.String()
    body = fields.String()
    attachment = fields.String()
    author = Inside(UserBasicSchema, keep_none=True)
    created_at = fields.Moment()
    updated_at = fields.Moment()
    system = fields.Boolean()
    noteable_id = fields.Integer()
    noteable_type = fields.String()
    position = fields.When(lambda note: note.type == DIFF_NOTE, lambda note: note.position, type="object")
    resolvable = fields.Constant(False)
    resolved_at = fields.Constant(None)
    confidential = fields.Boolean()
    internal = fields.Computed(lambda note: note.confidential, type="boolean")
    noteable_iid = fields.Computed(lambda note: getattr(note, "noteable_iid", None), type="integer")
    commands_changes = fields.Computed(lambda _: {}, type="object")


class NoteFilterSchema(Schema):
    """Which notes to list."""

    order_by = fields.String(default="created_at", choices=("created_at", "updated_at"))
    sort = fields.String(default="desc", choices=("asc", "desc"))
    activity_filter = fields.String(default="all_notes", choices=("all_notes", "only_comments", "only_activity"))


def is_expired(milestone: Milestone) -> bool:
    """Whether its last day has passed."""
    return milestone.due_date is not None and milestone.due_date < clock.today()


def milestone_url(milestone: Milestone) -> str:
    """The page of a milestone."""
    return urls.absolute(f"/{milestone.project.full_path}/-/milestones/{milestone.iid}")


class MilestoneSchema(Schema):
    """A milestone."""

    id = fields.Integer()
    iid = fields.Integer()
    project_id = fields.Integer()
    title = fields.String()
    description = fields.String()
    state = fields.String()
    created_at = fields.Moment()
    updated_at = fields.Moment()
    due_date = fields.Day()
    start_date = fields.Day()
    expired = fields.Computed(is_expired, type="boolean")
    web_url = fields.Computed(milestone_url)
