"""The steps of a request of a client of Sentry, below ``/api/0`` (source maps reference, sections 3 to 5)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, g, request
from sqlalchemy import func, or_, select
from werkzeug.exceptions import HTTPException

from project_service.access import guards, identity
from project_service.access.abilities import Ability, allowed, judge
from project_service.access.api import json_response
from project_service.access.identity import ANONYMOUS, caller
from project_service.access.rules import visible_projects
from project_service.areas.error_tracking.releases import service
from project_service.areas.error_tracking.releases.models import ErrorRelease
from project_service.domain.namespaces import Namespace, namespace_by
from project_service.domain.projects import Project, projects, projects_below
from project_service.domain.rate_limits import RateLimit
from project_service.kit.db.session import db, reading, unit_of_work
from project_service.kit.http import errors, responses
from project_service.kit.http.fields import whole_number

PREFIX = "/api/0"
REQUESTS = RateLimit("sentry_api", 300)
MAX_PROJECTS = 1000
UNKNOWN = "The requested resource does not exist"
TEXTS = {403: "You do not have permission to perform this action.", 404: UNKNOWN}
View = Callable[..., Any]


class ClientRefused(Exception):
    """A request is refused; clients print the text, which is the only key of the answer."""

    def __init__(self, status: int, text: str, key: str = "detail") -> None:
        super().__init__(text)
        self.status, self.key = status, key


class SentryBlueprint(Blueprint):
    """Routes that clients of Sentry call: authenticated by token, with errors as they print them."""

    def __init__(self, name: str, import_name: str) -> None:
        super().__init__(name, import_name, url_prefix=PREFIX)
        self.register_error_handler(Exception, _render)

    def at(
        self, method: str, *rules: str, anonymous: bool = False, writes: bool = True, body_bytes: int | None = None
    ) -> Callable[[View], View]:
        """Register a view; ``writes`` false: it opens the unit of work that writes itself."""

        def decorate(view: View) -> View:
            @functools.wraps(view)
            def handle(**url: Any) -> Response:
                with reading():
                    g.caller = _authenticated(required=not anonymous)
                if caller().uses_token:
                    REQUESTS.check(caller().token_id or f"oauth-{caller().oauth_token_id}")
                if body_bytes is not None:
                    request.max_content_length = body_bytes
                with reading() if method == "GET" else unit_of_work(write=writes):
                    answer = view(**url)
                return answer if isinstance(answer, Response) else json_response(answer)

            if body_bytes is not None:
                guards.mark(handle, body_bytes=body_bytes)
            for number, rule in enumerate(rules):
                self.add_url_rule(rule, f"{view.__name__}_{method.lower()}_{number}", handle, methods=[method])
            return view

        return decorate


def find_organization(text: str) -> Namespace:
    """Return a top-level namespace below which the caller reads errors of some project."""
    namespace = namespace_by(text)
    if namespace is None or namespace.parent_id is not None or not readable_projects(namespace):
        raise ClientRefused(404, UNKNOWN)
    return namespace


def readable_projects(namespace: Namespace) -> list[Project]:
    """Return the projects below a namespace whose errors the caller may read."""
    below = projects().where(Project.id.in_(projects_below(namespace)), visible_projects(caller()))
    candidates = db.session.scalars(below.order_by(Project.id).limit(MAX_PROJECTS))
    return [project for project in candidates if allowed(caller(), Ability.READ_ERRORS, project)]


def readable_organizations() -> list[Namespace]:
    """Return the top-level namespaces of projects whose errors the caller may read."""
    mine = projects().where(visible_projects(caller())).order_by(Project.id).limit(MAX_PROJECTS)
    paths = {
        project.full_path.partition("/")[0].lower()
        for project in db.session.scalars(mine)
        if allowed(caller(), Ability.READ_ERRORS, project)
    }
    top = select(Namespace).where(func.lower(Namespace.full_path).in_(paths), Namespace.deleting_since.is_(None))
    return list(db.session.scalars(top.order_by(Namespace.id)))


def find_sentry_project(namespace: Namespace, text: str, ability: Ability) -> Project:
    """Return a project below an organisation, by its id or the last part of its path, for callers with an ability."""
    number = whole_number(text)
    named = Project.id == number if number is not None else func.lower(Project.path) == text.lower()
    below = projects().where(Project.id.in_(projects_below(namespace)), or_(visible_projects(caller())), named)
    readable = [
        project
        for project in db.session.scalars(below.limit(MAX_PROJECTS))
        if allowed(caller(), Ability.READ_ERRORS, project)
    ]
    if not readable:
        raise ClientRefused(404, UNKNOWN)
    if len(readable) > 1:
        raise ClientRefused(400, f"Several projects are called {text[:100]}, use the id")
    judge(caller(), ability, readable[0])
    return readable[0]


def readable_in(namespace: Namespace, project: str | None) -> list[Project]:
    """Return the project of an address, or all below a namespace whose errors the caller may read."""
    if project is not None:
        return [find_sentry_project(namespace, project, Ability.READ_ERRORS)]
    return readable_projects(namespace)


def existing_releases(project_ids: list[int], version: str) -> list[ErrorRelease]:
    """Return the releases of a version, one for each project; 404 if there is none."""
    rows = service.releases_named(project_ids, version)
    if not rows:
        raise ClientRefused(404, UNKNOWN)
    return rows


def json_object() -> dict[str, Any]:
    """Return the body, which has to be a JSON object."""
    body = request.get_json(force=True, silent=True)
    if not isinstance(body, dict):
        raise ClientRefused(400, "Invalid json body", "error")
    return body


def _authenticated(*, required: bool) -> identity.Caller:
    try:
        uploader = identity.by_token(request, (), unread=True)
    except (errors.Unauthorized, errors.InvalidToken) as error:
        raise ClientRefused(401, "Invalid token") from error
    if uploader == ANONYMOUS and required:
        raise ClientRefused(401, "Authentication credentials were not provided.")
    return uploader


def _render(error: Exception) -> Response:
    if isinstance(error, ClientRefused):
        return json_response({error.key: str(error)}, error.status)
    refusal = responses.as_service_error(error)
    default = error.description if isinstance(error, HTTPException) and error.description else str(refusal)
    response = json_response({"detail": TEXTS.get(refusal.status, default)}, refusal.status)
    response.headers.extend(refusal.headers)
    return response
