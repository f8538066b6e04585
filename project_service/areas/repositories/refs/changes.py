"""Create and delete tags and branches by API: the rules, the transaction and the events are those of a push."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from project_service.access.identity import Caller
from project_service.areas.repositories.refs import first_commits, jobs
from project_service.areas.repositories.transport import pushing, receiving
from project_service.areas.repositories.transport.push_facts import PushFacts
from project_service.areas.repositories.transport.push_rules import PushRefused
from project_service.areas.repositories.transport.pushing import RequestedPush
from project_service.domain.projects import Project
from project_service.domain.repositories import git, packs
from project_service.domain.repositories.bundles import BRANCHES, TAGS
from project_service.domain.repositories.models import repository_of
from project_service.domain.repositories.packs import StoredPack
from project_service.domain.repositories.reading.repository import HEAD, CodeRepository
from project_service.domain.repositories.refs import ZERO, RefChange, has_branches, is_valid_name
from project_service.domain.repositories.views import head_of, served_view
from project_service.kit.db.session import db, reading
from project_service.kit.http.errors import BadRequest, Forbidden, NotFound

MAX_MESSAGE_BYTES = 1 << 20
INVALID_REF = "Failed to create branch '{}': invalid reference name '{}'"
CONFLICT = "Failed to create branch '{}': Branch name conflicts with existing branch hierarchy."
TAG_CONFLICT = "Failed to create tag '{}': Tag name conflicts with existing tag hierarchy."


def create_tag(requester: Caller, project: Project, *, tag_name: str, ref: str, message: str | None = None) -> None:
    """Create a tag of a revision, with an object of its own if there is a message."""
    if not tag_name or not is_valid_name(tag_name):
        raise BadRequest("Tag name invalid")
    with ExitStack() as stack:
        view, code = opened(stack, project)
        if code.ref(TAGS + tag_name) is not None:
            raise BadRequest(f"Tag {tag_name} already exists")
        commit = code.resolve(ref) if ref else None
        if commit is None:
            raise BadRequest(f"Target {ref} is invalid")
        target, stored = commit.id, []
        if message and message.strip():
            view = stack.enter_context(receiving.quarantine(view))
            target = _tag_object(requester, view, commit.id, tag_name, message)
        change = RefChange(TAGS + tag_name, ZERO, target)
        if target != commit.id:
            stored = packs.store_packs(project.id, view)
        if apply(requester, project, change, view, stored):
            raise BadRequest(TAG_CONFLICT.format(tag_name))


def create_branch(requester: Caller, project: Project, *, branch: str, ref: str) -> None:
    """Create a branch at a revision; an empty repository gets its default branch first, with an empty README."""
    if not branch or not is_valid_name(branch):
        raise BadRequest("Branch name is invalid")
    repository = repository_of(project)
    if repository is None or not has_branches(repository):
        default = head_of(project, repository)
        if ref not in (HEAD, default, BRANCHES + default):
            raise BadRequest(INVALID_REF.format(branch, ref))
        _create_first_branch(requester, project, branch)
        return
    with ExitStack() as stack:
        view, code = opened(stack, project)
        if code.ref(BRANCHES + branch) is not None:
            raise BadRequest("Branch already exists")
        commit = code.resolve(ref) if ref else None
        if commit is None:
            raise BadRequest(INVALID_REF.format(branch, ref))
        if apply(requester, project, RefChange(BRANCHES + branch, ZERO, commit.id), view, []):
            raise BadRequest(CONFLICT.format(branch))


def delete_ref(requester: Caller, project: Project, prefix: str, name: str) -> None:
    """Delete a branch or a tag; ``prefix`` is ``BRANCHES`` or ``TAGS``."""
    with ExitStack() as stack:
        view, code = opened(stack, project)
        old = code.ref(prefix + name)
        if old is None or apply(requester, project, RefChange(prefix + name, old, ZERO), view, [], deletes=True):
            raise NotFound("Branch" if prefix == BRANCHES else "Tag")


def delete_merged_branches(requester: Caller, project: Project) -> None:
    """Delete the branches that the default one contains, in a background job; protected ones stay."""
    jobs.delete_merged_branches.defer(project.id, requester.load_user().id)


def _create_first_branch(requester: Caller, project: Project, branch: str) -> None:
    db.session.commit()
    author, message = requester.load_user(), "Add README.md"
    failures = first_commits.commit_readme(requester, author, project, text="", message=message, branches=[branch])
    if failures:
        raise BadRequest(CONFLICT.format(branch))


def opened(stack: ExitStack, project: Project) -> tuple[Path, CodeRepository]:
    """Open the repository of a project; the transaction of the request ends, since git works without one."""
    db.session.commit()
    with reading():
        view = stack.enter_context(served_view(project))
    return view, stack.enter_context(CodeRepository(view, project.default_branch))


def _tag_object(requester: Caller, folder: Path, target: str, name: str, message: str) -> str:
    tagger = first_commits.signature(requester.load_user())
    content = f"object {target}\ntype commit\ntag {name}\ntagger {tagger}\n\n{message}\n".encode()
    if len(content) > MAX_MESSAGE_BYTES:
        raise BadRequest(f"The message is longer than {MAX_MESSAGE_BYTES} bytes")
    done = git.run("mktag", folder=folder, data=content)
    if done.returncode:
        raise BadRequest("Tag message is invalid")
    return done.stdout.decode().strip()


def apply(
    requester: Caller,
    project: Project,
    change: RefChange,
    folder: Path,
    stored: list[StoredPack],
    *,
    deletes: bool = False,
) -> dict[str, str]:
    """Change a ref; return the failure, if any, by its name."""
    push = RequestedPush(requester, project.id, (change,), by_git=False)
    facts = PushFacts(folder)
    failures = {change.name: ""}
    try:
        failures = pushing.prepare(push, facts)
        failures = pushing.apply(push, facts, stored, failures)
    except PushRefused as refused:
        if deletes and change.is_tag:
            raise Forbidden(refused.text) from refused
        raise
    finally:
        if failures:
            packs.remove_stored(stored)
    return failures
