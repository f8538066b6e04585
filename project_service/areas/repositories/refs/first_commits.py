"""The first commit of an empty repository: a README on its default branch, by the rules of a push."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import structlog

from project_service.access import first_commits
from project_service.access.identity import Caller
from project_service.access.roles import forget_roles
from project_service.areas.repositories.transport import pushing, receiving
from project_service.areas.repositories.transport.push_facts import PushFacts
from project_service.areas.repositories.transport.push_rules import PushRefused
from project_service.areas.repositories.transport.pushing import RequestedPush
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.repositories import git, packs
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.models import repository_of
from project_service.domain.repositories.refs import ZERO, RefChange
from project_service.domain.repositories.views import head_of, served_view
from project_service.kit import clock
from project_service.kit.db.session import db, reading
from project_service.kit.http.errors import Unavailable

README = "README.md"

log = structlog.get_logger(__name__)


def add_readme(author: User, project: Project) -> str | None:
    """Commit a README with the name and the description of a project (``access/first_commits.py``)."""
    db.session.commit()
    forget_roles()  # the author of a new project became its member
    text = f"# {project.name}\n\n{project.description or ''}".rstrip() + "\n"
    try:
        commit_readme(Caller.of(author), author, project, text=text, message="Initial commit")
    except PushRefused as refused:
        return refused.text
    except (OSError, Unavailable) as error:  # the project exists, and can be pushed to later
        log.warning("the first commit failed", project_id=project.id, error=str(error))
        return "The repository cannot be written at the moment."
    return None


def commit_readme(
    caller: Caller, author: User, project: Project, *, text: str, message: str, branches: Iterable[str] = ()
) -> dict[str, str]:
    """Make the first commit, on the default branch and on other new branches, or on none of them.

    Return the failures by ref, as ``pushing.apply`` does: of names that conflict, or if the repository has the default
    branch meanwhile.

    Raises:
        PushRefused: the caller may not push first, or not to these branches.

    """
    with ExitStack() as stack:
        with reading():
            view = stack.enter_context(served_view(project))
            names = dict.fromkeys((head_of(project, repository_of(project)), *branches))
        folder = stack.enter_context(receiving.quarantine(view))
        commit = _commit_object(folder, author, text, message)
        changes = tuple(RefChange(BRANCHES + name, ZERO, commit) for name in names)
        push = RequestedPush(caller, project.id, changes, atomic=True, by_git=False)
        facts = PushFacts(folder)
        failures = pushing.prepare(push, facts)
        stored = packs.store_packs(project.id, folder)
        is_done = False
        try:
            failures = pushing.apply(push, facts, stored, failures)
            is_done = not failures
        finally:
            if not is_done:
                packs.remove_stored(stored)
    return failures


def signature(user: User, *, name: str | None = None, email: str | None = None) -> str:
    """The user, or another name or address, and the current time as objects of git name them."""
    shown_name = _without_marks(name or "") or _without_marks(user.name) or user.username
    address = "".join(_without_marks(email or "").split()) or user.email
    return f"{shown_name} <{address}> {int(clock.now().timestamp())} +0000"


def _without_marks(text: str) -> str:
    return " ".join("".join(c for c in text if c.isprintable() and c not in "<>").split())


def _commit_object(folder: Path, author: User, text: str, message: str) -> str:
    blob = _write(folder, text.encode(), "hash-object", "-w", "--stdin")
    tree = _write(folder, f"100644 blob {blob}\t{README}\n".encode(), "mktree")
    who = signature(author)
    commit = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{message}".encode()
    return _write(folder, commit, "hash-object", "-t", "commit", "-w", "--stdin")


def _write(folder: Path, data: bytes, *arguments: str) -> str:
    done = git.run(*arguments, folder=folder, data=data)
    if done.returncode:
        raise OSError(f"an object cannot be written: {done.stderr.decode(errors='replace')[:500]}")
    return done.stdout.decode().strip()


first_commits.register(add_readme)
