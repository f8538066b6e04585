"""Answers to the go command, which asks a page of an import path for its repository: ``?go-get=1``.

Repositories reference, section 1.4.
"""

from __future__ import annotations

from flask import Blueprint, Response, render_template, request
from sqlalchemy import func, select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.sign_in.git_credentials import WrongCredentials, git_caller, has_scope
from project_service.domain.accounts.sign_ins import TooManyFailures, WrongPassword
from project_service.domain.projects import Project, RedirectRoute, projects
from project_service.domain.rate_limits import seconds_of
from project_service.kit.db.session import db, reading
from project_service.kit.http import parameters, urls
from project_service.kit.http.responses import is_api

MAX_SEGMENTS = 22  # of an import path that are looked up
SEGMENTS_OF_UNKNOWN = 2  # what is named without permission, whether or not there is a project
DENIED = (
    "Go package not found or access denied. If you are trying to access a private project, ensure your ~/.netrc file "
    "has credentials so the go toolchain can authenticate. See {}"
)

go_get = Blueprint("go_get", __name__)


@go_get.before_app_request
def answer_go() -> Response | None:
    """Answer a request of the go command for any page; ``None`` for all other requests."""
    if b"go-get=1" not in request.query_string or request.method not in ("GET", "HEAD") or is_api():
        return None
    if parameters.query(request).get("go-get") != "1":
        return None
    segments = [part for part in request.path.split("/") if part]
    with reading():
        try:
            caller = git_caller(request)
        except (WrongCredentials, WrongPassword):
            return _denied()
        except TooManyFailures as error:
            return Response("Retry later", 429, {"Retry-After": str(seconds_of(error.wait))}, mimetype="text/plain")
        project = _project_above(segments[:MAX_SEGMENTS])
        if project is not None and _may_read(caller, project):
            return _repository_at(project.full_path)
    if caller.user_id is not None:
        return _denied()
    if len(segments) < SEGMENTS_OF_UNKNOWN:
        return Response(status=404)
    return _repository_at("/".join(segments[:SEGMENTS_OF_UNKNOWN]))


def _may_read(caller: Caller, project: Project) -> bool:
    return has_scope(caller, push=False) and allowed(caller, Ability.READ_CODE, project)


def _project_above(segments: list[str]) -> Project | None:
    """Return the project with the longest leading part of a path, also a former one."""
    paths = ["/".join(segments[:length]).lower() for length in range(SEGMENTS_OF_UNKNOWN, len(segments) + 1)]
    present = projects().where(func.lower(Project.full_path).in_(paths)).order_by(func.length(Project.full_path).desc())
    project = db.session.scalar(present.limit(1))
    former = select(RedirectRoute).where(RedirectRoute.path.in_(paths)).order_by(func.length(RedirectRoute.path).desc())
    moved = db.session.scalar(former.limit(1))
    if moved is None or (project is not None and len(project.full_path) >= len(moved.path)):
        return project
    return db.session.scalar(projects().where(Project.id == moved.project_id)) or project


def _repository_at(full_path: str) -> Response:
    address = urls.absolute(f"/{urls.encode_path(full_path)}")
    import_path = address.partition("://")[2]
    return Response(render_template("repositories/go_get.html", import_path=import_path, url=f"{address}.git"))


def _denied() -> Response:
    advice = urls.absolute("/-/profile/personal_access_tokens")
    return Response(DENIED.format(advice), 404, mimetype="text/plain")
