"""The blueprint of the API: every request takes the same steps, in the order its decorators stand.

``unit_of_work`` → ``authenticate`` → ``signed_in`` → ``allow`` → ``arguments`` → the view → ``response``. The body is
read before the unit of work begins, so that no lock is ever held while a client sends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import marshmallow
import orjson
from flask import Response, current_app, g, request
from flask_smorest import Blueprint
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from project_service.access import identity, steps
from project_service.access.abilities import Ability
from project_service.kit import paging
from project_service.kit.database import unit_of_work
from project_service.kit.errors import MethodNotAllowed as NotAllowed
from project_service.kit.errors import ServiceError, Unauthorized
from project_service.kit.parameters import parameters
from project_service.kit.schemas import Schema, load

PREFIX = "/api/v4"
BODIED = ("post", "put", "patch")
BODY_TYPES = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
PATH_NAMES = {"project": "id", "group": "id", "namespace": "id", "user": "id", "token": "id"}

PAGING = (paging.PagingSchema(),)

View = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class As:
    """What a view found, in a form of its own: people see different fields of the same thing.

    ``prepare`` gets the rows of the page before they are dumped, to fetch for all what each shows.
    """

    schema: type[Schema]
    found: Any
    prepare: Callable[[list[Any]], None] | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of rows with the headers that speak of the whole list."""

    rows: Iterable[Any]
    headers: dict[str, str]


class ApiBlueprint(Blueprint):  # type: ignore[misc]  # flask-smorest is untyped
    """The routes of one area under ``/api/v4``. ``path_names`` says how links call the parameters of the path."""

    def __init__(
        self, name: str, import_name: str, *, description: str, path_names: dict[str, str] | None = None
    ) -> None:
        super().__init__(name, import_name, url_prefix=PREFIX, description=description)
        self.path_names = PATH_NAMES | (path_names or {})

    def add_url_rule(self, rule: str, endpoint: str | None = None, view_func: Any = None, *args: Any, **options: Any) -> None:
        """Register a view behind the steps of a request; a view that names no ability does not register."""
        steps.check_guarded(view_func)
        super().add_url_rule(rule, endpoint or view_func.__name__, self._answer(view_func), *args, **options)

    def signed_in(self, view: View) -> View:
        """Somebody has to be signed in: 401 otherwise."""

        @functools.wraps(view)
        def checked(*args: Any, **url: Any) -> Any:
            if identity.caller().user_id is None:
                raise Unauthorized
            return view(*args, **url)

        checked.needs_user = True  # type: ignore[attr-defined]  # a mark that the answer to a wrong method reads
        return checked

    def allow(self, ability: Ability) -> Callable[[View], View]:
        """Find what the URL is about, judge, hide: 404 and 403."""
        return steps.allow(ability)

    def scopes(self, *also: str) -> Callable[[View], View]:
        """Tokens with one of these scopes may read this, beside those with ``api`` and ``read_api``."""
        return _marked("scopes", also)

    def any_scope(self, view: View) -> View:
        """A token of any scope will do."""
        return _marked("scopes", None)(view)

    def arguments(self, schema: type[Schema]) -> Callable[[View], View]:
        """Parse the parameters: 400 with every refusal. The view gets the parsed fields next."""
        made = schema()

        def decorate(view: View) -> View:
            schemas = (*PAGING, made) if getattr(view, "paged", False) else (made,)

            @functools.wraps(view)
            def parsed(*args: Any, **url: Any) -> Any:
                return view(*args, _load(schemas), **url)

            return _documented(parsed, schemas)

        return decorate

    def paged(self, view: View) -> View:
        """Cut the list that the view's statement describes into the page that was asked for."""

        @functools.wraps(view)
        def cut(*args: Any, **url: Any) -> Any:
            if "page" not in g:
                _load(PAGING)
            found = view(*args, **url)
            if not isinstance(found, As):
                return Listed(*paging.cut(found, g.page))
            rows, headers = paging.cut(found.found, g.page)
            if found.prepare is not None:
                found.prepare(rows)
            return As(found.schema, Listed(rows, headers))

        cut.paged = True  # type: ignore[attr-defined]  # a mark that ``arguments`` reads
        return _documented(cut, PAGING)

    def response(self, status: int, schema: Any = None, **documentation: Any) -> Callable[[View], View]:  # type: ignore[override]
        """Dump what the view returns: a row, rows, a page of rows, nothing (204), or a ``Response`` as it is."""
        made = schema() if isinstance(schema, type) else schema
        documented = super().response(status, made, **documentation)

        def decorate(view: View) -> View:
            @functools.wraps(view)
            def dumped(*args: Any, **url: Any) -> Response:
                found = view(*args, **url)
                if isinstance(found, Response):
                    return found
                return _answered(found, status, made)

            dumped._apidoc = documented(view)._apidoc  # type: ignore[attr-defined]  # only the documentation is taken
            return dumped

        return decorate

    def _answer(self, view: View) -> View:
        scopes = getattr(view, "scopes", ())

        @functools.wraps(view)
        def answered(**url: Any) -> Response:
            g.path_names = self.path_names
            parameters()
            with unit_of_work(write=False):
                g.caller = identity.sudo(request, identity.by_token(request, scopes))
            with unit_of_work(write=request.method not in identity.READ_METHODS):
                response: Response = view(**url)
            return response

        return answered

    def _prepare_arguments_doc(
        self, doc: dict[str, Any], doc_info: dict[str, Any], *, method: str, **_rest: Any
    ) -> dict[str, Any]:
        schemas = doc_info.get("schemas", ())
        if not schemas:
            return doc
        if method not in BODIED:
            doc["parameters"] = [{"in": "query", "schema": schema} for schema in schemas]
        else:
            needed = any(field.required for schema in schemas for field in schema.load_fields.values())
            content = {kind: {"schema": schemas[-1]} for kind in BODY_TYPES}
            doc["requestBody"] = {"content": content, "required": needed}
        return doc


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(orjson.dumps(value), status, headers, mimetype="application/json")


def _answered(found: Any, status: int, schema: marshmallow.Schema | None) -> Response:
    if status == HTTPStatus.NO_CONTENT:
        response = Response(status=status)
        del response.headers["Content-Type"]
        return response
    if isinstance(found, As):
        schema, found = found.schema(many=isinstance(found.found, Listed)), found.found
    if isinstance(found, Listed):
        return json_response(_dump(found.rows, schema), status, found.headers)
    return json_response(_dump(found, schema), status)


def _dump(found: Any, schema: marshmallow.Schema | None) -> Any:
    return found if schema is None or found is None else schema.dump(found)


def _marked(name: str, value: Any) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @functools.wraps(view)
        def marked(*args: Any, **url: Any) -> Any:
            return view(*args, **url)

        setattr(marked, name, value)
        return marked

    return decorate


def _load(schemas: tuple[Schema, ...]) -> dict[str, Any]:
    fields = load(*schemas, parameters=parameters())
    g.defaults = {name: value for name, value in fields.items() if value is not None}
    if "page" in fields:
        g.page = paging.Page.of(fields)
        del fields["page"], fields["per_page"]
    return fields


def _documented(view: View, schemas: tuple[Schema, ...]) -> View:
    apidoc = deepcopy(getattr(view, "_apidoc", {}))
    apidoc["schemas"] = schemas
    view._apidoc = apidoc  # type: ignore[attr-defined]  # flask-smorest keeps its documentation there
    return view


def wrong_method(error: MethodNotAllowed) -> ServiceError:
    """What a known address answers to a method it has not: who is not signed in hears that first (section 14)."""
    methods = error.valid_methods or ()
    for method in methods:
        try:
            rule, _ = _adapter().match(method=method, return_rule=True)
        except HTTPException:
            continue
        view = current_app.view_functions[rule.endpoint]
        if getattr(view, "needs_user", False):
            try:
                with unit_of_work(write=False):
                    known = identity.by_token(request, None).user_id is not None
            except ServiceError as refused:
                return refused
            if not known:
                return Unauthorized()
        break
    return NotAllowed(allow=", ".join(sorted({*methods, "OPTIONS"})))


def _adapter() -> Any:
    return current_app.create_url_adapter(request)
