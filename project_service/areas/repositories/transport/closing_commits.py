"""Commits on the default branch that close issues: ``Closes #3`` (text references reference, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.rules import may_change_issue, may_see_issue
from project_service.areas.repositories.transport.push_facts import PushFacts
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.repositories import git
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.refs import RefChange
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import OPENED, Issue, for_changes, issues_of
from project_service.domain.tracker.merge_requests import CLOSING, NUMBER
from project_service.kit.db.session import db

MAX_COMMITS = 100  # the newest of a push
MAX_MESSAGE_CHARACTERS = 20_000
MAX_ISSUES = 50  # that one push closes


def read_messages(facts: PushFacts, change: RefChange) -> None:
    """Read the messages of the new commits of a change that close something, before its transaction."""
    if change.deletes:
        return
    walk = git.opened(facts.folder).walk(change.new)
    if not change.creates:
        walk.hide(change.old)
    for commit in islice(walk, MAX_COMMITS):
        message = commit.raw_message.decode(errors="replace")[:MAX_MESSAGE_CHARACTERS]
        if CLOSING.search(message):
            facts.messages.append((str(commit.id), message))


def close_issues(
    caller: Caller, author: User, project: Project, changes: Sequence[RefChange], facts: PushFacts
) -> None:
    """Close the issues that the new commits of the default branch name, if the author may change them."""
    is_done = any(change.name == f"{BRANCHES}{project.default_branch}" for change in changes)
    if not facts.messages or not is_done or not project.attributes.get("autoclose_referenced_issues", True):
        return
    closed_by: dict[int, str] = {}
    for commit_id, message in reversed(facts.messages):  # the oldest first
        for mention in CLOSING.findall(message):
            for number in NUMBER.findall(mention):
                closed_by.setdefault(int(number), commit_id)
    if not closed_by or not allowed(caller, Ability.READ_ISSUES, project):
        return
    iids = sorted(closed_by)[:MAX_ISSUES]
    statement = issues_of(project).where(Issue.iid.in_(iids), Issue.state == OPENED).order_by(Issue.iid)
    for issue in db.session.scalars(for_changes(statement)).all():
        if may_see_issue(caller, issue) and may_change_issue(caller, issue):
            issue_rules.close_issue(author, issue, note=f"closed via commit {closed_by[issue.iid]}")
