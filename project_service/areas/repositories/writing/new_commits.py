"""A new commit of the service: who may make it, its object, and the push that puts it on a branch."""

from __future__ import annotations

from pathlib import Path
from typing import Required, TypedDict

from project_service.access.identity import Caller
from project_service.access.roles import role_of
from project_service.areas.repositories.refs import changes, first_commits
from project_service.areas.repositories.transport.push_rules import may_push_first
from project_service.domain.projects import Project
from project_service.domain.repositories import git, packs
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.models import repository_of
from project_service.domain.repositories.protected_refs import may_push, protected_branches_of, protections_of
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.refs import ZERO, RefChange, has_branches
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadRequest, Forbidden

NOT_ALLOWED = "You are not allowed to push into this branch"
MOVED = "The branch has changed. Please try again."
FAILED = "Unknown error performing git operation"


class CommitFields(TypedDict, total=False):
    """What a commit is made on and what it says."""

    branch: Required[str]
    commit_message: Required[str]
    start_branch: str | None
    start_sha: str | None
    force: bool
    author_name: str | None
    author_email: str | None


def may_write(requester: Caller, project: Project, branch: str) -> bool:
    """Whether a user who may push to the project may push to a branch, which need not exist."""
    role = role_of(requester, project)
    protections = protections_of(list(db.session.scalars(protected_branches_of(project))), branch)
    if protections:
        return may_push(role, protections)
    repository = repository_of(project)
    return may_push_first(role, project) or (repository is not None and has_branches(repository))


def check_may_write(requester: Caller, project: Project, branch: str) -> None:
    """Raise ``Forbidden`` unless ``may_write``."""
    if not may_write(requester, project, branch):
        raise Forbidden(NOT_ALLOWED)


def write(requester: Caller, folder: Path, tree: str, parent: Commit | None, fields: CommitFields) -> str:
    """Write the object of a commit into a repository; return its id. The committer is the requester."""
    user = requester.load_user()
    committer = first_commits.signature(user)
    author = first_commits.signature(user, name=fields.get("author_name"), email=fields.get("author_email"))
    line = f"parent {parent.id}\n" if parent is not None else ""
    text = f"tree {tree}\n{line}author {author}\ncommitter {committer}\n\n{fields['commit_message']}"
    data = text.encode(errors="surrogatepass")
    done = git.run("hash-object", "-t", "commit", "-w", "--stdin", folder=folder, data=data)
    if done.returncode:
        raise BadRequest(FAILED)
    return done.stdout.decode().strip()


def push(requester: Caller, project: Project, folder: Path, branch: str, present: str | None, new: str) -> None:
    """Set a branch to a commit whose objects are in ``folder``, by the rules and with the events of a push."""
    stored = packs.store_packs(project.id, folder)
    if changes.apply(requester, project, RefChange(BRANCHES + branch, present or ZERO, new), folder, stored):
        raise BadRequest(MOVED)
