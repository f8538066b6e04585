"""Schemas of events and of their filters (events reference, sections 2 and 7)."""

from __future__ import annotations

from typing import Any

from project_service.areas.activity.filters import STORED_TYPES
from project_service.domain.events.models import Action, Event
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.tracker.documents import designs, wiki_pages
from project_service.domain.tracker.schemas import NoteSchema
from project_service.kit.http import fields
from project_service.kit.http.pagination import PagingSchema
from project_service.kit.http.schemas import Embedded, Schema

ACTIONS = tuple(action.name.lower() for action in Action)
TARGET_TYPES = (*STORED_TYPES, "project")
ACTION_NAMES = {
    Action.CLOSED: "closed",
    Action.MERGED: "accepted",
    Action.JOINED: "joined",
    Action.LEFT: "left",
    Action.EXPIRED: "removed due to membership expiration from",
    Action.DESTROYED: "destroyed",
    Action.COMMENTED: "commented on",
    Action.APPROVED: "approved",
}
DESIGN_ACTION_NAMES = {Action.CREATED: "uploaded", Action.UPDATED: "revised", Action.DESTROYED: "deleted"}
PUSH_ACTION_NAMES = {"created": "pushed new", "removed": "deleted", "pushed": "pushed to"}


def action_name(event: Event) -> str:
    """Return the name of the action in the API; the first rule that matches counts (events reference, section 7)."""
    action = Action(event.action)
    if action is Action.PUSHED:
        return PUSH_ACTION_NAMES.get((event.data or {}).get("action", ""), "pushed to")
    if event.target_type == designs.TARGET:
        return DESIGN_ACTION_NAMES.get(action, "opened")
    if action in ACTION_NAMES:
        return ACTION_NAMES[action]
    if event.target_type == wiki_pages.TARGET and action in (Action.CREATED, Action.UPDATED):
        return action.name.lower()
    if action is Action.CREATED and event.target_type in (None, "Project"):
        return "imported" if (event.data or {}).get("imported") else "created"
    return "opened"


def _push_data(event: Event) -> dict[str, Any]:
    data = event.data or {}
    names = ("commit_count", "action", "ref_type", "commit_from", "commit_to", "ref", "commit_title", "ref_count")
    return {name: data.get(name) for name in names}


class WikiPageSchema(Schema):
    """A page of a wiki inside an event."""

    format = fields.Constant("markdown")
    slug = fields.String()
    title = fields.String()


def _wiki_page(event: Any) -> dict[str, Any] | None:
    page = event.target.wiki_page
    return WikiPageSchema.dump_value(page) if page else None


class EventSchema(Schema):
    """An event."""

    id = fields.Integer()
    title = fields.Constant(None)
    project_id = fields.Integer()
    action_name = fields.Computed(action_name)
    target_id = fields.Integer()
    target_iid = fields.Integer(attribute="target.iid", dump_only=True)
    target_type = fields.String()
    author_id = fields.Integer()
    target_title = fields.String(attribute="target.title", dump_only=True)
    created_at = fields.Moment()
    note = Embedded(NoteSchema, attribute="target.note")
    author = Embedded(UserBasicSchema)
    wiki_page = fields.ConditionalField(lambda event: event.target_type == wiki_pages.TARGET, _wiki_page, type="object")
    push_data = fields.ConditionalField(lambda event: event.action == Action.PUSHED, _push_data, type="object")
    author_username = fields.Computed(lambda event: event.author.username if event.author else None)


class ProjectEventSchema(EventSchema):
    """An event in the feed of a project."""

    data = fields.Constant(None)


class EventFilterSchema(PagingSchema):
    """Filters of a feed; messages about the page come first (events reference, section 2)."""

    action = fields.String(choices=ACTIONS)
    target_type = fields.String(choices=TARGET_TYPES)
    before = fields.Date()
    after = fields.Date()
    sort = fields.String(default="desc", choices=("asc", "desc"))


class OwnEventFilterSchema(EventFilterSchema):
    """Filters of the caller's feed, or with ``scope=all`` of that of the caller's projects."""

    scope = fields.String()
