"""Apply a push: one transaction that checks the rules, changes the refs, adds the packs and records the events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from project_service.access.identity import Caller
from project_service.access.roles import forget_roles
from project_service.areas.repositories.transport import closing_commits, push_events, push_hooks
from project_service.areas.repositories.transport.git_access import NO_PUSH, GitRefused, check_push
from project_service.areas.repositories.transport.push_facts import FactMissing, PushFacts, is_branch_without_commit
from project_service.areas.repositories.transport.push_rules import PushRefused, PushRules
from project_service.domain.accounts.tokens import OAuthToken, PersonalAccessToken
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.projects import Project
from project_service.domain.repositories import packs, refs
from project_service.domain.repositories.bundles import BRANCHES, REF
from project_service.domain.repositories.models import repository_of
from project_service.domain.repositories.packs import StoredPack
from project_service.domain.repositories.protected_refs import protect_default_branch
from project_service.domain.repositories.refs import ZERO, RefChange
from project_service.domain.repositories.releases import delete_releases
from project_service.domain.repositories.views import head_of
from project_service.kit.db.session import db, reading, unit_of_work

LIKELY_DEFAULTS = ("main", "master")
MISSING = "missing necessary objects"
HIDDEN = "deny updating a hidden ref"
ATOMIC = "atomic push failure"
NOT_PUSHED = (
    "refs/merge-requests/",
    "refs/environments/",
    "refs/pipelines/",
    "refs/keep-around/",
    "refs/remotes/",
    "refs/tmp/",
)


@dataclass(frozen=True, slots=True)
class RequestedPush:
    """What a caller wants to change in the code of a project."""

    caller: Caller
    project_id: int
    changes: tuple[RefChange, ...]
    atomic: bool = False
    by_git: bool = True


def prepare(push: RequestedPush, facts: PushFacts) -> dict[str, str]:
    """Check a push before its packs are stored, and ask git what the transaction needs; return failures by ref.

    Raises:
        PushRefused: a rule is broken, or the caller may not push.

    """
    facts.read_types(push.changes)
    missing = facts.missing(push.changes)
    failures = dict.fromkeys(missing, MISSING)
    for change in push.changes:
        if change.name.startswith(NOT_PUSHED):
            failures[change.name] = HIDDEN
        elif refs.is_namespace(change.name) and not change.deletes:
            failures[change.name] = refs.FUNNY
        elif change.name not in failures and (
            is_branch_without_commit(change, facts.types) or not REF.fullmatch(change.name)
        ):
            failures[change.name] = refs.FAILED
    remaining = _remaining(push, failures)
    with reading():
        project, _ = _authorized(push)
        repository = repository_of(project)
        is_first = repository is None or not refs.has_branches(repository)
        default = _first_default(project, remaining) if is_first else project.default_branch
        tip = refs.target_of(repository, f"{BRANCHES}{default}") if repository is not None and default else None
        rules = PushRules(push.caller, project, facts.is_fast_forward, by_git=push.by_git)
        rules.check(push.changes, is_first=is_first)
        singles = push_events.single_changes(remaining)
        hooked = push_hooks.wanted(project, remaining)
    for change in dict.fromkeys([*singles, *hooked]):
        is_first_default = is_first and change.name == f"{BRANCHES}{default}"
        facts.read_figures(change, tip, is_first_default=is_first_default)
        if change in hooked:
            base = change.old if not change.creates else None if is_first_default else tip
            push_hooks.read_commits(facts, change, base)
    for change in remaining:
        if default is not None and change.name == f"{BRANCHES}{default}":
            closing_commits.read_messages(facts, change)
    return failures


def apply(
    push: RequestedPush, facts: PushFacts, stored: Sequence[StoredPack], failures: dict[str, str]
) -> dict[str, str]:
    """Apply a prepared push in one transaction; return the failures by ref.

    Raises:
        PushRefused: a rule is broken meanwhile, or the caller may not push any more.

    """
    while True:
        facts.sealed = True
        try:
            with unit_of_work():
                return _apply(push, facts, stored, failures)
        except FactMissing:  # a branch became protected meanwhile
            facts.sealed = False
            prepare(push, facts)


def _apply(
    push: RequestedPush, facts: PushFacts, stored: Sequence[StoredPack], failures: dict[str, str]
) -> dict[str, str]:
    forget_roles()
    project, user = _authorized(push)
    repository = refs.locked_repository(project)
    db.session.refresh(project)
    check_allowed(push.caller, project)
    is_first = not refs.has_branches(repository)
    rules = PushRules(push.caller, project, facts.is_fast_forward, by_git=push.by_git)
    rules.check(push.changes, is_first=is_first)
    if failures and push.atomic:
        return {change.name: failures.get(change.name, ATOMIC) for change in push.changes}
    remaining = _remaining(push, failures)
    failures = failures | refs.compare_and_swap(repository, remaining, facts.peeled, atomic=push.atomic)
    done = _remaining(push, failures)
    if any(not change.deletes for change in done):
        packs.add_rows(repository, stored)
    if is_first and (branch := _first_default(project, done)) is not None:
        project.default_branch = repository.head = branch
        protect_default_branch(project, branch)
    if deleted := [change.short_name for change in done if change.is_tag and change.deletes]:
        delete_releases(project.id, deleted)
    push_events.record_push(user, project, done, facts.figures)
    push_hooks.announce(user, project, done, facts)
    closing_commits.close_issues(push.caller, user, project, done, facts)
    return failures


def check_allowed(caller: Caller, project: Project) -> None:
    """Raise ``PushRefused`` unless the caller may push to the project."""
    try:
        check_push(caller, project)
    except GitRefused as refused:
        raise PushRefused(refused.text) from refused


def _authorized(push: RequestedPush) -> tuple[Project, User]:
    project, user = db.session.get(Project, push.project_id), db.session.get(User, push.caller.user_id or 0)
    if project is None or project.deleting_since is not None or user is None or user.state != ACTIVE:
        raise PushRefused(NO_PUSH)
    # a large push takes long: what was taken away meanwhile does not count any more
    if push.caller.uses_token and not _has_active_token(push.caller):
        raise PushRefused(NO_PUSH)
    check_allowed(push.caller, project)
    return project, user


def _has_active_token(caller: Caller) -> bool:
    token: PersonalAccessToken | OAuthToken | None
    if caller.token_id is not None:
        token = db.session.get(PersonalAccessToken, caller.token_id, populate_existing=True)
    else:
        token = db.session.get(OAuthToken, caller.oauth_token_id, populate_existing=True)
    return token is not None and token.active


def _remaining(push: RequestedPush, failures: dict[str, str]) -> list[RefChange]:
    return [change for change in push.changes if change.name not in failures]


def _first_default(project: Project, changes: Sequence[RefChange]) -> str | None:
    """The branch that a first push makes the default one (repositories reference, section 2.3)."""
    pushed = sorted(change.short_name for change in changes if change.is_branch and change.new != ZERO)
    wanted = (head_of(project, repository_of(project)), *LIKELY_DEFAULTS)
    return next((name for name in wanted if name in pushed), pushed[0] if pushed else None)
