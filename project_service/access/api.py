"""The blueprint of the API: every request takes the same steps, in the order of the decorators of its view.

authenticate → ``unit_of_work`` → ``signed_in`` → ``allow`` → ``arguments`` → the view → ``response``. The body is read
before the unit of work begins, so that no lock is held while a client sends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import marshmallow
from flask import Response, current_app, g, request
from flask_smorest import Blueprint
from sqlalchemy.orm.exc import ObjectDeletedError
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from project_service.access import api_documentation, guards, identity
from project_service.kit import exact_json
from project_service.kit.db import large_texts
from project_service.kit.db.session import reading, unit_of_work
from project_service.kit.http import pagination, responses, urls
from project_service.kit.http.clients.view_admission import MAX_BODY_BYTES
from project_service.kit.http.errors import MethodNotAllowed as NotAllowed
from project_service.kit.http.errors import ServiceError, Unauthorized
from project_service.kit.http.list_responses import list_response
from project_service.kit.http.pagination import Paging
from project_service.kit.http.parameters import parameters
from project_service.kit.http.schemas import Schema, load

# what links call the parameters of the path
PATH_NAMES = {"project": "id", "group": "id", "namespace": "id", "user": "id", "token": "id"}

PAGING_SCHEMAS = (pagination.PagingSchema(),)

View = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class WithSchema:
    """The result of a view with the schema that serializes it, where callers see different fields of the same thing.

    ``prepare`` gets the rows of a page before they are serialized, to load what each shows; it may return other rows
    to serialize in their place.
    """

    schema: type[Schema]
    result: Any
    prepare: Callable[[list[Any]], list[Any] | None] | None = None


@dataclass(frozen=True, slots=True)
class PageOfRows:
    """The rows of a page and the pagination headers of the whole list."""

    rows: Iterable[Any]
    headers: dict[str, str]


class ApiBlueprint(Blueprint):
    """The routes of one area under ``/api/v4``. ``path_names`` is what links call the parameters of the path."""

    def __init__(
        self, name: str, import_name: str, *, description: str, path_names: dict[str, str] | None = None
    ) -> None:
        super().__init__(name, import_name, url_prefix=urls.API_PREFIX, description=description)
        self.path_names = PATH_NAMES | (path_names or {})

    def add_url_rule(
        self, rule: str, endpoint: str | None = None, view_func: Any = None, *args: Any, **options: Any
    ) -> None:
        """Register a view behind the steps of a request; raise ``Unguarded`` for a view that names no ability."""
        ability = guards.ability_of(view_func, rule)
        guards.mark_for_server(view_func, options)
        name = endpoint or view_func.__name__
        options["parameters"] = api_documentation.path_parameters(rule)
        [method] = options["methods"]
        view = self.doc(**api_documentation.operation(name, view_func, method))(self._handle(view_func))
        super().add_url_rule(rule, name, guards.mark(view, ability=ability), *args, **options)

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
        """Require a user: 401 for anonymous requests."""

        @functools.wraps(view)
        def checked(*args: Any, **url: Any) -> Any:
            if identity.caller().user_id is None:
                raise Unauthorized
            return view(*args, **url)

        return guards.mark(checked, needs_user=True)

    allow = staticmethod(guards.allow)  # load the subject of the URL and check the ability

    def scopes(self, *also: str) -> Callable[[View], View]:
        """Let tokens with one of these scopes read this, in addition to ``api`` and ``read_api``."""
        return lambda view: guards.mark(view, scopes=also)

    def any_scope(self, view: View) -> View:
        """Accept a token of any scope."""
        return guards.mark(view, scopes=None)

    def first(self, check: Callable[[], None]) -> Callable[[View], View]:
        """Run a check before authentication; it raises the error that hides the view."""
        return lambda view: guards.mark(view, first=check)

    def large_body(self, max_bytes: Callable[[], int | None]) -> Callable[[View], View]:
        """Set the maximum size of the body in bytes (``None``: unlimited), which is looked up for each request.

        The sender is authenticated before the body is read. The view begins in a unit of work that only reads, so that
        nothing is locked while it stores or parses the body; it writes in one of its own (``session.writing``).
        """
        return lambda view: guards.mark(view, max_body_bytes=max_bytes)

    def arguments(self, schema: type[Schema]) -> Callable[[View], View]:
        """Validate the parameters: 400 with all errors. The view gets the validated fields as its next argument."""
        instance = schema()

        def decorate(view: View) -> View:
            adds_paging = getattr(view, "paged", False) and not isinstance(instance, pagination.PagingSchema)
            schemas = (instance, *PAGING_SCHEMAS) if adds_paging else (instance,)

            @functools.wraps(view)
            def parsed(*args: Any, **url: Any) -> Any:
                fields = load(*schemas, parameters=parameters())
                if "page" in fields:
                    url["paging"] = self._paging(fields)
                return view(*args, fields, **url)

            return guards.mark(parsed, parameter_schemas=schemas)

        return decorate

    def paged(self, view: View) -> View:
        """Return the requested page of the list that the view's statement selects."""
        takes_paging = getattr(view, "takes_paging", False)

        @functools.wraps(view)
        def cut(*args: Any, paging: Paging | None = None, **url: Any) -> Any:
            paging = paging or self._paging(load(*PAGING_SCHEMAS, parameters=parameters()))
            listed = view(*args, paging=paging, **url) if takes_paging else view(*args, **url)
            if not isinstance(listed, WithSchema):
                return PageOfRows(*pagination.cut(listed, paging))
            rows, headers = pagination.cut(listed.result, paging)
            if listed.prepare is not None:
                prepared = listed.prepare(rows)
                rows = rows if prepared is None else prepared
            return WithSchema(listed.schema, PageOfRows(rows, headers))

        return guards.mark(cut, paged=True, parameter_schemas=PAGING_SCHEMAS)

    def takes_paging(self, view: View) -> View:
        """Give the view of a list the requested page, as ``paging``: for lists that are cut where they are read."""
        return guards.mark(view, takes_paging=True)

    def response(self, status: int, schema: Any = None, **documentation: Any) -> Callable[[View], View]:
        """Serialize the result of the view: a row, rows, a page, nothing (204), or a ``Response`` as it is."""
        instance = schema() if isinstance(schema, type) else schema
        documented = {} if instance is None and status != HTTPStatus.NO_CONTENT else instance

        def decorate(view: View) -> View:
            headers = api_documentation.PAGE_HEADERS if getattr(view, "paged", False) else None
            document = self.alt_response(status, schema=documented, headers=headers, **documentation)

            @functools.wraps(document(view))
            def serialized(*args: Any, **url: Any) -> Response:
                result = view(*args, **url)
                return result if isinstance(result, Response) else _serialized(result, status, instance)

            return serialized

        return decorate

    def other_response(self, status: int, description: str) -> Callable[[View], View]:
        """Document one more answer of the view, which it returns as a ``Response``."""
        document: Callable[[View], View] = self.alt_response(status, description=description)
        return document

    def _at(self, rule: str, method: str, options: dict[str, Any]) -> Callable[[View], View]:
        decorate: Callable[[View], View] = self.route(rule, methods=[method], **options)
        return decorate

    def _paging(self, fields: dict[str, Any]) -> Paging:
        """Take which page is requested from validated parameters."""
        paging = Paging.of(fields, self.path_names)
        del fields["page"], fields["per_page"]
        return paging

    def _handle(self, view: View) -> View:
        scopes = getattr(view, "scopes", ())
        max_body_bytes = getattr(view, "max_body_bytes", None)
        first = getattr(view, "first", None)
        access_only = getattr(view, "access_only", False)

        def body_limit() -> int:
            with reading():
                # a token in the body is not read yet: its sender keeps the default limit
                is_known = identity.by_token(request, scopes, unread=True).user_id is not None
                return guards.in_bytes(max_body_bytes) if is_known else MAX_BODY_BYTES

        @functools.wraps(view)
        def handle(**url: Any) -> Any:
            if first is not None:
                with reading():
                    first()
            if max_body_bytes is not None:
                request.max_content_length = body_limit()
            else:
                identity.refuse_unknown_sender(request, scopes)
            parameters()
            with reading():
                project = url.get("project") if access_only else None
                g.caller = identity.sudo(request, identity.by_token(request, scopes, project=project))
                if request.method in identity.READ_METHODS:
                    return view(**url)
            with unit_of_work(write=max_body_bytes is None):
                return view(**url)

        return handle if max_body_bytes is None else guards.mark(handle, body_limit=body_limit)


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(exact_json.dumps(value), status, headers, mimetype="application/json")


def no_content() -> Response:
    """Return 204 without a body."""
    response = Response(status=HTTPStatus.NO_CONTENT)
    del response.headers["Content-Type"]
    return response


def _serialized(result: Any, status: int, schema: marshmallow.Schema | None) -> Response:
    if status == HTTPStatus.NO_CONTENT:
        return no_content()
    if isinstance(result, WithSchema):
        schema, result = _instance_of(result.schema, isinstance(result.result, PageOfRows)), result.result
    if isinstance(result, PageOfRows):
        if isinstance(result.rows, list) and not large_texts.deferred_texts():
            rows = result.rows if schema is None else schema.dump(result.rows, many=True)
            return json_response(rows, status, result.headers)
        texts, directory = _rows_as_json(result.rows, schema), current_app.config["SETTINGS"].data_dir
        return list_response(texts, status, result.headers, directory)
    return json_response(_dump(result, schema), status)


def _rows_as_json(rows: Iterable[Any], schema: marshmallow.Schema | None) -> Iterator[bytes]:
    """Serialize rows one by one; the long texts of a row are loaded for it alone."""
    for row in rows:
        with suppress(ObjectDeletedError):  # another request removed it since the list was read
            yield exact_json.dumps(row if schema is None else schema.dump(row, many=False))
        large_texts.release()


@functools.cache
def _instance_of(schema: type[Schema], many: bool) -> Schema:
    """Return a shared instance of a schema: creating one takes longer than serializing with it."""
    return schema(many=many)


def _dump(result: Any, schema: marshmallow.Schema | None) -> Any:
    return result if schema is None or result is None else schema.dump(result)


def method_not_allowed(error: MethodNotAllowed) -> ServiceError:
    """Return the error of a known URL without this method: anonymous callers get 401 first.

    Common reference, section 14.
    """
    methods = sorted({*(error.valid_methods or ()), "OPTIONS"})
    if any(_needs_user(method) for method in methods):
        try:
            _require_user()
        except ServiceError as refusal:
            return refusal
    return NotAllowed(allow=", ".join(methods))


def before_options() -> None:
    """Refuse anonymous ``OPTIONS`` requests for URLs whose methods all need a user (common reference, section 14)."""
    if request.method == "OPTIONS" and responses.is_api():
        adapter: Any = current_app.create_url_adapter(request)
        methods = set(adapter.allowed_methods()) - {"OPTIONS"}
        if methods and all(_needs_user(method) for method in methods):
            _require_user()


def _require_user() -> None:
    """Raise the error of the request's token, or ``Unauthorized`` if it has none."""
    identity.refuse_unknown_sender(request, None)
    with reading():
        if identity.by_token(request, None).user_id is None:
            raise Unauthorized


def _needs_user(method: str) -> bool:
    """Whether the view of this method at the URL of the request needs a user."""
    adapter: Any = current_app.create_url_adapter(request)
    try:
        rule, _ = adapter.match(method=method, return_rule=True)
    except HTTPException:
        return False
    return getattr(current_app.view_functions[rule.endpoint], "needs_user", False)
