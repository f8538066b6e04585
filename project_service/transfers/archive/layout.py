"""Layout of an archive: files, relations and keys of rows (archive format reference, sections 1, 3 and 4)."""

from __future__ import annotations

import hashlib
import re
from typing import Any

FORMAT = "0.2.4"
# the release of GitLab whose archive format is written
RELEASE = "13.8.0"
REVISION = "project-service"
PROJECT = "project"

LISTS = (
    "labels",
    "milestones",
    "issues",
    "snippets",
    "releases",
    "project_members",
    "merge_requests",
    "external_pull_requests",
    "ci_pipelines",
    "triggers",
    "pipeline_schedules",
    "protected_branches",
    "protected_tags",
    "custom_attributes",
    "prometheus_metrics",
    "project_badges",
    "boards",
)
SINGLES = (
    "auto_devops",
    "container_expiration_policy",
    "project_feature",
    "ci_cd_settings",
    "error_tracking_setting",
    "metrics_setting",
)
RELATIONS = (*LISTS, *SINGLES)
# single objects of paid editions: written if they were imported (archive format reference, section 4)
SOMETIMES = ("service_desk_setting", "security_setting", "push_rule")
OBJECTS = frozenset({*SINGLES, *SOMETIMES})
# relations of members and settings: read after or before the others
MEMBERS, PROTECTED_BRANCHES, PROTECTED_TAGS, ERROR_TRACKING, FEATURES, AUTO_DEVOPS, CI_CD = (
    "project_members",
    "protected_branches",
    "protected_tags",
    "error_tracking_setting",
    "project_feature",
    "auto_devops",
    "ci_cd_settings",
)
# imported by the last step, not row by row
IMPORTED_AT_THE_END = frozenset({PROTECTED_BRANCHES, PROTECTED_TAGS, ERROR_TRACKING})
# relations of old archives that are not imported, and the name of the project (archive format reference, section 4)
IGNORED = frozenset({"services", "hooks", "variables", PROJECT})
RENAMED = {"pipelines": "ci_pipelines"}
# rows of all other relations are stored in ``archived_rows``
KNOWN = frozenset({*RELATIONS, *SOMETIMES, *RENAMED, *IGNORED})

RELATION_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
TREE_FILE = re.compile(r"tree/project/([a-z][a-z0-9_]{0,99})\.ndjson")
UPLOAD = re.compile(r"uploads/[0-9a-fA-F]{10,64}/[^/]{1,255}")
AVATAR = re.compile(r"avatar/[^/]{1,255}")
LFS_OBJECT = re.compile(r"lfs-objects/[0-9a-f]{64}")
SNIPPET_BUNDLE = re.compile(r"snippets/[0-9a-f]{64}\.bundle")
PASSED_FILES = (UPLOAD, AVATAR, LFS_OBJECT, SNIPPET_BUNDLE)
FOLDERS = frozenset({"uploads", "avatar", "lfs-objects", "snippets"})
LFS_TYPES = "lfs-objects.json"
LFS_OF_PROJECT = 0
TEXTS = ("VERSION", "GITLAB_VERSION", "GITLAB_REVISION")
VERSION = re.compile(r"[0-9]+(?:\.[0-9a-zA-Z]+)*(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")
SEGMENT = re.compile(r"[0-9]+|[a-zA-Z]+")
BUNDLE = re.compile(r"project(\.wiki|\.design)?\.bundle")


def segments_of(version: str) -> list[int | str]:
    """Return the segments by which Ruby's ``Gem::Version`` compares: numbers without final zeros, and words.

    A ``-`` begins another version, one before the release.
    """
    parts = SEGMENT.findall(version.replace("-", ".pre."))
    segments = [int(part) if part.isdecimal() else part for part in parts]
    while segments and segments[-1] == 0:
        segments.pop()
    return segments


def snippet_bundle(said: str) -> str:
    """Return the path of the bundle of a snippet; ``said`` is its title, description and timestamps."""
    return f"snippets/{hashlib.sha256(said.encode()).hexdigest()}.bundle"


# references to users (archive format reference, section 6.1)
USER_REFERENCES = frozenset(
    {
        "author_id",
        "assignee_id",
        "updated_by_id",
        "merged_by_id",
        "latest_closed_by_id",
        "user_id",
        "created_by_id",
        "last_edited_by_id",
        "merge_user_id",
        "resolved_by_id",
        "closed_by_id",
        "owner_id",
    }
)
# keys that end in _id and are no ids of rows (archive format reference, section 5)
UNCHANGED_IDS = frozenset({"commit_id", "discussion_id"})
# relations of users to a row: of rows whose users are mapped to the same account one is stored
# (archive format reference, section 6.3)
USER_RELATIONS = frozenset({"issue_assignees", "merge_request_assignees", "merge_request_reviewers"})
# columns of arbitrary data, by the key of their rows: keys inside are no columns, even if they look like references or
# secrets (such as keywords of the configuration of a pipeline)
_OF_JOBS = frozenset({"options", "yaml_variables"})
_OF_NOTES = frozenset({"position", "original_position", "change_position", "st_diff"})
FREE_FORM_COLUMNS = {
    **dict.fromkeys(("statuses", "builds", "bridges", "generic_commit_statuses"), _OF_JOBS),
    **dict.fromkeys(("notes", "commit_notes"), _OF_NOTES),
    "metadata": frozenset({"config_options", "config_variables"}),
    "evidences": frozenset({"summary"}),
    "merge_requests": frozenset({"merge_params"}),
    "merge_request_diff_commits": frozenset({"trailers"}),
}
NOT_FREE: frozenset[str] = frozenset()
# keys that are never imported, in any row: secrets, URLs to fetch from, and nested attributes
DROPPED = re.compile(
    r"(?:\A|_)tokens?(?:_encrypted)?\Z|\A(?:encrypted_|secret(?!\w*_enabled\Z))|\Aimport_url\Z|\Aremote_\w+_(?:urls?|request_header)\Z"
    r"|(?<!\Acustom_)attributes|\Acustom_attributes."
)

ISSUE = (
    "title",
    "author_id",
    "project_id",
    "created_at",
    "updated_at",
    "description",
    "iid",
    "updated_by_id",
    "weight",
    "confidential",
    "due_date",
    "lock_version",
    "time_estimate",
    "relative_position",
    "last_edited_at",
    "last_edited_by_id",
    "discussion_locked",
    "closed_at",
    "closed_by_id",
    "health_status",
    "external_key",
    "issue_type",
    "state",
)
# default values of columns that are never empty in GitLab
NOTHING: dict[str, Any] = {}
ISSUE_DEFAULTS: dict[str, Any] = {"lock_version": 0, "time_estimate": 0}
ISSUE_NESTED = (
    "events",
    "timelogs",
    "notes",
    "label_links",
    "resource_label_events",
    "designs",
    "design_versions",
    "issue_assignees",
    "zoom_meetings",
    "award_emoji",
)
MERGE_REQUEST = (
    "target_branch",
    "source_branch",
    "source_project_id",
    "author_id",
    "assignee_id",
    "title",
    "created_at",
    "updated_at",
    "merge_status",
    "target_project_id",
    "iid",
    "description",
    "updated_by_id",
    "merge_error",
    "merge_params",
    "merge_when_pipeline_succeeds",
    "merge_user_id",
    "merge_commit_sha",
    "approvals_before_merge",
    "rebase_commit_sha",
    "in_progress_merge_commit_sha",
    "lock_version",
    "time_estimate",
    "squash",
    "last_edited_at",
    "last_edited_by_id",
    "discussion_locked",
    "allow_maintainer_to_push",
    "squash_commit_sha",
    "merge_ref_sha",
    "diff_head_sha",
    "source_branch_sha",
    "target_branch_sha",
    "state",
)
MERGE_REQUEST_DEFAULTS = ISSUE_DEFAULTS | {
    "merge_status": "unchecked",
    "merge_when_pipeline_succeeds": False,
    "squash": False,
}
MERGE_REQUEST_NESTED = ("award_emoji", "notes", "events", "timelogs", "label_links", "resource_label_events")
DEFAULTS = {"issues": ISSUE_DEFAULTS, "merge_requests": MERGE_REQUEST_DEFAULTS}
NOTE = (
    "note",
    "noteable_type",
    "author_id",
    "created_at",
    "updated_at",
    "project_id",
    "attachment",
    "line_code",
    "commit_id",
    "system",
    "st_diff",
    "updated_by_id",
    "position",
    "original_position",
    "resolved_at",
    "resolved_by_id",
    "discussion_id",
    "change_position",
    "resolved_by_push",
    "confidential",
    "type",
)
NOTE_NESTED = ("award_emoji", "events")
MILESTONE = (
    "title",
    "project_id",
    "description",
    "due_date",
    "created_at",
    "updated_at",
    "state",
    "iid",
    "start_date",
    "group_id",
)
LABEL = (
    "title",
    "color",
    "project_id",
    "created_at",
    "updated_at",
    "template",
    "description",
    "group_id",
    "type",
)
SNIPPET = (
    "title",
    "content",
    "author_id",
    "project_id",
    "created_at",
    "updated_at",
    "file_name",
    "type",
    "visibility_level",
    "description",
)
SNIPPET_NESTED = ("award_emoji", "notes")
EVENT = ("project_id", "author_id", "created_at", "updated_at", "target_type", "group_id", "fingerprint", "action")
