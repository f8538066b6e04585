"""The API's own document: OpenAPI made from the routes and schemas, and an interactive page that reads it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from http import HTTPStatus
from importlib.resources import files
from itertools import combinations
from typing import Any

import orjson
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Blueprint, Flask, Response, current_app, make_response, render_template, send_from_directory
from flask_smorest import Api

from project_service.access.api import SECURITY, ApiBlueprint, json_response
from project_service.kit.http import fields
from project_service.kit.http.schemas import Nested, Schema

PREFIX = "/api/v4"
EXTENSION = "document"
ASSETS = str(files("flask_swagger_ui") / "dist")
ASSET_NAMES = ("swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png")
# the viewer sets styles of elements from scripts, which no hash can allow
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
page = Blueprint("document", __name__)


class ErrorSchema(Schema):
    """What is said when something is refused: ``message``, or ``error`` with perhaps a description."""

    message = fields.Computed(lambda error: error, type=None, metadata={"description": "A text, or messages by field."})
    error = fields.String()
    error_description = fields.String()
    scope = fields.String()


class Converter(OpenAPIConverter):
    """Says of fields and schemas what holds for ours: how ``null`` is written, and which parameters need each other."""

    def init_parameter_attribute_functions(self) -> None:
        """Replace the library's word on arrays by that of the field."""
        self.parameter_attribute_functions = [self.field2required, self.field2style]  # type: ignore[list-item]  # its own are as narrow

    def field2style(self, field: Any, *, ret: dict[str, Any]) -> dict[str, Any]:
        """How a query writes the value; it has no way to write ``null``."""
        return {"schema": _never_null(ret["schema"]), **getattr(field, "in_forms", {})}

    def field2nullable(self, field: Any, ret: dict[str, Any]) -> dict[str, Any]:
        """``null`` where it may stand, in the list of values too; what has no type may be anything as it is."""
        if isinstance(field, Nested) or not ret.keys() & {"type", "$ref", "allOf"}:
            return {}
        said: dict[str, Any] = super().field2nullable(field, ret)
        return said | {"enum": [*ret["enum"], None]} if "enum" in ret and "nullable" in said else said

    def list2properties(self, field: Any, **options: Any) -> dict[str, Any]:
        """The elements of an array, which are never ``null``."""
        said: dict[str, Any] = super().list2properties(field, **options)
        return {name: _never_null(inner) for name, inner in said.items()}

    def schema2jsonschema(self, schema: Schema) -> dict[str, Any]:
        """The schema with its docstring, and with what ``load`` asks of several parameters together."""
        said: dict[str, Any] = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call]  # it has no types
        said["description"] = (schema.__doc__ or "").partition("\n")[0]
        needed = [name for name in said.pop("required", []) if name not in schema.alternatives]
        rules = [_one_of(name, other) for name, other in schema.alternatives.items()]
        rules += [_one_of(*schema.at_least_one, *schema.counts_too)] if schema.at_least_one else []
        rules += [{"oneOf": _one_of(*schema.exactly_one)["anyOf"]}] if schema.exactly_one else []
        rules += [{"not": {"required": list(pair)}} for group in schema.exclusive for pair in combinations(group, 2)]
        return said | ({"required": needed} if needed else {}) | ({"allOf": rules} if rules else {})


def _never_null(said: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in said.items() if name != "nullable"}
    return found | {"enum": [value for value in found["enum"] if value is not None]} if "enum" in found else found


def _one_of(*names: str) -> dict[str, Any]:
    return {"anyOf": [{"required": [name]} for name in names]}


class Plugin(MarshmallowPlugin):
    """apispec's knowledge of schemas, in our words."""

    Converter = Converter


class Document(Api):  # type: ignore[misc]  # flask-smorest is untyped
    """flask-smorest's API with our errors, rendered by our own handler, and without its own pages and tags."""

    ERROR_SCHEMA = ErrorSchema

    def _register_responses(self) -> None:
        """The library's, and that what cannot even be read is refused in plain text."""
        super()._register_responses()
        for name in (HTTPStatus.BAD_REQUEST.name, self.DEFAULT_ERROR_RESPONSE_NAME):
            response = self.spec.components.responses_lazy[name]
            response["content"]["text/plain"] = {"schema": {"type": "string", "enum": ["Bad Request"]}}

    def _register_error_handlers(self) -> None:
        """Nothing: the application renders errors."""

    def _register_pagination_header(self) -> None:
        """Nothing: lists have headers of their own."""

    def _register_etag_headers(self) -> None:
        """Nothing: every read has its tag."""


def init_app(app: Flask, blueprints: Sequence[ApiBlueprint]) -> None:
    """Register the blueprints, the document under ``/api/v4/openapi.json`` and the page under ``/api/docs``."""
    for blueprint in blueprints:
        app.register_blueprint(blueprint)
    app.register_blueprint(page)
    app.extensions[EXTENSION] = functools.cache(lambda: made_of(blueprints))


def made_of(blueprints: Sequence[ApiBlueprint]) -> bytes:
    """The document, in JSON. It takes long to make and much memory, on an application that is there for nothing else.

    So it is made when somebody asks for it first.
    """
    app = Flask(__name__)
    app.config.update(
        API_TITLE="Project Service",
        API_VERSION="v4",
        OPENAPI_VERSION="3.0.3",
        API_SPEC_OPTIONS={
            "components": {"securitySchemes": SECURITY},
            "security": [{name: []} for name in SECURITY],
            "info": {"description": "GitLab REST API v4 for eight areas of a project-hosting platform."},
        },
    )
    document = Document(app, spec_kwargs={"marshmallow_plugin": Plugin()})
    for blueprint in blueprints:
        document.register_blueprint(blueprint)
    return orjson.dumps(document.spec.to_dict())


@page.get(f"{PREFIX}/openapi")  # .json is tolerated after every address
def show_openapi() -> Response:
    """The document."""
    return Response(current_app.extensions[EXTENSION](), mimetype="application/json")


@page.get("/api/docs")
def show_document() -> Response:
    """The interactive page."""
    response = Response(render_template("document/show.html"), mimetype="text/html")
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response


@page.get("/api/docs/<name>")
def show_asset(name: str) -> Response:
    """The viewer's own files, from the package that carries them."""
    return send_from_directory(ASSETS, name if name in ASSET_NAMES else "missing", max_age=86400)


@page.route("/api/v3/<path:_rest>", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
def refuse_old_version(_rest: str) -> Response:
    """API v3 is gone, but for the one address that old clients begin with (common behaviour, section 1)."""
    if _rest == "user":
        view: Any = current_app.view_functions["users.show_current_user"]
        return make_response(view())
    return json_response({"error": "API V3 is no longer supported. Use API V4 instead."}, 410)
