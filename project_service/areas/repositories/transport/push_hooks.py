"""Pushes as web hooks are notified of them (webhooks reference, section 13.2).

The commits are read before the transaction, and only if a hook wants them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from project_service.areas.repositories.transport.push_facts import PushFacts
from project_service.domain import instance_settings, page_paths
from project_service.domain.accounts.user_pictures import picture_address
from project_service.domain.accounts.users import User
from project_service.domain.hooks import hook_events
from project_service.domain.hooks.hook_payloads import REDACTED, project_of, repository_of
from project_service.domain.projects import Project
from project_service.domain.repositories import git
from project_service.domain.repositories.protected_refs import levels_for, protected_branches_of, protections_of
from project_service.domain.repositories.refs import RefChange
from project_service.domain.schemas import project_url
from project_service.kit.db.session import db

if TYPE_CHECKING:
    import pygit2  # at run time only processes that open repositories load it

PUSHES, TAG_PUSHES = "push_events", "tag_push_events"
MAX_COMMITS = 20
ADDED, MODIFIED, REMOVED = "added", "modified", "removed"
KINDS = {"A": ADDED, "D": REMOVED}
SAMPLE_SHA = "1" * 40


def announced(changes: Sequence[RefChange]) -> list[RefChange]:
    """Return the changes that hooks are notified of: of many branches, or many tags, none."""
    limit = instance_settings.setting("push_event_hooks_limit")
    real = [change for change in changes if change.old != change.new]
    groups = ([change for change in real if change.is_branch], [change for change in real if change.is_tag])
    return [change for group in groups if len(group) <= limit for change in group]


def wanted(project: Project, changes: Sequence[RefChange]) -> list[RefChange]:
    """Return the changes whose commits a hook wants."""
    announced_changes = announced(changes)
    if not any(change.is_branch for change in announced_changes) or not hook_events.listeners(project.id, PUSHES):
        return []
    return [change for change in announced_changes if change.is_branch]


def read_commits(facts: PushFacts, change: RefChange, base: str | None) -> None:
    """Read the newest commits of a change, before its transaction."""
    if change.deletes or change.name not in facts.figures or not facts.figures[change.name].count:
        return
    repository = git.opened(facts.folder)
    walk = repository.walk(change.new)
    if base is not None:
        walk.hide(base)
    facts.commits[change.name] = [_commit(commit) for commit in islice(walk, MAX_COMMITS)][::-1]


def announce(author: User, project: Project, changes: Sequence[RefChange], facts: PushFacts) -> None:
    """Announce the changes that were made."""
    for change in announced(changes):
        _announce(author, project, change, facts)


def _announce(author: User, project: Project, change: RefChange, facts: PushFacts) -> None:
    def payload(*, with_commits: bool = True) -> dict[str, Any]:
        return _payload(author, project, change, facts, with_commits=with_commits)

    hook_events.announce(
        PUSHES if change.is_branch else TAG_PUSHES,
        project,
        payload,
        branch=change.short_name if change.is_branch else None,
        system_payload=lambda: payload(with_commits=False),
    )


def _payload(
    author: User, project: Project, change: RefChange, facts: PushFacts, *, with_commits: bool
) -> dict[str, Any]:
    url = project_url(project)
    commits = facts.commits.get(change.name, []) if with_commits and change.is_branch else []
    figures = facts.figures.get(change.name)
    kind = "push" if change.is_branch else "tag_push"
    return {
        "object_kind": kind,
        "event_name": kind,
        "before": change.old,
        "after": change.new,
        "ref": change.name,
        "ref_protected": _is_protected(project, change),
        "checkout_sha": None if change.deletes else facts.peeled.get(change.new, change.new),
        "message": None if change.is_branch or change.new not in facts.peeled else facts.tag_message(change.new),
        "user_id": author.id,
        "user_name": author.name,
        "user_username": author.username,
        "user_email": author.public_email or None,
        "user_avatar": picture_address(author),
        "project_id": project.id,
        "project": project_of(project),
        "commits": [commit | {"url": f"{url}{page_paths.commit(commit['id'])}"} for commit in commits],
        "total_commits_count": figures.count if figures is not None and change.is_branch else 0,
        "push_options": {},
        "repository": repository_of(project, for_push=True),
    }


def _is_protected(project: Project, change: RefChange) -> bool:
    if change.is_tag:
        return bool(levels_for(project, change.short_name))
    return bool(protections_of(list(db.session.scalars(protected_branches_of(project))), change.short_name))


def _commit(commit: pygit2.Commit) -> dict[str, Any]:
    message = commit.raw_message.decode(errors="replace").replace("\0", "")
    zone = dt.timezone(dt.timedelta(minutes=commit.commit_time_offset))
    files: dict[str, list[str]] = {ADDED: [], MODIFIED: [], REMOVED: []}
    if commit.parents:
        difference = commit.parents[0].tree.diff_to_tree(commit.tree)
    else:
        difference = commit.tree.diff_to_tree(swap=True)
    for delta in difference.deltas:
        path = delta.new_file.raw_path.decode(errors="replace")
        files[KINDS.get(delta.status_char(), MODIFIED)].append(path)
    return {
        "id": str(commit.id),
        "message": message,
        "title": message.strip().partition("\n")[0].strip(),
        "timestamp": dt.datetime.fromtimestamp(commit.commit_time, zone).isoformat(),
        "author": {"name": commit.author.raw_name.decode(errors="replace"), "email": REDACTED},
        **files,
    }


def _sample(kind: str) -> hook_events.Sample:
    def make(project: Project) -> dict[str, Any]:
        name = "refs/heads/" + (project.default_branch or "main") if kind == "push" else "refs/tags/v1.0.0"
        commit = {
            "id": SAMPLE_SHA,
            "message": "Add a sample",
            "title": "Add a sample",
            "timestamp": "2026-01-01T00:00:00+00:00",
            "url": f"{project_url(project)}{page_paths.commit(SAMPLE_SHA)}",
            "author": {"name": "Sample", "email": REDACTED},
            ADDED: ["sample.txt"],
            MODIFIED: [],
            REMOVED: [],
        }
        return {
            "object_kind": kind,
            "event_name": kind,
            "before": "0" * 40,
            "after": SAMPLE_SHA,
            "ref": name,
            "ref_protected": False,
            "checkout_sha": SAMPLE_SHA,
            "message": None,
            "user_id": None,
            "user_name": None,
            "user_username": None,
            "user_email": None,
            "user_avatar": None,
            "project_id": project.id,
            "project": project_of(project),
            "commits": [commit] if kind == "push" else [],
            "total_commits_count": 1 if kind == "push" else 0,
            "push_options": {},
            "repository": repository_of(project, for_push=True),
        }

    return make


hook_events.add_sample(PUSHES, _sample("push"))
hook_events.add_sample(TAG_PUSHES, _sample("tag_push"))
