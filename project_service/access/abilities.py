"""Abilities and their rules, in one table.

A caller has an ability if all of its rules hold. ``judge`` hides (404) before it refuses (403), as the common
reference, section 7.1, demands. Views and services check abilities; they read a role only to compare it with data, such
as the level of a protected branch (docs/decisions/one-ability-table.md).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from project_service.access.identity import Caller
from project_service.access.rules import (
    Rule,
    anybody,
    at_least,
    builds_are_on,
    has,
    has_from,
    has_issues_or_merge_requests,
    imports_are_on,
    is_admin,
    is_internal_or_member,
    is_loaded,
    is_member,
    is_not_archived,
    is_signed_in,
    may_change_issue,
    may_change_note,
    may_comment,
    may_create_groups,
    may_create_projects,
    may_create_subgroups,
    may_see_issue,
    may_see_note,
    sees,
    sees_confidential,
)
from project_service.domain.access_levels import Role
from project_service.domain.namespaces import Group
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.kit.http.errors import Forbidden, NotFound, RecordNotFound, ServiceError


class Ability(enum.Enum):
    """Something a caller may or may not do; the comment of a block names the subject."""

    # the instance
    ANYBODY = enum.auto()
    SIGNED_IN = enum.auto()
    ADMINISTER = enum.auto()
    CREATE_GROUP = enum.auto()
    IMPORT_PROJECTS = enum.auto()
    # a project
    READ_PROJECT = enum.auto()
    ADMIN_PROJECT = enum.auto()
    OWN_PROJECT = enum.auto()
    READ_PROJECT_AUDIT_EVENTS = enum.auto()
    EXPORT_PROJECT = enum.auto()
    ADMIN_VARIABLES = enum.auto()
    ADMIN_PROJECT_MEMBERS = enum.auto()
    ADMIN_PROJECT_TOKENS = enum.auto()
    ADMIN_PROTECTED_TAGS = enum.auto()
    ADMIN_PROTECTED_BRANCHES = enum.auto()
    ADMIN_OPERATIONS = enum.auto()
    READ_NOTIFICATIONS = enum.auto()
    ADMIN_NOTIFICATIONS = enum.auto()
    READ_ALERTS = enum.auto()
    READ_HEARTBEATS = enum.auto()
    ADMIN_HEARTBEATS = enum.auto()
    READ_SILENCES = enum.auto()
    CREATE_SILENCES = enum.auto()  # and change one's own
    ADMIN_SILENCES = enum.auto()
    READ_ERRORS = enum.auto()
    UPDATE_ERRORS = enum.auto()
    CREATE_ERROR_ISSUES = enum.auto()
    DELETE_ERRORS = enum.auto()
    READ_VULNERABILITIES = enum.auto()
    DISMISS_VULNERABILITIES = enum.auto()
    CREATE_SECURITY_REPORTS = enum.auto()
    ADMIN_ENVIRONMENTS = enum.auto()
    READ_ISSUES = enum.auto()
    CREATE_ISSUES = enum.auto()
    UPLOAD_FILES = enum.auto()
    ADMIN_ISSUES = enum.auto()
    READ_MILESTONES = enum.auto()
    ADMIN_MILESTONES = enum.auto()
    READ_MERGE_REQUESTS = enum.auto()
    READ_CODE = enum.auto()
    CONTRIBUTE_CODE = enum.auto()  # push, once the project is neither archived nor being imported
    PUSH_CODE = enum.auto()
    READ_RELEASES = enum.auto()
    ADMIN_RELEASES = enum.auto()
    READ_WIKI = enum.auto()
    READ_SNIPPETS = enum.auto()
    READ_INTERNAL_SNIPPETS = enum.auto()
    READ_PRIVATE_SNIPPETS = enum.auto()
    READ_CONFIDENTIAL = enum.auto()  # confidential issues and internal notes of others
    READ_LABELS = enum.auto()
    ADMIN_LABELS = enum.auto()
    # an issue
    READ_ISSUE = enum.auto()
    CHANGE_ISSUE = enum.auto()
    COMMENT_ON_ISSUE = enum.auto()
    DELETE_ISSUE = enum.auto()
    # a note of an issue
    READ_NOTE = enum.auto()
    CHANGE_NOTE = enum.auto()
    # a group
    READ_GROUP = enum.auto()
    ADMIN_GROUP = enum.auto()
    ADMIN_GROUP_LABELS = enum.auto()
    ADMIN_GROUP_MILESTONES = enum.auto()
    ADMIN_GROUP_TOKENS = enum.auto()
    READ_GROUP_AUDIT_EVENTS = enum.auto()
    READ_GROUP_NOTIFICATIONS = enum.auto()
    ADMIN_GROUP_NOTIFICATIONS = enum.auto()
    CREATE_SUBGROUP = enum.auto()
    # a namespace of either kind
    READ_NAMESPACE = enum.auto()
    OWN_NAMESPACE = enum.auto()
    CREATE_PROJECT = enum.auto()


RULES: dict[Ability, tuple[Rule, ...]] = {
    Ability.ANYBODY: (anybody,),
    Ability.SIGNED_IN: (is_signed_in,),
    Ability.ADMINISTER: (is_admin,),
    Ability.CREATE_GROUP: (may_create_groups,),
    Ability.IMPORT_PROJECTS: (is_signed_in, imports_are_on),
    Ability.READ_PROJECT: (sees,),
    Ability.ADMIN_PROJECT: (at_least(Role.MAINTAINER),),
    Ability.OWN_PROJECT: (at_least(Role.OWNER),),
    Ability.READ_PROJECT_AUDIT_EVENTS: (at_least(Role.OWNER),),
    Ability.EXPORT_PROJECT: (at_least(Role.MAINTAINER),),
    Ability.ADMIN_VARIABLES: (at_least(Role.MAINTAINER), builds_are_on, is_not_archived),
    Ability.ADMIN_PROJECT_MEMBERS: (at_least(Role.MAINTAINER),),
    Ability.ADMIN_PROJECT_TOKENS: (at_least(Role.MAINTAINER),),
    Ability.ADMIN_PROTECTED_TAGS: (at_least(Role.MAINTAINER),),
    Ability.ADMIN_PROTECTED_BRANCHES: (at_least(Role.MAINTAINER),),
    Ability.ADMIN_OPERATIONS: (at_least(Role.MAINTAINER),),
    Ability.READ_NOTIFICATIONS: (at_least(Role.DEVELOPER),),
    Ability.ADMIN_NOTIFICATIONS: (at_least(Role.MAINTAINER),),
    Ability.READ_ALERTS: (at_least(Role.DEVELOPER), has("monitor")),
    Ability.READ_HEARTBEATS: (at_least(Role.DEVELOPER), has("monitor")),
    Ability.ADMIN_HEARTBEATS: (at_least(Role.MAINTAINER), has("monitor")),
    Ability.READ_SILENCES: (at_least(Role.DEVELOPER), has("monitor")),
    Ability.CREATE_SILENCES: (at_least(Role.DEVELOPER), has("monitor")),
    Ability.ADMIN_SILENCES: (at_least(Role.MAINTAINER), has("monitor")),
    Ability.READ_ERRORS: (at_least(Role.REPORTER), has("monitor")),
    Ability.UPDATE_ERRORS: (at_least(Role.DEVELOPER), has("monitor"), is_not_archived),
    Ability.CREATE_ERROR_ISSUES: (at_least(Role.DEVELOPER), has("monitor"), has("issues"), is_not_archived, is_loaded),
    Ability.DELETE_ERRORS: (at_least(Role.MAINTAINER), has("monitor"), is_not_archived),
    Ability.READ_VULNERABILITIES: (at_least(Role.DEVELOPER), has("security_and_compliance")),
    Ability.DISMISS_VULNERABILITIES: (at_least(Role.DEVELOPER), has("security_and_compliance"), is_not_archived),
    Ability.CREATE_SECURITY_REPORTS: (at_least(Role.DEVELOPER), has("security_and_compliance"), is_not_archived),
    Ability.ADMIN_ENVIRONMENTS: (at_least(Role.DEVELOPER), has("environments")),
    Ability.READ_ISSUES: (sees, has("issues")),
    Ability.CREATE_ISSUES: (is_signed_in, sees, has("issues"), is_not_archived, is_loaded),
    Ability.UPLOAD_FILES: (at_least(Role.GUEST), is_not_archived, is_loaded),
    Ability.ADMIN_ISSUES: (at_least(Role.REPORTER), has("issues"), is_not_archived, is_loaded),
    Ability.READ_MILESTONES: (sees, has_issues_or_merge_requests),
    Ability.ADMIN_MILESTONES: (at_least(Role.DEVELOPER), has_issues_or_merge_requests, is_not_archived, is_loaded),
    Ability.READ_MERGE_REQUESTS: (sees, has_from("merge_requests", Role.REPORTER)),
    Ability.READ_CODE: (sees, has_from("repository", Role.REPORTER)),
    Ability.CONTRIBUTE_CODE: (at_least(Role.DEVELOPER), has("repository")),
    Ability.PUSH_CODE: (at_least(Role.DEVELOPER), has("repository"), is_not_archived, is_loaded),
    Ability.READ_RELEASES: (sees, has_from("repository", Role.REPORTER), has("releases")),
    Ability.ADMIN_RELEASES: (
        at_least(Role.DEVELOPER),
        has("repository"),
        has("releases"),
        is_not_archived,
        is_loaded,
    ),
    Ability.READ_WIKI: (sees, has("wiki")),
    Ability.READ_SNIPPETS: (sees, has("snippets")),
    Ability.READ_INTERNAL_SNIPPETS: (is_internal_or_member,),
    Ability.READ_PRIVATE_SNIPPETS: (at_least(Role.GUEST),),
    Ability.READ_CONFIDENTIAL: (sees_confidential,),
    Ability.READ_LABELS: (sees, has_issues_or_merge_requests),
    Ability.ADMIN_LABELS: (at_least(Role.REPORTER), has_issues_or_merge_requests, is_not_archived, is_loaded),
    Ability.READ_ISSUE: (may_see_issue,),
    Ability.CHANGE_ISSUE: (may_change_issue,),
    Ability.COMMENT_ON_ISSUE: (may_comment,),
    Ability.DELETE_ISSUE: (anybody,),  # whom IN_PROJECT lets through: owners of the project
    Ability.READ_NOTE: (may_see_note,),
    Ability.CHANGE_NOTE: (may_change_note,),
    Ability.READ_GROUP: (sees,),
    Ability.ADMIN_GROUP: (at_least(Role.OWNER),),
    Ability.ADMIN_GROUP_LABELS: (at_least(Role.REPORTER),),
    Ability.ADMIN_GROUP_MILESTONES: (at_least(Role.DEVELOPER),),
    Ability.ADMIN_GROUP_TOKENS: (at_least(Role.OWNER),),
    Ability.READ_GROUP_AUDIT_EVENTS: (at_least(Role.OWNER),),
    Ability.READ_GROUP_NOTIFICATIONS: (at_least(Role.MAINTAINER),),
    Ability.ADMIN_GROUP_NOTIFICATIONS: (at_least(Role.OWNER),),
    Ability.CREATE_SUBGROUP: (may_create_subgroups,),
    Ability.READ_NAMESPACE: (is_member,),
    Ability.OWN_NAMESPACE: (at_least(Role.OWNER),),
    Ability.CREATE_PROJECT: (may_create_projects,),
}


# abilities about an issue or a note, and what the caller needs in its project before it is looked up
IN_PROJECT = {
    Ability.READ_ISSUE: Ability.READ_ISSUES,
    Ability.CHANGE_ISSUE: Ability.READ_ISSUES,
    Ability.COMMENT_ON_ISSUE: Ability.CREATE_ISSUES,
    Ability.DELETE_ISSUE: Ability.OWN_PROJECT,
    Ability.READ_NOTE: Ability.READ_ISSUES,
    Ability.CHANGE_NOTE: Ability.READ_ISSUES,
}

# abilities whose refusal is a 404, also for callers who see the project or group
# (alert management reference, section 3; namespaces reference, section 4)
HIDDEN: dict[Ability, Callable[[], ServiceError]] = {
    Ability.READ_NAMESPACE: lambda: NotFound("Namespace"),
    Ability.READ_ALERTS: lambda: NotFound("Alert"),
    Ability.READ_ISSUE: RecordNotFound,
    Ability.READ_NOTE: RecordNotFound,
}


def allowed(caller: Caller, ability: Ability, subject: Any = None) -> bool:
    """Whether all rules of the ability hold."""
    return all(rule(caller, subject) for rule in RULES[ability])


def judge(caller: Caller, ability: Ability, subject: Any = None) -> None:
    """Raise ``NotFound`` for what the caller may not see, ``Forbidden`` for what they may not do."""
    if allowed(caller, ability, subject):
        return
    if isinstance(subject, Project | ProjectAccess) and not sees(caller, subject):
        raise NotFound("Project")
    if ability in HIDDEN:
        raise HIDDEN[ability]()
    if isinstance(subject, Group) and not sees(caller, subject):
        raise NotFound("Group")
    raise Forbidden
