"""The rules of a push (repositories reference, section 2.1): the first that a ref breaks refuses the whole push.

Pushes of git, the API and pages ask the same function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from project_service.access.identity import Caller
from project_service.access.roles import role_of
from project_service.access.rules import may_create_tag
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import (
    DEVELOPERS_PUSH,
    FULL_AFTER_FIRST_PUSH,
    NO_PROTECTION,
    ProtectedBranch,
    default_protection,
    levels_for,
    may_push,
    protected_branches_of,
    protections_of,
)
from project_service.domain.repositories.refs import RefChange, is_like_sha, is_valid_name
from project_service.kit.db.session import db
from project_service.kit.http import urls
from project_service.kit.http.errors import BadRequest

DEFAULT_DELETED = "The default branch of a project cannot be deleted."
SHA_BRANCH = "You cannot create a branch with a SHA-1 or SHA-256 branch name."
INVALID_BRANCH = "You cannot create a branch with an invalid name."
FORCED = "You are not allowed to force push code to a protected branch on this project."
PROTECTED_PUSH = "You are not allowed to push code to protected branches on this project."
PROTECTED_CREATED = "You are not allowed to create protected branches on this project."
PROTECTED_DELETED = (
    "You are not allowed to delete protected branches from this project. "
    "Only a project maintainer or owner can delete a protected branch."
)
DELETED_BY_GIT = "You can only delete protected branches using the web interface."
NO_DEFAULT_BRANCH = (
    "A default branch (e.g. main) does not yet exist for {}\n"
    "Ask a project Owner or Maintainer to create a default branch:\n\n  {}"
)
TAG_LIKE_DEFAULT = "You cannot use default branch name to create a tag"
TAG_NOT_UTF8 = "Tag names must be valid when converted to UTF-8 encoding"
INVALID_TAG = "You cannot create a tag with a prohibited pattern."
SHA_TAG = "You cannot create a tag with a SHA-1 or SHA-256 tag name."
TAG_UPDATED = "Protected tags cannot be updated."
TAG_DELETED = (
    "You are not allowed to delete protected tags from this project. "
    "Only a project maintainer or owner can delete a protected tag."
)
TAG_DELETED_BY_GIT = "You can only delete protected tags using the web interface."
TAG_CREATED = "You are not allowed to create this tag as it is protected."
ESCAPE = "\\"  # in names of refs only in place of bytes that are no UTF-8


class PushRefused(BadRequest):
    """A push, or a change by the API or a page, is refused as a whole; the text is for its user."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class PushRules:
    """The rules for one caller and project, as they are in the current transaction.

    ``is_fast_forward`` tells whether the new commit of a change contains the old one; ``by_git`` is false for changes
    by the API and by pages.
    """

    def __init__(
        self, caller: Caller, project: Project, is_fast_forward: Callable[[RefChange], bool], *, by_git: bool
    ) -> None:
        self._caller, self._project = caller, project
        self._is_fast_forward = is_fast_forward
        self._by_git = by_git
        self._role = role_of(caller, project)
        self._protected: list[ProtectedBranch] = list(db.session.scalars(protected_branches_of(project)))

    def check(self, changes: Sequence[RefChange], *, is_first: bool) -> None:
        """Check all changes of a push; ``is_first`` if the project has no branches.

        Raises:
            PushRefused: with the text of the first rule that is broken.

        """
        for change in changes:
            if change.is_branch:
                self._check_branch(change, is_first=is_first)
            elif change.is_tag:
                self._check_tag(change)

    def _check_branch(self, change: RefChange, *, is_first: bool) -> None:
        name = change.short_name
        if change.deletes and name == self._project.default_branch:
            raise PushRefused(DEFAULT_DELETED)
        if not change.deletes and is_like_sha(name):
            raise PushRefused(SHA_BRANCH)
        if not change.deletes and (ESCAPE in name or not is_valid_name(name)):
            raise PushRefused(INVALID_BRANCH)
        if is_first and change.creates and not may_push_first(self._role, self._project):
            members = urls.absolute(f"/{self._project.full_path}/-/project_members")
            raise PushRefused(NO_DEFAULT_BRANCH.format(self._project.full_path, members))
        if protections := protections_of(self._protected, name):
            self._check_protected_branch(change, protections)

    def _check_protected_branch(self, change: RefChange, protections: list[ProtectedBranch]) -> None:
        if change.deletes:
            if self._role < Role.MAINTAINER:
                raise PushRefused(PROTECTED_DELETED)
            if self._by_git:
                raise PushRefused(DELETED_BY_GIT)
            return
        may_force = all(row.allow_force_push for row in protections)
        if not change.creates and not may_force and not self._is_fast_forward(change):
            raise PushRefused(FORCED)
        if not may_push(self._role, protections):
            raise PushRefused(PROTECTED_CREATED if change.creates else PROTECTED_PUSH)

    def _check_tag(self, change: RefChange) -> None:
        name = change.short_name
        if change.creates and name == self._project.default_branch:
            raise PushRefused(TAG_LIKE_DEFAULT)
        if not change.deletes:
            if ESCAPE in name:
                raise PushRefused(TAG_NOT_UTF8)
            if not is_valid_name(name) or name.startswith("refs/tags/"):
                raise PushRefused(INVALID_TAG)
            if is_like_sha(name):
                raise PushRefused(SHA_TAG)
        levels = levels_for(self._project, name)
        if not levels:
            return
        if change.deletes:
            if self._role < Role.MAINTAINER:
                raise PushRefused(TAG_DELETED)
            if self._by_git:
                raise PushRefused(TAG_DELETED_BY_GIT)
        elif not change.creates:
            raise PushRefused(TAG_UPDATED)
        elif not may_create_tag(self._caller, self._project, levels):
            raise PushRefused(TAG_CREATED)


def may_push_first(role: Role, project: Project) -> bool:
    """Whether a role may push the first branch of a project (repositories reference, section 2.1)."""
    open_levels = (NO_PROTECTION, DEVELOPERS_PUSH, FULL_AFTER_FIRST_PUSH)
    return role >= Role.MAINTAINER or default_protection(project) in open_levels
