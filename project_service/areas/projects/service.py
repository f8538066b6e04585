"""Changes of projects."""

from __future__ import annotations

from typing import Any

from project_service.access import audit
from project_service.access.abilities import Ability, judge
from project_service.access.identity import Caller
from project_service.access.roles import forget_roles
from project_service.areas.projects import queries
from project_service.areas.projects.schemas import EXPIRATION_POLICY, LATER_NAMES, NULLABLE, STORED_SETTINGS, SWITCHES
from project_service.domain import instance_settings, removal
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts.users import User
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.events.models import Action
from project_service.domain.events.recording import record
from project_service.domain.hooks.place_payloads import (
    CREATED,
    REMOVED,
    RENAMED,
    TRANSFERRED,
    UPDATED,
    announce_project,
)
from project_service.domain.memberships import Membership, Share
from project_service.domain.namespaces import Group, Namespace
from project_service.domain.notifications.starting_rules import add_starting_rules
from project_service.domain.paths import path_registry, path_rules
from project_service.domain.projects import DISABLED, ENABLED, FEATURES, Project
from project_service.domain.repositories.models import may_be_default
from project_service.domain.repositories.refs import is_like_sha, is_valid_name
from project_service.domain.tracker import label_rules, milestone_rules
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Conflict, Invalid, NotFound, RecordNotFound, ServiceError

MAX_DESCRIPTION_LENGTH = 2000
OPERATIONS_FEATURES = ("monitor", "environments", "feature_flags", "infrastructure")
REGISTRIES = {
    "packages_enabled": "package_registry_access_level",
    "container_registry_enabled": "container_registry_access_level",
}
MAX_TOPICS_LENGTH, MAX_SETTING_LENGTH = 10_000, 10_000  # characters; not limits of GitLab


class ProjectLimitReached(ServiceError):
    """A user has reached the limit of personal projects."""

    status = 403

    def __init__(self, limit: int) -> None:
        super().__init__([f"Your project limit is {limit} projects! Please contact your administrator to increase it"])

    def body(self) -> dict[str, Any]:
        """Return an array under ``error``, like GitLab for this error."""
        return {"error": self.message}


def create_project(author: User, namespace: Namespace, **fields: Any) -> Project:
    """Create a project; in a personal namespace its owner becomes a member."""
    name, path = fields.pop("name", None), fields.pop("path", None)
    visibility = fields.pop("visibility", None) or instance_settings.setting("default_project_visibility")
    project = Project(
        name=name or path or "",
        path=path or path_from(name or ""),
        namespace=namespace,
        namespace_id=namespace.id,
        creator_id=author.id,
        visibility=Visibility.of(visibility),
        attributes={},
    )
    with db.session.no_autoflush:
        apply(project, fields)
        check(project, namespace, new=True, chooser=author)
    if namespace.kind == "user":
        lock_row(author, "projects_limit")  # concurrent requests must not exceed the limit together
        if queries.count_personal(author) >= author.projects_limit:
            raise ProjectLimitReached(author.projects_limit)
    try:
        path_registry.store_project(project, _taken())
    except NotFound as error:  # the namespace has been deleted meanwhile
        raise namespace_is_unusable() from error
    if namespace.owner_id is not None:
        _add_owner(project, namespace.owner_id)
    add_starting_rules(project)
    record(author, Action.CREATED, project)
    audit.record("project_created", project, "Added project", add="project")
    announce_project(project, CREATED)
    return project


def check_changes(user: Caller, project: Project, fields: dict[str, Any]) -> None:
    """Raise ``Forbidden`` if the fields rename a project or change its visibility and the user is not its owner."""
    if fields.get("name") or fields.get("visibility"):
        judge(user, Ability.OWN_PROJECT, project)


def update_project(requester: Caller, project: Project, **fields: Any) -> Project:
    """Change a project; ``check_changes`` was called before."""
    branch = fields.get("default_branch", project.default_branch) or ""
    is_new = branch != (project.default_branch or "")
    if is_new and (_is_no_branch_name(branch) or not may_be_default(project, branch)):
        raise Invalid(base=f"Could not change HEAD: branch '{branch}' does not exist")
    former, former_path = _audited(project), project.full_path
    lock_row(project, "attributes")  # concurrent requests change different keys of it
    if fields.get("name") is not None:
        project.name = fields["name"]
    if fields.get("path") is not None:
        project.path = fields["path"]
    before = project.visibility
    if fields.get("visibility"):
        project.visibility = Visibility.of(fields["visibility"])
    with db.session.no_autoflush:
        apply(project, fields)
        check(project, project.namespace, new=False, chooser=None if project.visibility == before else requester)
    path_registry.move_project(project, Invalid(path=path_rules.TAKEN))
    now = _audited(project)
    audit.record_changes("project", project, former, now)
    if project.full_path != former_path:
        announce_project(project, RENAMED, former_path)
    elif now != former:
        announce_project(project, UPDATED)
    return project


def transfer_project(project: Project, namespace: Namespace) -> Project:
    """Move a project to another namespace, in which the caller may create projects.

    Raises:
        Invalid: it is there already, its name, path or visibility does not fit there, or the owner of a personal
            namespace has reached the limit of projects.

    """
    if namespace.id == project.namespace_id:
        raise Invalid(namespace="is where the project is already")
    left, former_path = project.namespace, project.full_path
    former = {"namespace": left.full_path}
    for namespace_to_lock in sorted((project.namespace, namespace), key=lambda either: either.id):
        path_registry.lock_tree(namespace_to_lock)
    owner = db.session.get(User, namespace.owner_id) if namespace.owner_id is not None else None
    if owner is not None:
        lock_row(owner, "projects_limit")
        if queries.count_personal(owner) >= owner.projects_limit:
            raise Invalid(namespace=f"has reached the limit of {owner.projects_limit} projects")
    with db.session.no_autoflush:
        project.namespace, project.namespace_id = namespace, namespace.id
        check(project, namespace, new=False, chooser=None)
    path_registry.move_project(project, Invalid(path=path_rules.TAKEN))
    label_rules.keep_group_labels(project, left)
    milestone_rules.keep_group_milestones(project, left)
    if owner is not None and not queries.is_direct_member(project, owner):
        _add_owner(project, owner.id)
    audit.record_changes("project", project, former, {"namespace": namespace.full_path})
    announce_project(project, TRANSFERRED, former_path)
    forget_roles()
    return project


def delete_project(project: Project) -> None:
    """Hide a project; a background job removes it."""
    audit.record("project_destroyed", project, "Project destroyed", remove="project")
    announce_project(project, REMOVED)
    path_registry.start_deleting_project(project)
    removal.remove_project.defer(project.id)


def archive_project(project: Project, *, archived: bool) -> Project:
    """Archive or unarchive a project."""
    if project.archived != archived:
        word = "archived" if archived else "unarchived"
        audit.record(f"project_{word}", project, f"Project {word}")
    project.archived = archived
    return project


def share_project(project: Project, group: Group, *, group_access: int, expires_at: Any = None) -> Share:
    """Share a project with a group; its members have at most the given role."""
    if expires_at is not None and expires_at < clock.today():
        raise Invalid(expires_at="cannot be a date in the past")
    path_registry.lock_tree(group)
    share = Share(project_id=project.id, group_id=group.id, access_level=group_access, expires_at=expires_at)
    add_unique(share, Conflict("The group is already shared with this project"))
    target, role = AuditTarget("Group", group.id, group.full_path), Role(group_access).title
    audit.record("project_group_link_created", project, f"Added group link as {role}", target=target)
    return share


def unshare_project(project: Project, group_id: int) -> None:
    """Stop sharing a project with a group."""
    share = queries.share_of(project, group_id)
    if share is None:
        raise RecordNotFound
    delete_locked(share)
    target = AuditTarget("Group", group_id, db.session.get_one(Group, group_id).full_path)
    audit.record("project_group_link_deleted", project, "Deleted group link", target=target)


def _audited(project: Project) -> dict[str, Any]:
    levels = [f"{feature}_access_level" for feature in FEATURES]
    return audit.values_of(project, "name", "path", "default_branch", audit.VISIBILITY, *levels)


def check(project: Project, namespace: Namespace, *, new: bool, chooser: User | Caller | None) -> None:
    """Validate name, path and visibility of a project; raise ``Invalid`` with all errors.

    ``chooser`` has chosen the visibility: only administrators may choose restricted ones.
    """
    problems: dict[str, list[str]] = {}
    if texts := path_rules.project_name_problems(project.name):
        problems["name"] = texts
    elif queries.name_taken(project):
        problems["name"] = [path_rules.TAKEN]
    if texts := path_rules.project_path_problems(project.path):
        problems["path"] = texts
    elif path_registry.path_taken(f"{namespace.full_path}/{project.path}", besides=None if new else project):
        problems["path"] = [path_rules.TAKEN]
    restricted = path_registry.restriction_problem(project.visibility, chooser.admin) if chooser else None
    if text := path_registry.visibility_problem(project.visibility, namespace, "project") or restricted:
        problems["visibility_level"] = [text]
    if len(project.description or "") > MAX_DESCRIPTION_LENGTH:
        problems["description"] = [f"is too long (maximum is {MAX_DESCRIPTION_LENGTH} characters)"]
    if new and _is_no_branch_name(project.default_branch or ""):
        problems["default_branch"] = ["is invalid"]
    if sum(map(len, project.tag_list or ())) > MAX_TOPICS_LENGTH:
        problems["topics"] = [f"is too long (maximum is {MAX_TOPICS_LENGTH} characters)"]
    if any(isinstance(value, str) and len(value) > MAX_SETTING_LENGTH for value in (project.attributes or {}).values()):
        problems["settings"] = [f"is too long (maximum is {MAX_SETTING_LENGTH} characters)"]
    if problems:
        if new and ("name" in problems or "path" in problems):
            problems["limit_reached"] = []
        raise Invalid(**problems)


def _is_no_branch_name(name: str) -> bool:
    return bool(name) and (is_like_sha(name) or not is_valid_name(name))


def namespace_is_unusable() -> Invalid:
    """Return the error of a namespace in which the caller may not create projects."""
    return Invalid(namespace="is not valid", limit_reached=[])


def _taken() -> Invalid:
    return Invalid(name=path_rules.TAKEN, path=path_rules.TAKEN, limit_reached=[])


def path_from(name: str) -> str:
    """Return the default path of a project."""
    return name if not path_rules.project_path_problems(name) else path_rules.slug(name)


def _add_owner(project: Project, owner_id: int) -> None:
    db.session.add(
        Membership(user_id=owner_id, project_id=project.id, access_level=Role.MAINTAINER, created_by_id=owner_id)
    )
    db.session.flush()


def _apply_later_features(project: Project, fields: dict[str, Any]) -> None:
    """Let the settings of operations and registries, and what later releases divided them into, agree."""
    operations = fields.get("operations_access_level")
    for feature in OPERATIONS_FEATURES if operations else ():
        if not fields.get(f"{feature}_access_level"):
            fields[f"{feature}_access_level"] = operations
    for switch, level in REGISTRIES.items():
        if fields.get(level):
            fields[switch] = fields[level] != DISABLED
        elif fields.get(switch) is not None:
            fields[level] = ENABLED if fields[switch] else DISABLED


def apply(project: Project, fields: dict[str, Any]) -> None:
    """Set the fields that need no further validation."""
    _apply_later_features(project, fields)
    if "description" in fields:
        project.description = fields["description"]
    if "default_branch" in fields:
        project.default_branch = fields["default_branch"] or None
    tags = fields.get("tag_list") if fields.get("topics") is None else fields["topics"]
    if tags is not None:
        project.tag_list = list(dict.fromkeys(tags))
    for feature in FEATURES:
        if fields.get(f"{feature}_access_level"):
            setattr(project, f"{feature}_access_level", fields[f"{feature}_access_level"])
    for switch, feature in SWITCHES.items():
        if fields.get(switch) is not None:
            setattr(project, f"{feature}_access_level", ENABLED if fields[switch] else DISABLED)
    _apply_stored(project, fields)


def _apply_stored(project: Project, fields: dict[str, Any]) -> None:
    for later, (name, is_opposite) in LATER_NAMES.items():
        if fields.get(later) is not None:
            fields[name] = fields[later] != is_opposite
    stored = {
        name: fields[name]
        for name in STORED_SETTINGS
        if name in fields and (fields[name] is not None or name in NULLABLE)
    }
    policy = fields.get(f"{EXPIRATION_POLICY}_attributes")
    if policy is not None:
        changed_policy = {
            name: value for name, value in policy.items() if value is not None or name == "name_regex_keep"
        }
        if "name_regex_delete" in changed_policy:
            changed_policy["name_regex"] = changed_policy.pop("name_regex_delete")
        stored[EXPIRATION_POLICY] = {**(project.attributes or {}).get(EXPIRATION_POLICY, {}), **changed_policy}
    if stored:
        project.attributes = {**(project.attributes or {}), **stored}
