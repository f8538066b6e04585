"""Who may fetch from and push to a repository over HTTP, with the statuses and texts that git shows to its user."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Request

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.roles import find_project
from project_service.access.sign_in.git_credentials import WrongCredentials, git_caller, has_scope
from project_service.domain.accounts.sign_ins import TooManyFailures, WrongPassword
from project_service.domain.projects import Project, project_by_former_path
from project_service.domain.rate_limits import seconds_of
from project_service.domain.repositories.models import CODE, DESIGN, WIKI, repository_of
from project_service.kit.http import urls
from project_service.kit.http.errors import NotFound, ServiceError

UPLOAD_PACK, RECEIVE_PACK = "git-upload-pack", "git-receive-pack"
SERVICES = (UPLOAD_PACK, RECEIVE_PACK)
SUFFIXES = {".wiki": WIKI, ".design": DESIGN}
CHALLENGE = {"WWW-Authenticate": 'Basic realm="GitLab"'}
DENIED = (
    "HTTP Basic: Access denied. If a password was provided for Git authentication, the password was incorrect or "
    "you're required to use a token instead of a password. If a token was provided, it was either incorrect, expired, "
    "or improperly scoped. See {}"
)
NO_COMMAND = "The command you're trying to execute is not allowed."
NO_PROJECT = "The project you were looking for could not be found or you don't have permission to view it."
NO_WIKI = "The wiki you were looking for could not be found."
NO_WIKI_YET = "A repository for this wiki does not exist yet."
NO_SCOPE = {False: "You are not allowed to download code.", True: "You are not allowed to upload code."}
NO_FETCH = "You are not allowed to download code from this project."
NO_PUSH = "You are not allowed to push code to this project."
NO_WIKI_PUSH = "You are not allowed to write to this project's wiki."
ARCHIVED = "You can't push code to an archived project."
IMPORTING = "The repository is temporarily read-only. Please try again later."


class GitRefused(ServiceError):
    """A request of git is refused with a status and a text, which git shows."""

    def __init__(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text, headers)
        self.status, self.text = status, text


@dataclass(frozen=True, slots=True)
class GitTarget:
    """The repository that a request may use, and for whom; ``path`` is the one in the URL."""

    caller: Caller
    project: Project
    kind: str
    path: str

    @property
    def was_moved(self) -> bool:
        """Whether the URL has a former path of the project."""
        return self.path.lower().removesuffix(f".{self.kind.rpartition('.')[2]}") != self.project.full_path.lower()


def authorize(request: Request, path: str, service: str | None) -> GitTarget:
    """Return the repository at a path if the caller may use the service on it.

    The order of the checks is that of the repositories reference, section 1.2.

    Raises:
        GitRefused: with status and text.

    """
    push = service == RECEIVE_PACK
    caller = _authenticated(request)
    anonymous = caller.user_id is None
    if not anonymous and not has_scope(caller, push=push):
        raise GitRefused(403, NO_SCOPE[push])
    if service not in SERVICES:
        raise _denied() if anonymous else GitRefused(403, NO_COMMAND)
    try:
        target = _found(caller, path)
        if anonymous and push:
            raise _denied()
        _check(target, push=push)
    except GitRefused as refused:
        if anonymous:
            raise _denied() from refused
        raise
    return target


def _authenticated(request: Request) -> Caller:
    try:
        return git_caller(request)
    except (WrongCredentials, WrongPassword) as error:
        raise _denied() from error
    except TooManyFailures as error:
        seconds = str(seconds_of(error.wait))
        raise GitRefused(429, "Too many failed sign-ins. Try again later.", {"Retry-After": seconds}) from error


def _denied() -> GitRefused:
    return GitRefused(401, DENIED.format(urls.absolute("/-/profile/personal_access_tokens")), CHALLENGE)


def _found(caller: Caller, path: str) -> GitTarget:
    project = _project(path)
    if project is not None:
        if not allowed(caller, Ability.READ_PROJECT, project):
            raise GitRefused(404, NO_PROJECT)
        return GitTarget(caller, project, CODE, path)
    for suffix, kind in SUFFIXES.items():
        if path.lower().endswith(suffix):
            project = _project(path[: -len(suffix)])
            if project is None or not allowed(caller, Ability.READ_PROJECT, project):
                raise GitRefused(404, NO_WIKI if kind == WIKI else NO_PROJECT)
            return GitTarget(caller, project, kind, path)
    raise GitRefused(404, NO_PROJECT)


def _project(path: str) -> Project | None:
    try:
        return find_project(path)
    except NotFound:
        return project_by_former_path(path)


def _check(target: GitTarget, *, push: bool) -> None:
    caller, project = target.caller, target.project
    if target.kind != CODE:
        if target.kind == WIKI and not allowed(caller, Ability.READ_WIKI, project):
            raise GitRefused(404, NO_WIKI)
        if target.kind == DESIGN and not allowed(caller, Ability.READ_CODE, project):
            raise GitRefused(403, NO_FETCH)
        if push:
            raise GitRefused(403, NO_WIKI_PUSH if target.kind == WIKI else NO_PUSH)
        if repository_of(project, target.kind) is None:
            raise GitRefused(404, NO_WIKI_YET if target.kind == WIKI else NO_PROJECT)
    elif not push:
        if not allowed(caller, Ability.READ_CODE, project):
            raise GitRefused(403, NO_FETCH)
    else:
        check_push(caller, project)


def check_push(caller: Caller, project: Project) -> None:
    """Raise ``GitRefused`` unless the caller may push to the code of a project."""
    if allowed(caller, Ability.PUSH_CODE, project):
        return
    if allowed(caller, Ability.CONTRIBUTE_CODE, project):
        raise GitRefused(403, ARCHIVED if project.archived else IMPORTING)
    raise GitRefused(403, NO_PUSH)
