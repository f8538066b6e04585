"""Schemas of web hooks (webhooks reference, sections 1, 3, 6 and 7)."""

from __future__ import annotations

from typing import Any, cast

from project_service.areas.webhooks import queries
from project_service.areas.webhooks.branch_filters import STRATEGIES
from project_service.areas.webhooks.models import EVENTS, GROUP_EVENTS, WebHook
from project_service.kit.http import fields
from project_service.kit.http.pagination import PageNumber, PagingSchema
from project_service.kit.http.schemas import Nested, Schema

MAX_EVENTS_PER_PAGE = 20


def _flag(name: str) -> fields.Computed:
    return fields.Computed(lambda hook: _value_of(hook, name), type="boolean")


def _value_of(hook: WebHook, name: str) -> bool | None:
    value: bool | None = hook.events.get(name, hook.default_of(name))
    return value


def _names(attribute: str) -> fields.Computed:
    return fields.Computed(
        lambda hook: [{"key": key} for key in getattr(hook, attribute)], type="array", metadata={"items": {}}
    )


def _extended(base: type[Schema], name: str, text: str, added: dict[str, Any]) -> type[Schema]:
    """Return a schema with more fields, under a name and with a description for the document of the API."""
    schema = cast(type[Schema], base.from_dict(added, name=name))
    schema.__doc__ = text
    return schema


class HookBaseSchema(Schema):
    """What all kinds of hooks show; tokens and values of variables and headers never."""

    id = fields.Integer()
    url = fields.String()
    name = fields.String()
    description = fields.String()
    created_at = fields.Moment()


class HookDetailsSchema(HookBaseSchema):
    """The fields of hooks of projects and groups."""

    enable_ssl_verification = fields.Boolean()
    alert_status = fields.String()
    disabled_until = fields.Moment()
    push_events_branch_filter = fields.String()
    branch_filter_strategy = fields.String()
    custom_webhook_template = fields.String()
    token_present = fields.Computed(lambda hook: hook.token is not None, type="boolean")
    signing_token_present = fields.Computed(lambda hook: hook.signing_token is not None, type="boolean")


FLAGS: dict[str, Any] = {name: _flag(name) for name in EVENTS}
GROUP_FLAGS: dict[str, Any] = {name: _flag(name) for name in GROUP_EVENTS}
NAMES = {"url_variables": _names("url_variables"), "custom_headers": _names("custom_headers")}

ProjectHookListedSchema = _extended(
    HookDetailsSchema,
    "ProjectHookListedSchema",
    "A hook of a project in a list.",
    {"project_id": fields.Integer(), **FLAGS},
)
ProjectHookSchema = _extended(
    HookDetailsSchema, "ProjectHookSchema", "A hook of a project.", {"project_id": fields.Integer(), **FLAGS, **NAMES}
)
GroupHookSchema = _extended(
    HookDetailsSchema,
    "GroupHookSchema",
    "A hook of a group.",
    {"group_id": fields.Integer(), **FLAGS, **GROUP_FLAGS, **NAMES},
)
SystemHookSchema = _extended(HookDetailsSchema, "SystemHookSchema", "A hook of the instance.", {**FLAGS, **NAMES})


class PairSchema(Schema):
    """A URL variable or a custom header."""

    key = fields.String(required=True, allow_blank=False)
    value = fields.String(required=True, allow_blank=False)


class HookUpdateSchema(Schema):
    """Changes of a hook."""

    url = fields.String()
    token = fields.String()
    signing_token = fields.String()
    name = fields.String()
    description = fields.String()
    custom_webhook_template = fields.String()
    enable_ssl_verification = fields.Boolean()
    push_events_branch_filter = fields.String()
    branch_filter_strategy = fields.String(choices=STRATEGIES)
    url_variables = fields.Array(Nested(PairSchema))
    custom_headers = fields.Array(Nested(PairSchema))


INPUT_FLAGS: dict[str, Any] = {name: fields.Boolean() for name in EVENTS}
INPUT_GROUP_FLAGS: dict[str, Any] = {name: fields.Boolean() for name in GROUP_EVENTS}

ProjectHookUpdateSchema = _extended(
    HookUpdateSchema, "ProjectHookUpdateSchema", "Changes of a hook of a project or of the instance.", INPUT_FLAGS
)
GroupHookUpdateSchema = _extended(
    HookUpdateSchema, "GroupHookUpdateSchema", "Changes of a hook of a group.", INPUT_FLAGS | INPUT_GROUP_FLAGS
)
ProjectHookCreateSchema = _extended(
    HookUpdateSchema,
    "ProjectHookCreateSchema",
    "A hook of a project or of the instance to be created.",
    INPUT_FLAGS | {"url": fields.String(required=True)},
)
GroupHookCreateSchema = _extended(
    HookUpdateSchema,
    "GroupHookCreateSchema",
    "A hook of a group to be created.",
    INPUT_FLAGS | INPUT_GROUP_FLAGS | {"url": fields.String(required=True)},
)


class ValueSchema(Schema):
    """The value of a URL variable or a custom header."""

    value = fields.String(required=True)


class WebHookEventFilterSchema(PagingSchema):
    """Filters of the log, whose pages are short."""

    status = fields.Array(fields.String(choices=queries.STATUSES))
    per_page = PageNumber(default=MAX_EVENTS_PER_PAGE, choices=range(1, MAX_EVENTS_PER_PAGE + 1))


class WebHookEventSchema(Schema):
    """One attempt to deliver an event."""

    id = fields.Integer()
    url = fields.String()
    trigger = fields.String()
    request_headers = fields.Computed(lambda row: row.request_headers, type="object")
    request_data = fields.Computed(queries.request_data, type="object")
    response_headers = fields.Computed(lambda row: row.response_headers, type="object")
    response_body = fields.String()
    execution_duration = fields.Computed(lambda row: row.execution_duration, type="number")
    response_status = fields.String()
    error = fields.String()
    attempt = fields.Integer()
    created_at = fields.Moment()


class TestedSchema(Schema):
    """The answer to a test."""

    message = fields.String()


class ResentSchema(Schema):
    """The answer to a repetition."""

    response_status = fields.Integer()
