"""Commit changes of files to a branch, by the rules, the transaction and the events of a push."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Required, TypedDict, Unpack

from sqlalchemy import select

from project_service.access.identity import Caller
from project_service.access.roles import role_of
from project_service.areas.repositories.refs import changes, first_commits
from project_service.areas.repositories.transport import receiving
from project_service.areas.repositories.writing.trees import ChangedTree
from project_service.domain.projects import Project
from project_service.domain.repositories import git, packs
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.models import repository_of
from project_service.domain.repositories.protected_refs import ProtectedBranch, may_push, protections_of
from project_service.domain.repositories.reading import history
from project_service.domain.repositories.reading.history import HistoryFilter
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.domain.repositories.refs import ZERO, RefChange, has_branches, is_valid_name
from project_service.domain.users import User
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadRequest, Forbidden

MAX_ACTIONS = 1000
KINDS = ("create", "update", "move", "delete", "chmod")
NOT_ALLOWED = "You are not allowed to push into this branch"
NO_BRANCH = "You can only create or edit files when you are on a branch"
BRANCH_EXISTS = "A branch called '{}' already exists. Switch to that branch in order to make changes"
MOVED = "The branch has changed. Please try again."
CHANGED = "The file has changed since you started editing it: {}"

Action = Mapping[str, Any]


class CommitFields(TypedDict, total=False):
    """What a commit is made on and what it says."""

    branch: Required[str]
    commit_message: Required[str]
    start_branch: str | None
    author_name: str | None
    author_email: str | None


def may_write(requester: Caller, project: Project, branch: str) -> bool:
    """Whether the protection of a branch, which need not exist, admits a user who may push to the project."""
    protected = list(db.session.scalars(select(ProtectedBranch).where(ProtectedBranch.project_id == project.id)))
    protections = protections_of(protected, branch)
    return not protections or may_push(role_of(requester, project), protections)


def commit(
    requester: Caller,
    project: Project,
    actions: Sequence[Action],
    *,
    changed: str = CHANGED,
    **fields: Unpack[CommitFields],
) -> str:
    """Commit actions to ``branch``, which begins at ``start_branch`` if it is new; return the id of the commit.

    ``changed`` is the refusal of a file that is not as it was at its ``last_commit_id``.

    Raises:
        Forbidden: a protected branch does not admit the requester.
        BadRequest: an action does not fit, a rule of a push is broken, or the branch was changed meanwhile.

    """
    branch = fields["branch"]
    if not may_write(requester, project, branch):
        raise Forbidden(NOT_ALLOWED)
    prepared = [_prepared(action, number) for number, action in enumerate(actions)]
    author = requester.load_user()
    repository = repository_of(project)
    is_empty = repository is None or not has_branches(repository)
    with ExitStack() as stack:
        view, code = changes.opened(stack, project)
        present = code.ref(BRANCHES + branch)
        start = _start(code, branch, present, fields.get("start_branch"), is_empty=is_empty)
        for action in prepared:
            _check_unchanged(code, start, action, changed)
        folder = stack.enter_context(receiving.quarantine(view))
        tree = ChangedTree(code, start, folder)
        for action in prepared:
            tree.apply(action)
        done = git.run(
            *("hash-object", "-t", "commit", "-w", "--stdin"),
            folder=folder,
            data=_commit_text(tree.write(), start, author, fields),
        )
        if done.returncode:
            raise BadRequest("Unknown error performing git operation")
        new = done.stdout.decode().strip()
        stored = packs.store_packs(project.id, folder)
        if changes.apply(requester, project, RefChange(BRANCHES + branch, present or ZERO, new), folder, stored):
            raise BadRequest(MOVED)
    return new


def _prepared(action: Action, number: int) -> dict[str, Any]:
    """An action with its content as bytes; texts of refusals name it by its number."""
    name, kind = f"actions[{number}]", action.get("action")
    if kind not in KINDS:
        raise _bad(f"{name}[action] must be one of: {', '.join(KINDS)}")
    if not isinstance(action.get("file_path"), str) or not action["file_path"]:
        raise _bad(f"{name}[file_path] is required")
    encoding = action.get("encoding") or "text"
    if encoding not in ("text", "base64"):
        raise _bad(f"{name}[encoding] must be text or base64")
    if kind == "update" and "content" not in action:
        raise _bad(f"{name}[content] is required for update action")
    if kind == "move" and not isinstance(action.get("previous_path"), str):
        raise _bad(f"{name}[previous_path] is required for move action")
    mode = action.get("execute_filemode")
    if kind == "chmod" and mode is None:
        raise _bad(f"{name}[execute_filemode] is required for chmod action")
    if mode is not None and str(mode).lower() not in ("true", "false"):
        raise _bad(f"{name}[execute_filemode] must be a boolean")
    executable = None if mode is None else str(mode).lower() == "true"
    return dict(action) | {"execute_filemode": executable, "bytes": _content(action.get("content"), encoding)}


def _content(content: Any, encoding: str) -> bytes:
    text = "" if content is None else str(content)
    if encoding == "text":
        return text.encode(errors="surrogatepass")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _bad("content is not valid base64") from error


def _start(
    code: CodeRepository, branch: str, present: str | None, wanted: str | None, *, is_empty: bool
) -> Commit | None:
    """The commit that the new one follows; ``None`` in an empty repository."""
    if present is not None and wanted not in (None, "", branch):
        raise BadRequest(BRANCH_EXISTS.format(branch))
    if not is_valid_name(branch):
        raise BadRequest(f"Something went wrong when we tried to create '{branch}' for you: Branch name is invalid")
    start = code.ref(BRANCHES + (wanted or branch))
    if start is None:
        if not is_empty:
            raise BadRequest(NO_BRANCH)
        return None
    return code.commit_of(start)


def _check_unchanged(code: CodeRepository, start: Commit | None, action: Action, changed: str) -> None:
    known = code.resolve(str(action["last_commit_id"])) if action.get("last_commit_id") else None
    if known is None or start is None:
        return
    path = action.get("previous_path") or action["file_path"]
    then, now = (
        history.commits(code, HistoryFilter(revisions=[commit.id], path=path), 0, 1) for commit in (known, start)
    )
    if then and [commit.id for commit in then] != [commit.id for commit in now]:
        raise BadRequest(changed.format(path))


def _commit_text(tree: str, start: Commit | None, user: User, fields: CommitFields) -> bytes:
    committer = first_commits.signature(user)
    author = first_commits.signature(user, name=fields.get("author_name"), email=fields.get("author_email"))
    parent = f"parent {start.id}\n" if start is not None else ""
    text = f"tree {tree}\n{parent}author {author}\ncommitter {committer}\n\n{fields['commit_message']}"
    return text.encode(errors="surrogatepass")


def _bad(text: str) -> BadRequest:
    return BadRequest(f"400 Bad request - {text}")
