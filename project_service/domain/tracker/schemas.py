"""Schemas of notes and milestones, for responses of their own and inside others."""

from __future__ import annotations

from typing import Any

from project_service.domain import page_paths
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import DIFF_NOTE, Note, Resolution, is_resolvable
from project_service.kit import clock
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Schema

NONE, ANY = "None", "Any"


class TitleOrWord(fields.String):
    """A title to filter by, or ``None`` or ``Any``, in any case."""

    def read(self, value: Any) -> str:
        text = super().read(value)
        return text.title() if text.title() in (NONE, ANY) else text


def _resolution(note: Note) -> Resolution | None:
    return getattr(note, "resolution", None)


def _resolved_by(note: Note) -> dict[str, Any] | None:
    resolution = _resolution(note)
    return UserBasicSchema.dump_value(resolution.by) if resolution and resolution.by else None


def _resolved_at(note: Note) -> str | None:
    resolution = _resolution(note)
    return clock.isoformat(resolution.at) if resolution else None


class NoteSchema(Schema):
    """A note; ``noteable_iid`` and ``resolution`` are prepared with the page."""

    id = fields.Integer()
    type = fields.String()
    body = fields.String()
    attachment = fields.String()
    author = Embedded(UserBasicSchema, keep_none=True)
    created_at = fields.Moment()
    updated_at = fields.Moment()
    system = fields.Boolean()
    noteable_id = fields.Integer()
    noteable_type = fields.String()
    position = fields.ConditionalField(lambda note: note.type == DIFF_NOTE, lambda note: note.position, type="object")
    resolvable = fields.Computed(is_resolvable, type="boolean")
    resolved = fields.ConditionalField(is_resolvable, lambda note: _resolution(note) is not None, type="boolean")
    resolved_by = fields.ConditionalField(is_resolvable, _resolved_by, type="object")
    resolved_at = fields.Computed(_resolved_at)
    confidential = fields.Boolean()
    internal = fields.Computed(lambda note: note.confidential, type="boolean")
    noteable_iid = fields.Computed(lambda note: note.noteable_iid, type="integer")
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
    return urls.absolute(milestone_path(milestone))


def milestone_path(milestone: Milestone) -> str:
    """The path of the page of a milestone of a project or a group."""
    base = page_paths.of_group if milestone.project is None else page_paths.of_project
    return f"{base(milestone.owner)}{page_paths.milestone(milestone.iid)}"


class MilestoneSchema(Schema):
    """A milestone: ``project_id`` is there for those of projects, ``group_id`` for those of groups."""

    id = fields.Integer()
    iid = fields.Integer()
    project_id = fields.ConditionalField(
        lambda milestone: milestone.group_id is None, lambda milestone: milestone.project_id, type="integer"
    )
    group_id = fields.ConditionalField(
        lambda milestone: milestone.group_id is not None, lambda milestone: milestone.group_id, type="integer"
    )
    title = fields.String()
    description = fields.String()
    state = fields.String()
    created_at = fields.Moment()
    updated_at = fields.Moment()
    due_date = fields.Day()
    start_date = fields.Day()
    expired = fields.Computed(is_expired, type="boolean")
    web_url = fields.Computed(milestone_url)
