"""Schemas of projects (supporting resources reference, section 6)."""

from __future__ import annotations

from typing import Any

from marshmallow.validate import Length

from project_service.domain.access_levels import VISIBILITIES
from project_service.domain.projects import DISABLED, ENABLED, FEATURES, PAGES, PRIVATE, PUBLIC
from project_service.domain.schemas import STORED_FEATURES, ProjectSchema
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Nested, Schema

MAX_PATTERN_LENGTH = 255
LEVELS = (DISABLED, PRIVATE, ENABLED)
STORED_BOOLEANS = (
    "packages_enabled",
    "resolve_outdated_diff_discussions",
    "container_registry_enabled",
    "emails_disabled",
    "shared_runners_enabled",
    "lfs_enabled",
    "ci_forward_deployment_enabled",
    "public_builds",
    "only_allow_merge_if_pipeline_succeeds",
    "allow_merge_on_skipped_pipeline",
    "restrict_user_defined_variables",
    "request_access_enabled",
    "only_allow_merge_if_all_discussions_are_resolved",
    "remove_source_branch_after_merge",
    "printing_merge_request_link_enabled",
    "auto_devops_enabled",
    "autoclose_referenced_issues",
    "group_runners_enabled",
    "keep_latest_artifact",
    "ci_separated_caches",
    "enforce_auth_checks_on_uploads",
    "warn_about_potentially_unwanted_characters",
    "show_diff_preview_in_email",
    "ci_forward_deployment_rollback_allowed",
    "ci_allow_fork_pipelines_to_run_in_parent_project",
)
STORED_INTEGERS = ("ci_default_git_depth", "build_timeout")
STORED_TEXTS = (
    "build_coverage_regex",
    "ci_config_path",
    "suggestion_commit_message",
    "merge_commit_template",
    "squash_commit_template",
    "issue_branch_template",
    "merge_request_title_regex",
    "merge_request_title_regex_description",
)
STORED_CHOICES = {
    "auto_cancel_pending_pipelines": ("disabled", "enabled"),
    "build_git_strategy": ("fetch", "clone"),
    "merge_method": ("ff", "rebase_merge", "merge"),
    "auto_devops_deploy_strategy": ("continuous", "manual", "timed_incremental"),
    "squash_option": ("never", "always", "default_on", "default_off"),
    "resource_group_default_process_mode": ("unordered", "oldest_first", "newest_first", "newest_ready_first"),
    "ci_pipeline_variables_minimum_override_role": ("no_one_allowed", "developer", "maintainer", "owner"),
    "package_registry_access_level": (*LEVELS, PUBLIC),
    **{f"{feature}_access_level": LEVELS for feature in STORED_FEATURES},
}
EXPIRATION_POLICY = "container_expiration_policy"
STORED_SETTINGS = (*STORED_BOOLEANS, *STORED_INTEGERS, *STORED_TEXTS, *STORED_CHOICES, EXPIRATION_POLICY)
# settings of later releases, which archives of 13.8 do not have
LATER_SETTINGS = frozenset(
    (
        *STORED_BOOLEANS[STORED_BOOLEANS.index("group_runners_enabled") :],
        *STORED_TEXTS[STORED_TEXTS.index("merge_commit_template") :],
        *("squash_option", "resource_group_default_process_mode", "ci_pipeline_variables_minimum_override_role"),
        *("package_registry_access_level", EXPIRATION_POLICY),
        *(f"{feature}_access_level" for feature in STORED_FEATURES),
    )
)
# what later releases call settings: the name of the setting, and whether its value is the opposite
LATER_NAMES = {"emails_enabled": ("emails_disabled", True), "public_jobs": ("public_builds", False)}
NULLABLE = (*STORED_TEXTS, "allow_merge_on_skipped_pipeline", "ci_default_git_depth", "emails_disabled")
SWITCHES = {"issues_enabled": "issues", "merge_requests_enabled": "merge_requests", "wiki_enabled": "wiki"} | {
    "jobs_enabled": "builds",
    "snippets_enabled": "snippets",
}


class ProjectFullSchema(ProjectSchema):
    """A project as shown to its maintainers."""

    import_error = fields.String()
    build_git_strategy = fields.Computed(lambda project: project.attributes.get("build_git_strategy", "fetch"))


class PermissionSchema(Schema):
    """A role of the caller."""

    access_level = fields.Integer()
    notification_level = fields.Constant(3)


class PermissionsSchema(Schema):
    """The caller's direct role, and the highest one from the groups above."""

    project_access = Embedded(PermissionSchema, keep_none=True)
    group_access = Embedded(PermissionSchema, keep_none=True)


class ProjectWithAccessSchema(ProjectSchema):
    """A project with the roles of the caller."""

    permissions = Embedded(PermissionsSchema)


class ProjectFullWithAccessSchema(ProjectFullSchema):
    """A project as shown to its maintainers, with the roles of the caller."""

    permissions = Embedded(PermissionsSchema)


class ProjectFilterSchema(Schema):
    """Filters and order of lists of projects."""

    order_by = fields.String(
        default="created_at",
        choices=("id", "name", "path", "created_at", "updated_at", "last_activity_at", "similarity"),
    )
    sort = fields.String(default="desc", choices=("asc", "desc"))
    archived = fields.Boolean()
    visibility = fields.String(choices=VISIBILITIES)
    search = fields.String()
    search_namespaces = fields.Boolean()
    owned = fields.Boolean(default=False)
    starred = fields.Boolean(default=False)
    membership = fields.Boolean(default=False)
    with_issues_enabled = fields.Boolean(default=False)
    with_merge_requests_enabled = fields.Boolean(default=False)
    min_access_level = fields.Integer(choices=(10, 20, 30, 40, 50))
    id_after = fields.Integer()
    id_before = fields.Integer()
    last_activity_after = fields.DateTime()
    last_activity_before = fields.DateTime()
    simple = fields.Boolean(default=False)
    statistics = fields.Boolean(default=False)
    with_custom_attributes = fields.Boolean(default=False)


class ProjectListSchema(ProjectFilterSchema):
    """Filters and order of the list of all projects."""

    pagination = fields.String(choices=("keyset", "offset", "legacy"))


class GroupProjectsSchema(ProjectFilterSchema):
    """Filters and order of the list of a group's projects."""

    include_subgroups = fields.Boolean(default=False)
    with_shared = fields.Boolean(default=True)


class ProjectShowSchema(Schema):
    """Options for showing a project."""

    statistics = fields.Boolean(default=False)
    license = fields.Boolean(default=False)


class ExpirationPolicySchema(Schema):
    """When images of the container registry, which is not here, would be deleted; stored for clients."""

    cadence = fields.String(choices=("1d", "7d", "14d", "1month", "3month"))
    enabled = fields.Boolean()
    keep_n = fields.Integer()
    older_than = fields.String(choices=("7d", "14d", "30d", "60d", "90d"))
    name_regex = fields.String(validate=Length(max=MAX_PATTERN_LENGTH))
    name_regex_delete = fields.String(validate=Length(max=MAX_PATTERN_LENGTH))
    name_regex_keep = fields.String(validate=Length(max=MAX_PATTERN_LENGTH))


def _optional() -> dict[str, Any]:
    optional: dict[str, Any] = {
        "description": fields.String(),
        "visibility": fields.String(choices=VISIBILITIES),
        "default_branch": fields.String(),
        "tag_list": fields.Array(fields.String()),
        "topics": fields.Array(fields.String()),
        "avatar": fields.Picture(),
    }
    optional |= {name: fields.Boolean() for name in (*SWITCHES, *STORED_BOOLEANS)}
    optional |= {
        f"{feature}_access_level": fields.String(choices=(*LEVELS, PUBLIC) if feature == PAGES else LEVELS)
        for feature in FEATURES
    }
    optional |= {name: fields.Integer() for name in STORED_INTEGERS}
    optional |= {name: fields.String() for name in STORED_TEXTS}
    optional |= {name: fields.String(choices=choices) for name, choices in STORED_CHOICES.items()}
    optional |= {name: fields.Boolean() for name in (*LATER_NAMES, "service_desk_enabled")}
    optional[f"{EXPIRATION_POLICY}_attributes"] = Nested(ExpirationPolicySchema)
    return optional


ProjectOptionsSchema: Any = Schema.from_dict(_optional(), name="ProjectOptionsSchema")


class ProjectTransferSchema(Schema):
    """Where a project moves to."""

    namespace = fields.String(required=True, metadata={"description": "Id or full path of a namespace."})


class ProjectCreateSchema(ProjectOptionsSchema):
    """A new project."""

    at_least_one = ("name", "path")

    name = fields.String()
    path = fields.String()
    namespace_id = fields.Integer()
    initialize_with_readme = fields.Boolean()
    import_url = fields.String()


class ProjectUpdateSchema(ProjectOptionsSchema):
    """Changes of a project."""

    at_least_one = ("name", "path", *_optional())

    name = fields.String()
    path = fields.String()


class ProjectGroupLinkSchema(Schema):
    """A group that a project is shared with."""

    id = fields.Integer()
    project_id = fields.Integer()
    group_id = fields.Integer()
    group_access = fields.Integer(attribute="access_level")
    expires_at = fields.Day()
