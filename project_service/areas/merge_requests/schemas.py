"""Schemas of merge requests."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from project_service.domain import page_paths
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.schemas import MilestoneSchema, TitleOrWord
from project_service.kit import clock
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Schema

STATES = ("opened", "closed", "locked", "merged", "all")
SCOPES = ("created_by_me", "assigned_to_me", "all")
DRAFT = re.compile(r"\s*(\[(draft|wip)\]|\(draft\)|(draft|wip):|(draft|wip)\s*$)", re.IGNORECASE)


def is_draft(merge_request: MergeRequest) -> bool:
    """Return whether the title marks the merge request as a draft."""
    return DRAFT.match(merge_request.title) is not None


def merge_request_url(merge_request: MergeRequest) -> str:
    """Return the URL of a merge request."""
    return urls.absolute(f"/{merge_request.project.full_path}{page_paths.merge_request(merge_request.iid)}")


def _reference(merge_request: MergeRequest) -> str:
    return f"!{merge_request.iid}"


def _references(merge_request: MergeRequest) -> dict[str, str]:
    own = _reference(merge_request)
    return {"short": own, "relative": own, "full": f"{merge_request.project.full_path}{own}"}


class MergeRequestSchema(Schema):
    """A merge request; ``notes_count`` is set when a page is loaded."""

    id = fields.Integer()
    iid = fields.Integer()
    project_id = fields.Integer()
    title = fields.String()
    description = fields.String()
    state = fields.String()
    created_at = fields.Moment()
    updated_at = fields.Moment()
    target_branch = fields.String()
    source_branch = fields.String()
    user_notes_count = fields.Integer(attribute="notes_count", dump_only=True)
    author = Embedded(UserBasicSchema, keep_none=True)
    target_project_id = fields.Integer(attribute="project_id", dump_only=True)
    labels = fields.Array(fields.String())
    draft = fields.Computed(is_draft, type="boolean")
    work_in_progress = fields.Computed(is_draft, type="boolean")
    milestone = Embedded(MilestoneSchema, keep_none=True)
    reference = fields.Computed(_reference)
    references = fields.Computed(_references, type="object")
    web_url = fields.Computed(merge_request_url)


def _imported(name: str, kind: type[Any], *, inside: str | None = None) -> fields.Computed:
    """A value from the archive that has no column; values of another type, which archives may contain, are null."""
    kinds: dict[type[Any], str] = {str: "string", bool: "boolean", dt.datetime: "string"}

    def read(merge_request: MergeRequest) -> Any:
        extra: Any = merge_request.extra or {}
        value = (_object(extra.get(inside)) if inside else extra).get(name)
        if kind is dt.datetime:
            return _moment(value)
        return value if isinstance(value, kind) else None

    return fields.Computed(read, type=kinds[kind])


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _moment(value: Any) -> str | None:
    try:
        return clock.isoformat(fields.read_moment(value))
    except ValueError:
        return None


def _source_project(merge_request: MergeRequest) -> int | None:
    """Return the id of the project, or ``None`` if the archive names a fork as the source."""
    return None if "source_project_id" in (merge_request.extra or {}) else merge_request.project_id


def _diff_refs(merge_request: MergeRequest) -> dict[str, Any] | None:
    diff = _object((merge_request.extra or {}).get("merge_request_diff"))
    refs = {name: diff.get(f"{name.removesuffix('_sha')}_commit_sha") for name in ("base_sha", "head_sha", "start_sha")}
    return refs if any(isinstance(value, str) for value in refs.values()) else None


class MergeRequestFullSchema(MergeRequestSchema):
    """One merge request, with the imported values."""

    source_project_id = fields.Computed(_source_project, type="integer")
    merged_at = _imported("merged_at", dt.datetime, inside="metrics")
    closed_at = _imported("latest_closed_at", dt.datetime, inside="metrics")
    merge_status = _imported("merge_status", str)
    merge_error = _imported("merge_error", str)
    sha = _imported("diff_head_sha", str)
    merge_commit_sha = _imported("merge_commit_sha", str)
    squash_commit_sha = _imported("squash_commit_sha", str)
    squash = _imported("squash", bool)
    discussion_locked = _imported("discussion_locked", bool)
    diff_refs = fields.Computed(_diff_refs, type="object")


class MergeRequestFilterSchema(Schema):
    """Filters and order of the list of merge requests."""

    state = fields.String(default="all", choices=STATES)
    milestone = TitleOrWord()
    labels = fields.Array(TitleOrWord())
    iids = fields.Array(fields.Integer())
    scope = fields.String(default="all", choices=SCOPES)
    author_id = fields.Integer()
    author_username = fields.String()
    source_branch = fields.String()
    target_branch = fields.String()
    search = fields.String()
    within = fields.Array(fields.String(choices=("title", "description")), data_key="in")
    created_after = fields.DateTime()
    created_before = fields.DateTime()
    updated_after = fields.DateTime()
    updated_before = fields.DateTime()
    order_by = fields.String(default="created_at", choices=("created_at", "updated_at"))
    sort = fields.String(default="desc", choices=("asc", "desc"))
