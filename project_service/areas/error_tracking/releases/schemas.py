"""Schemas of releases and uploaded source maps (source maps reference, section 22)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from project_service.areas.error_tracking.releases.queries import ReleaseSummary
from project_service.domain.schemas import UserBasicSchema
from project_service.kit import clock
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Schema


class ReleaseFilterSchema(Schema):
    """Which releases to list."""

    search = fields.String()


class SourceMapFilterSchema(Schema):
    """Which uploads to list."""

    release = fields.String()
    debug_id = fields.String()
    search = fields.String()


def _of_release(name: str) -> Callable[[Any], Any]:
    return lambda summary: getattr(summary.release, name)


def _moment_of_release(name: str) -> Callable[[Any], str | None]:
    return lambda summary: None if (moment := getattr(summary.release, name)) is None else clock.isoformat(moment)


def _deploys(summary: ReleaseSummary) -> list[dict[str, Any]]:
    return [
        {
            "environment": deploy.environment,
            "name": deploy.name,
            "url": deploy.url,
            "finished_at": clock.isoformat(deploy.finished_at),
        }
        for deploy in summary.deploys
    ]


class ErrorReleaseSchema(Schema):
    """A release with the numbers of its errors and uploads."""

    id = fields.Computed(_of_release("id"), type="integer")
    version = fields.Computed(_of_release("version"))
    status = fields.Computed(_of_release("status"))
    url = fields.Computed(_of_release("url"))
    date_released = fields.Computed(_moment_of_release("released_at"))
    created_at = fields.Computed(_moment_of_release("created_at"))
    new_errors = fields.Integer()
    errors = fields.Integer()
    events = fields.Integer()
    first_seen = fields.Moment()
    last_seen = fields.Moment()
    commit_count = fields.Computed(_of_release("commit_count"), type="integer")
    last_commit = fields.Computed(_of_release("last_commit"), type="object")
    deploys = fields.Computed(_deploys, type="array", metadata={"items": {"type": "object"}})
    source_maps = fields.Computed(
        lambda release: {
            "bundles": release.bundles,
            "files": release.files,
            "bytes": release.bytes,
            "dists": release.dists,
        },
        type="object",
    )
    tag_name = fields.String()
    web_url = fields.Computed(lambda summary: urls.absolute(summary.path))


class SourceMapBundleSchema(Schema):
    """An upload of source maps, or the reason why it failed."""

    id = fields.Integer()
    release = fields.String()
    dist = fields.String()
    files = fields.Integer()
    bytes = fields.Integer()
    uploaded_at = fields.Moment()
    uploader = Embedded(UserBasicSchema, keep_none=True)
    state = fields.String()
    error = fields.String()


class SourceMapFileSchema(Schema):
    """A file of an upload."""

    id = fields.Integer()
    name = fields.String(attribute="url")
    type = fields.String()
    debug_id = fields.String()
    bytes = fields.Integer(attribute="size")
    last_used_at = fields.Moment()
