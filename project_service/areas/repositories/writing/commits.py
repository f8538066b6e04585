"""Commit changes of files to a branch, by the rules, the transaction and the events of a push."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Unpack

from project_service.access.identity import Caller
from project_service.areas.repositories.refs import changes
from project_service.areas.repositories.transport import receiving
from project_service.areas.repositories.writing import new_commits
from project_service.areas.repositories.writing.new_commits import CommitFields
from project_service.areas.repositories.writing.trees import ChangedTree
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, COMMIT_ID
from project_service.domain.repositories.reading import history
from project_service.domain.repositories.reading.history import HistoryFilter
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.domain.repositories.refs import is_valid_name
from project_service.kit.http.errors import BadRequest

MAX_ACTIONS = 1000
KINDS = ("create", "update", "move", "delete", "chmod")
NO_BRANCH = "You can only create or edit files when you are on a branch"
BRANCH_EXISTS = "A branch called '{}' already exists. Switch to that branch in order to make changes"
CHANGED = "The file has changed since you started editing it: {}"

Action = Mapping[str, Any]


def commit(
    requester: Caller,
    project: Project,
    actions: Sequence[Action],
    *,
    changed: str = CHANGED,
    **fields: Unpack[CommitFields],
) -> str:
    """Commit actions to ``branch``; return the id of the commit.

    The commit follows ``start_branch`` or ``start_sha``, by default the branch itself. ``force`` sets a branch that
    exists onto another start. ``changed`` is the refusal of a file that is not as it was at its ``last_commit_id``.

    Raises:
        Forbidden: a protected branch does not admit the requester.
        BadRequest: an action does not fit, a rule of a push is broken, or the branch was changed meanwhile.

    """
    branch = fields["branch"]
    new_commits.check_may_write(requester, project, branch)
    prepared = [_prepared(action, number) for number, action in enumerate(actions)]
    with ExitStack() as stack:
        view, code = changes.opened(stack, project)
        present = code.ref(BRANCHES + branch)
        start = _start(code, present, fields)
        for action in prepared:
            _check_unchanged(code, start, action, changed)
        folder = stack.enter_context(receiving.quarantine(view))
        tree = ChangedTree(code, start, folder)
        for action in prepared:
            tree.apply(action)
        new = new_commits.write(requester, folder, tree.write(), start, fields)
        new_commits.push(requester, project, folder, branch, present, new)
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


def _start(code: CodeRepository, present: str | None, fields: CommitFields) -> Commit | None:
    """The commit that the new one follows; ``None`` in an empty repository."""
    branch, wanted, sha = fields["branch"], fields.get("start_branch") or None, fields.get("start_sha") or None
    if wanted is not None and sha is not None:
        raise _bad("start_branch, start_sha are mutually exclusive")
    if not is_valid_name(branch):
        raise BadRequest(f"Something went wrong when we tried to create '{branch}' for you: Branch name is invalid")
    if present is not None and (sha or wanted not in (None, branch)) and not fields.get("force"):
        raise BadRequest(BRANCH_EXISTS.format(branch))
    if sha is not None:
        return _start_of_sha(code, sha)
    start = code.ref(BRANCHES + (wanted or branch))
    if start is None:
        if code.refs.count(BRANCHES.encode()):
            raise BadRequest(NO_BRANCH)
        return None
    return code.commit_of(start)


def _start_of_sha(code: CodeRepository, sha: str) -> Commit:
    if not COMMIT_ID.fullmatch(sha):
        raise BadRequest(f"Invalid start_sha '{sha}'")
    commit = code.commit_of(sha)
    if commit is None:
        raise BadRequest(f"Cannot find start_sha '{sha}'")
    return commit


def _check_unchanged(code: CodeRepository, start: Commit | None, action: Action, changed: str) -> None:
    last_commit = code.resolve(str(action["last_commit_id"])) if action.get("last_commit_id") else None
    if last_commit is None or start is None:
        return
    path = action.get("previous_path") or action["file_path"]
    then, now = (
        history.commits(code, HistoryFilter(revisions=[commit.id], path=path), 0, 1) for commit in (last_commit, start)
    )
    if then and [commit.id for commit in then] != [commit.id for commit in now]:
        raise BadRequest(changed.format(path))


def _bad(text: str) -> BadRequest:
    return BadRequest(f"400 Bad request - {text}")
