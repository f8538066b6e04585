"""Schemas of users, namespaces and projects inside other responses, with few fields."""

from __future__ import annotations

from typing import Any

from project_service.domain.access_levels import Visibility
from project_service.domain.accounts.user_pictures import picture_address
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import GROUP, Namespace
from project_service.domain.projects import DISABLED, ENABLED, Project
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Schema

# features that later releases divide others into; their levels are stored for clients
STORED_FEATURES = (
    "feature_flags",
    "infrastructure",
    "model_experiments",
    "model_registry",
    "container_registry",
)
EXPIRATION_POLICY_DEFAULTS = {
    "cadence": "1d",
    "enabled": False,
    "keep_n": 10,
    "older_than": "90d",
    "name_regex": ".*",
    "name_regex_keep": None,
    "next_run_at": None,
}


def user_url(user: User) -> str:
    """The page of a user."""
    return urls.absolute(f"/{user.username}")


def namespace_url(namespace: Namespace) -> str:
    """The page of a namespace, in the form the API shows."""
    prefix = "/groups" if namespace.kind == GROUP else ""
    return urls.absolute(f"{prefix}/{namespace.full_path}")


def project_url(project: Project) -> str:
    """The page of a project."""
    return urls.absolute(f"/{project.full_path}")


class UserBasicSchema(Schema):
    """A user inside another answer."""

    id = fields.Integer()
    name = fields.String()
    username = fields.String()
    state = fields.String()
    avatar_url = fields.Computed(picture_address)
    web_url = fields.Computed(user_url)


class NamespaceBasicSchema(Schema):
    """A namespace inside a project."""

    id = fields.Integer()
    name = fields.String()
    path = fields.String()
    kind = fields.String()
    full_path = fields.String()
    parent_id = fields.Integer()
    avatar_url = fields.OwnAddress()
    web_url = fields.Computed(namespace_url)


class GroupLinkSchema(Schema):
    """A group that something is shared with."""

    group_id = fields.Integer()
    group_name = fields.Computed(lambda share: share.group.name)
    group_full_path = fields.Computed(lambda share: share.group.full_path)
    group_access_level = fields.Integer(attribute="access_level")
    expires_at = fields.Day()


class ProjectIdentitySchema(Schema):
    """What a project is called; shared with the records of exports and imports."""

    id = fields.Integer()
    description = fields.String()
    name = fields.String()
    name_with_namespace = fields.String()
    path = fields.String()
    path_with_namespace = fields.String(attribute="full_path")
    created_at = fields.Moment()


class ProjectBasicSchema(ProjectIdentitySchema):
    """The fields of a project for every caller who may see it."""

    default_branch = fields.String()
    tag_list = fields.Array(fields.String())
    topics = fields.Computed(lambda project: project.tag_list, type="array", metadata={"items": {"type": "string"}})
    ssh_url_to_repo = fields.Computed(lambda project: f"git@{urls.host()}:{project.full_path}.git")
    http_url_to_repo = fields.Computed(lambda project: f"{project_url(project)}.git")
    web_url = fields.Computed(project_url)
    readme_url = fields.Constant(None)
    avatar_url = fields.OwnAddress()
    forks_count = fields.Constant(0)
    star_count = fields.Constant(0)
    last_activity_at = fields.Moment()
    namespace = Embedded(NamespaceBasicSchema)
    visibility = fields.Computed(lambda project: Visibility(project.visibility).text)


def _links(project: Project) -> dict[str, str]:
    own = urls.absolute_api(f"/projects/{project.id}")
    return {"self": own} | {
        name: f"{own}/{path}"
        for name, path in (
            ("issues", "issues"),
            ("merge_requests", "merge_requests"),
            ("repo_branches", "repository/branches"),
            ("labels", "labels"),
            ("events", "events"),
            ("members", "members"),
        )
    }


def _switched_on(feature: str) -> fields.Computed:
    return fields.Computed(lambda project: getattr(project, f"{feature}_access_level") != DISABLED, type="boolean")


def _attribute(name: str, default: Any) -> fields.Computed:
    """A setting of a project that the service keeps without acting on it."""
    kinds = {bool: "boolean", int: "integer", str: "string", list: "array"}
    return fields.Computed(lambda project: project.attributes.get(name, default), type=kinds.get(type(default)))


def _has_open_issues(project: Project) -> bool:
    return getattr(project, "open_issues_count", None) is not None


class ProjectSchema(ProjectBasicSchema):
    """The fields of a project for signed-in users; ``shares`` and ``open_issues_count`` are set for the whole page."""

    _links = fields.Computed(_links, type="object")
    packages_enabled = _attribute("packages_enabled", True)
    empty_repo = fields.Computed(lambda project: project.default_branch is None, type="boolean")
    archived = fields.Boolean()
    visibility = fields.Computed(lambda project: Visibility(project.visibility).text)
    owner = Embedded(UserBasicSchema, attribute="namespace.owner")
    resolve_outdated_diff_discussions = _attribute("resolve_outdated_diff_discussions", False)
    container_registry_enabled = _attribute("container_registry_enabled", True)
    issues_enabled = _switched_on("issues")
    merge_requests_enabled = _switched_on("merge_requests")
    wiki_enabled = _switched_on("wiki")
    jobs_enabled = _switched_on("builds")
    snippets_enabled = _switched_on("snippets")
    service_desk_enabled = fields.Constant(False)
    service_desk_address = fields.Constant(None)
    can_create_merge_request_in = fields.Constant(False)
    issues_access_level = fields.String()
    repository_access_level = fields.String()
    merge_requests_access_level = fields.String()
    forking_access_level = fields.String()
    wiki_access_level = fields.String()
    builds_access_level = fields.String()
    snippets_access_level = fields.String()
    pages_access_level = fields.String()
    operations_access_level = fields.String()
    analytics_access_level = fields.String()
    security_and_compliance_access_level = fields.String()
    emails_disabled = _attribute("emails_disabled", None)
    shared_runners_enabled = _attribute("shared_runners_enabled", True)
    lfs_enabled = _attribute("lfs_enabled", True)
    creator_id = fields.Integer()
    import_status = fields.String()
    open_issues_count = fields.ConditionalField(
        _has_open_issues, lambda project: project.open_issues_count, type="integer"
    )
    ci_default_git_depth = _attribute("ci_default_git_depth", 50)
    ci_forward_deployment_enabled = _attribute("ci_forward_deployment_enabled", True)
    public_jobs = _attribute("public_builds", True)
    build_timeout = _attribute("build_timeout", 3600)
    auto_cancel_pending_pipelines = _attribute("auto_cancel_pending_pipelines", "enabled")
    build_coverage_regex = _attribute("build_coverage_regex", None)
    ci_config_path = _attribute("ci_config_path", None)
    shared_with_groups = fields.Computed(
        lambda project: GroupLinkSchema.dump_value(getattr(project, "shares", ())), type="array"
    )
    only_allow_merge_if_pipeline_succeeds = _attribute("only_allow_merge_if_pipeline_succeeds", False)
    allow_merge_on_skipped_pipeline = _attribute("allow_merge_on_skipped_pipeline", None)
    restrict_user_defined_variables = _attribute("restrict_user_defined_variables", False)
    request_access_enabled = _attribute("request_access_enabled", True)
    only_allow_merge_if_all_discussions_are_resolved = _attribute(
        "only_allow_merge_if_all_discussions_are_resolved", False
    )
    remove_source_branch_after_merge = _attribute("remove_source_branch_after_merge", True)
    printing_merge_request_link_enabled = _attribute("printing_merge_request_link_enabled", True)
    merge_method = _attribute("merge_method", "merge")
    suggestion_commit_message = _attribute("suggestion_commit_message", None)
    auto_devops_enabled = _attribute("auto_devops_enabled", False)
    auto_devops_deploy_strategy = _attribute("auto_devops_deploy_strategy", "continuous")
    autoclose_referenced_issues = _attribute("autoclose_referenced_issues", True)
    releases_access_level = fields.String()
    environments_access_level = fields.String()
    monitor_access_level = fields.String()
    feature_flags_access_level = _attribute("feature_flags_access_level", ENABLED)
    infrastructure_access_level = _attribute("infrastructure_access_level", ENABLED)
    model_experiments_access_level = _attribute("model_experiments_access_level", ENABLED)
    model_registry_access_level = _attribute("model_registry_access_level", ENABLED)
    container_registry_access_level = _attribute("container_registry_access_level", ENABLED)
    package_registry_access_level = _attribute("package_registry_access_level", ENABLED)
    emails_enabled = fields.Computed(lambda project: not project.attributes.get("emails_disabled"), type="boolean")
    squash_option = _attribute("squash_option", "default_off")
    merge_commit_template = _attribute("merge_commit_template", None)
    squash_commit_template = _attribute("squash_commit_template", None)
    issue_branch_template = _attribute("issue_branch_template", None)
    merge_request_title_regex = _attribute("merge_request_title_regex", None)
    merge_request_title_regex_description = _attribute("merge_request_title_regex_description", None)
    group_runners_enabled = _attribute("group_runners_enabled", True)
    keep_latest_artifact = _attribute("keep_latest_artifact", True)
    ci_separated_caches = _attribute("ci_separated_caches", True)
    enforce_auth_checks_on_uploads = _attribute("enforce_auth_checks_on_uploads", True)
    warn_about_potentially_unwanted_characters = _attribute("warn_about_potentially_unwanted_characters", True)
    show_diff_preview_in_email = _attribute("show_diff_preview_in_email", True)
    ci_forward_deployment_rollback_allowed = _attribute("ci_forward_deployment_rollback_allowed", True)
    ci_allow_fork_pipelines_to_run_in_parent_project = _attribute(
        "ci_allow_fork_pipelines_to_run_in_parent_project", True
    )
    resource_group_default_process_mode = _attribute("resource_group_default_process_mode", "unordered")
    ci_pipeline_variables_minimum_override_role = _attribute("ci_pipeline_variables_minimum_override_role", "developer")
    container_expiration_policy = fields.Computed(
        lambda project: EXPIRATION_POLICY_DEFAULTS | project.attributes.get("container_expiration_policy", {}),
        type="object",
    )


class ShareCreateSchema(Schema):
    """A group to share a group or project with, and the role its members get at most."""

    group_id = fields.Integer(required=True)
    group_access = fields.Integer(required=True, choices=(10, 20, 30, 40, 50))
    expires_at = fields.Date()
