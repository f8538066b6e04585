"""The blueprint of the API: every request takes the same steps, in the order its decorators stand.

``unit_of_work`` → ``authenticate`` → ``signed_in`` → ``allow`` → ``arguments`` → the view → ``response``. The body is
read before the unit of work begins, so that no lock is ever held while a client sends.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import marshmallow
from flask import Response, current_app, g, request
from flask_smorest import Blueprint
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from project_service.access import guards, identity
from project_service.access.abilities import Ability
from project_service.kit import bigint_json
from project_service.kit.db import pagination
from project_service.kit.db.session import reading, unit_of_work
from project_service.kit.http import responses
from project_service.kit.http.errors import MethodNotAllowed as NotAllowed
from project_service.kit.http.errors import ServiceError, Unauthorized
from project_service.kit.http.fields import Upload
from project_service.kit.http.parameters import parameters
from project_service.kit.http.schemas import Schema, load

PREFIX = "/api/v4"
BODIED = ("post", "put", "patch")
JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
SECURITY: dict[str, Any] = {
    "private_token": {"type": "apiKey", "in": "header", "name": "PRIVATE-TOKEN"},
    "bearer": {"type": "http", "scheme": "bearer"},
}
PATH_PART = re.compile(r"<(?:\w+:)?(\w+)>")
PATH_PARTS = {
    "project": "The id or the URL-encoded full path of the project.",
    "group": "The id or the URL-encoded full path of the group.",
    "namespace": "The id or the URL-encoded full path of the namespace.",
    "user": "The id of the user.",
    "token": "The id of the token.",
}
PATH_NAMES = {"project": "id", "group": "id", "namespace": "id", "user": "id", "token": "id"}

PAGING = (pagination.PagingSchema(),)
PAGE_HEADERS = {name: {"description": text, "schema": {"type": "string"}} for name, text in pagination.HEADERS.items()}

View = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class As:
    """What a view found, in a form of its own: people see different fields of the same thing.

    ``prepare`` gets the rows of the page before they are dumped, to fetch for all what each shows; it may give
    others in their place.
    """

    schema: type[Schema]
    found: Any
    prepare: Callable[[list[Any]], list[Any] | None] | None = None


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

    def add_url_rule(
        self, rule: str, endpoint: str | None = None, view_func: Any = None, *args: Any, **options: Any
    ) -> None:
        """Register a view behind the steps of a request; a view that names no ability does not register."""
        guards.check_guarded(view_func)
        name = endpoint or view_func.__name__
        options["parameters"] = [
            {"in": "path", "name": part, "description": PATH_PARTS.get(part, f"The {part}, URL-encoded.")}
            for part in PATH_PART.findall(rule)
        ]
        answered = self._answer(view_func)
        apidoc: dict[str, Any] = view_func._apidoc
        answered._apidoc = apidoc | {"manual_doc": _operation(name, view_func)}  # type: ignore[attr-defined]  # flask-smorest keeps its documentation there
        super().add_url_rule(rule, name, answered, *args, **options)

    def get(self, rule: str, **options: Any) -> Callable[[View], View]:
        """Register a view that reads; ``HEAD`` comes with it."""
        return self._at(rule, "GET", options)

    def post(self, rule: str, **options: Any) -> Callable[[View], View]:
        """Register a view that creates or acts."""
        return self._at(rule, "POST", options)

    def put(self, rule: str, **options: Any) -> Callable[[View], View]:
        """Register a view that changes."""
        return self._at(rule, "PUT", options)

    def patch(self, rule: str, **options: Any) -> Callable[[View], View]:
        """Register a view that changes a part."""
        return self._at(rule, "PATCH", options)

    def delete(self, rule: str, **options: Any) -> Callable[[View], View]:
        """Register a view that removes."""
        return self._at(rule, "DELETE", options)

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
        return guards.allow(ability)

    def scopes(self, *also: str) -> Callable[[View], View]:
        """Tokens with one of these scopes may read this, beside those with ``api`` and ``read_api``."""
        return _marked("scopes", also)

    def any_scope(self, view: View) -> View:
        """A token of any scope will do."""
        return _marked("scopes", None)(view)

    def first(self, check: Callable[[], None]) -> Callable[[View], View]:
        """Before anything else is asked, even who it is, this raises what hides the view."""
        return _marked("first", check)

    def large_body(self, largest: Callable[[], int | None]) -> Callable[[View], View]:
        """The body may have this many bytes (``None``: any number), read from the caller's settings when it comes.

        Who sends it is asked before it is read. The view begins in a unit that only reads, so that nothing is locked
        while it stores or parses what came; it writes in one of its own (``session.writing``).
        """
        return _marked("largest_body", largest)

    def arguments(self, schema: type[Schema]) -> Callable[[View], View]:
        """Parse the parameters: 400 with every refusal. The view gets the parsed fields next."""
        made = schema()

        def decorate(view: View) -> View:
            cuts = getattr(view, "paged", False) and not isinstance(made, pagination.PagingSchema)
            schemas = (made, *PAGING) if cuts else (made,)

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
                return Listed(*pagination.cut(found, g.page))
            rows, headers = pagination.cut(found.found, g.page)
            if found.prepare is not None:
                others = found.prepare(rows)
                rows = rows if others is None else others
            return As(found.schema, Listed(rows, headers))

        cut.paged = True  # type: ignore[attr-defined]  # a mark that ``arguments`` reads
        return _documented(cut, PAGING)

    def response(self, status: int, schema: Any = None, **documentation: Any) -> Callable[[View], View]:
        """Dump what the view returns: a row, rows, a page of rows, nothing (204), or a ``Response`` as it is."""
        made = schema() if isinstance(schema, type) else schema
        shown = {} if made is None and status != HTTPStatus.NO_CONTENT else made

        def decorate(view: View) -> View:
            headers = PAGE_HEADERS if getattr(view, "paged", False) else None
            documented = super(ApiBlueprint, self).response(status, shown, headers=headers, **documentation)

            @functools.wraps(view)
            def dumped(*args: Any, **url: Any) -> Response:
                found = view(*args, **url)
                if isinstance(found, Response):
                    return found
                return _answered(found, status, made)

            dumped._apidoc = documented(view)._apidoc  # type: ignore[attr-defined]  # only the documentation is taken
            return dumped

        return decorate

    def _at(self, rule: str, method: str, options: dict[str, Any]) -> Callable[[View], View]:
        decorate: Callable[[View], View] = self.route(rule, methods=[method], **options)
        return decorate

    def _answer(self, view: View) -> View:
        scopes = getattr(view, "scopes", ())
        largest_body = getattr(view, "largest_body", None)
        first = getattr(view, "first", None)

        @functools.wraps(view)
        def answered(**url: Any) -> Any:
            g.path_names = self.path_names
            if first is not None:
                with reading():
                    first()
            if largest_body is not None:
                with reading():
                    # whose token stands in the body is known too late for more than others may send
                    if identity.by_token(request, scopes, unread=True).user_id is not None:
                        guards.admit(largest_body())
            parameters()
            with reading():
                g.caller = identity.sudo(request, identity.by_token(request, scopes))
                if request.method in identity.READ_METHODS:
                    return view(**url)
            with unit_of_work(write=largest_body is None):
                return view(**url)

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
            schema = schemas[0]
            needed = {name for name, field in schema.load_fields.items() if field.required}
            doc["requestBody"] = {"content": _bodies(schema), "required": not needed <= schema.alternatives.keys()}
        return doc


def _operation(name: str, view: View) -> dict[str, Any]:
    """What the document says of a view beyond its parameters and its answer."""
    refusals = [HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND]
    described: dict[str, Any] = {
        "operationId": name,
        "responses": {status.value: status.name for status in refusals},
    }
    if not getattr(view, "needs_user", False):
        described["security"] = [{}, *({scheme: []} for scheme in SECURITY)]
    return described


def _bodies(schema: Schema) -> dict[str, Any]:
    """The body in each form that is read; a file that has to be there needs the one that carries files."""
    fields = schema.load_fields
    if any(isinstance(field, Upload) and field.required for field in fields.values()):
        return {MULTIPART: {"schema": schema}}
    encoding = {name: said for name, field in fields.items() if (said := getattr(field, "in_forms", None))}
    form = {"schema": schema, "encoding": encoding} if encoding else {"schema": schema}
    return {JSON: {"schema": schema}, FORM: form, MULTIPART: {"schema": schema}}


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(bigint_json.dumps(value), status, headers, mimetype="application/json")


def no_content() -> Response:
    """An answer that says only that something is done."""
    response = Response(status=HTTPStatus.NO_CONTENT)
    del response.headers["Content-Type"]  # there is nothing that could have one
    return response


def _answered(found: Any, status: int, schema: marshmallow.Schema | None) -> Response:
    if status == HTTPStatus.NO_CONTENT:
        return no_content()
    if isinstance(found, As):
        schema, found = _made(found.schema, isinstance(found.found, Listed)), found.found
    if isinstance(found, Listed):
        return json_response(_dump(found.rows, schema), status, found.headers)
    return json_response(_dump(found, schema), status)


@functools.cache
def _made(schema: type[Schema], many: bool) -> Schema:
    """An instance of a schema; to make one takes longer than to dump with it."""
    return schema(many=many)


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
        g.page = pagination.Page.of(fields)
        del fields["page"], fields["per_page"]
    return fields


def _documented(view: View, schemas: tuple[Schema, ...]) -> View:
    apidoc = deepcopy(getattr(view, "_apidoc", {}))
    apidoc["schemas"] = schemas
    view._apidoc = apidoc  # type: ignore[attr-defined]  # flask-smorest keeps its documentation there
    return view


def wrong_method(error: MethodNotAllowed) -> ServiceError:
    """What a known address answers to a method it has not: who is not signed in hears that first (section 14)."""
    methods = sorted({*(error.valid_methods or ()), "OPTIONS"})
    if any(_needs_user(method) for method in methods):
        try:
            _refuse_strangers()
        except ServiceError as refused:
            return refused
    return NotAllowed(allow=", ".join(methods))


def before_options() -> None:
    """Tell the methods of an address that is for people who are signed in to nobody else (section 14)."""
    if request.method == "OPTIONS" and responses.is_api():
        adapter: Any = current_app.create_url_adapter(request)
        methods = set(adapter.allowed_methods()) - {"OPTIONS"}
        if methods and all(_needs_user(method) for method in methods):
            _refuse_strangers()


def _refuse_strangers() -> None:
    """Raise what is wrong with the token of the request, or that there is none."""
    with reading():
        if identity.by_token(request, None).user_id is None:
            raise Unauthorized


def _needs_user(method: str) -> bool:
    """Whether the view that answers this method at the address of the request is for people who are signed in."""
    adapter: Any = current_app.create_url_adapter(request)
    try:
        rule, _ = adapter.match(method=method, return_rule=True)
    except HTTPException:
        return False
    return getattr(current_app.view_functions[rule.endpoint], "needs_user", False)
