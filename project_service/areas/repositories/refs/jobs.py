"""The job that deletes merged branches."""

from __future__ import annotations

from contextlib import ExitStack

import structlog

from project_service.access.identity import Caller
from project_service.areas.repositories.transport import pushing
from project_service.areas.repositories.transport.push_facts import PushFacts
from project_service.areas.repositories.transport.push_rules import PushRefused
from project_service.areas.repositories.transport.pushing import RequestedPush
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.protected_refs import protected_branches_of, protections_of
from project_service.domain.repositories.reading import refs
from project_service.domain.repositories.reading.repository import HEAD, CodeRepository
from project_service.domain.repositories.refs import ZERO, RefChange
from project_service.domain.repositories.views import served_view
from project_service.kit import jobs
from project_service.kit.db.session import db, reading

NAMES_PER_PROCESS = 500

log = structlog.get_logger(__name__)


@jobs.job("repositories.jobs.delete_merged_branches")
def delete_merged_branches(project_id: int, user_id: int) -> None:
    """Delete the branches that the default one contains, by the rules of pushes of a user; protected ones stay."""
    with ExitStack() as stack:
        with reading():
            project, user = db.session.get(Project, project_id), db.session.get(User, user_id)
            if project is None or user is None:
                return
            asking = Caller.of(user)
            view = stack.enter_context(served_view(project))
            code = stack.enter_context(CodeRepository(view, project.default_branch))
            changes = _deletions(project, code)
        push, facts = RequestedPush(asking, project_id, tuple(changes), by_git=False), PushFacts(view)
        try:
            pushing.apply(push, facts, [], pushing.prepare(push, facts))
        except PushRefused as refused:  # the user may not push any more, or a branch became the default one
            log.warning("merged branches are not deleted", project_id=project_id, reason=refused.text)


def _deletions(project: Project, code: CodeRepository) -> list[RefChange]:
    head, protected = code.resolve(HEAD), list(db.session.scalars(protected_branches_of(project)))
    if head is None:
        return []
    targets = {
        ref.name: ref.target
        for ref in refs.refs(code, BRANCHES)
        if ref.name != project.default_branch and not protections_of(protected, ref.name)
    }
    names, merged = list(targets), set[str]()
    for start in range(0, len(names), NAMES_PER_PROCESS):
        merged |= refs.merged(code, names[start : start + NAMES_PER_PROCESS], head.id)
    return [RefChange(BRANCHES + name, target, ZERO) for name, target in targets.items() if name in merged]
