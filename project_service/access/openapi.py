"""The OpenAPI document of the API, built from routes and schemas, and the Swagger UI page that shows it."""

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

from project_service.access.api import ApiBlueprint, json_response
from project_service.access.api_documentation import SECURITY_SCHEMES
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Nested, Schema

EXTENSION = "document"
ASSET_MAX_AGE_SECONDS = 86400
ASSETS = str(files("flask_swagger_ui") / "dist")
ASSET_NAMES = ("swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png")
# Swagger UI sets styles of elements from scripts, which no hash can allow
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
page = Blueprint("document", __name__)


class ErrorSchema(Schema):
    """The body of an error response: ``message``, or ``error`` with an optional description."""

    message = fields.Computed(lambda error: error, type=None, metadata={"description": "A text, or messages by field."})
    error = fields.String()
    error_description = fields.String()
    scope = fields.String()


class SchemaConverter(OpenAPIConverter):
    """apispec's converter with the rules of our schemas: where ``null`` may stand, which parameters need each other."""

    def init_parameter_attribute_functions(self) -> None:
        """Let the field describe how arrays are written, in place of the library."""
        self.parameter_attribute_functions: list[Any] = [self.field2required, self.field2style]

    def field2style(self, field: Any, *, ret: dict[str, Any]) -> dict[str, Any]:
        """Describe how a query writes the value; a query cannot write ``null``."""
        return {"schema": _without_null(ret["schema"]), **getattr(field, "in_forms", {})}

    def field2nullable(self, field: Any, ret: dict[str, Any]) -> dict[str, Any]:
        """Allow ``null`` where the field does, also in the list of values; a field without a type allows everything."""
        if isinstance(field, Nested) or not ret.keys() & {"type", "$ref", "allOf"}:
            return {}
        described: dict[str, Any] = super().field2nullable(field, ret)
        return described | {"enum": [*ret["enum"], None]} if "enum" in ret and "nullable" in described else described

    def list2properties(self, field: Any, **options: Any) -> dict[str, Any]:
        """Describe the elements of an array, which are never ``null``."""
        described: dict[str, Any] = super().list2properties(field, **options)
        return {name: _without_null(inner) for name, inner in described.items()}

    def schema2jsonschema(self, schema: Any) -> dict[str, Any]:
        """Describe a schema with its docstring and the rules on several parameters that ``load`` checks."""
        described: dict[str, Any] = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call]  # apispec is partly untyped
        if not isinstance(schema, Schema):  # one of flask-smorest's own
            return described
        described["description"] = (schema.__doc__ or "").partition("\n")[0]
        needed = [name for name in described.pop("required", []) if name not in schema.alternatives]
        rules = [_one_of(name, other) for name, other in schema.alternatives.items()]
        rules += [_one_of(*schema.at_least_one, *schema.counts_too)] if schema.at_least_one else []
        rules += [{"oneOf": _one_of(*schema.exactly_one)["anyOf"]}] if schema.exactly_one else []
        rules += [{"not": {"required": list(pair)}} for group in schema.exclusive for pair in combinations(group, 2)]
        return described | ({"required": needed} if needed else {}) | ({"allOf": rules} if rules else {})


def _without_null(described: dict[str, Any]) -> dict[str, Any]:
    cleaned = {name: value for name, value in described.items() if name != "nullable"}
    if "enum" in cleaned:
        cleaned["enum"] = [value for value in cleaned["enum"] if value is not None]
    return cleaned


def _one_of(*names: str) -> dict[str, Any]:
    return {"anyOf": [{"required": [name]} for name in names]}


class SchemaPlugin(MarshmallowPlugin):
    """apispec's marshmallow plugin with our converter."""

    Converter = SchemaConverter


class DocumentedApi(Api):
    """flask-smorest's API with the schema of our errors."""

    ERROR_SCHEMA = ErrorSchema


def init_app(app: Flask, blueprints: Sequence[ApiBlueprint]) -> None:
    """Register the blueprints, the document under ``/api/v4/openapi.json`` and the page under ``/api/docs``."""
    for blueprint in blueprints:
        app.register_blueprint(blueprint)
    app.register_blueprint(page)
    app.extensions[EXTENSION] = functools.cache(lambda: build_document(blueprints))


def build_document(blueprints: Sequence[ApiBlueprint]) -> bytes:
    """Build the document as JSON, on an application of its own: flask-smorest's error handlers are not wanted in ours.

    It takes long and needs much memory, so it is built on the first request for it.
    """
    app = Flask(__name__)
    app.config.update(
        API_TITLE="Project Service",
        API_VERSION="v4",
        OPENAPI_VERSION="3.0.3",
        API_SPEC_OPTIONS={
            "components": {"securitySchemes": SECURITY_SCHEMES},
            "security": [{name: []} for name in SECURITY_SCHEMES],
            "info": {"description": "GitLab REST API v4 for eight areas of a project-hosting platform."},
        },
    )
    document = DocumentedApi(app, spec_kwargs={"marshmallow_plugin": SchemaPlugin()})
    del document.spec.components.schemas["PaginationMetadata"]  # our lists have other headers
    for name in (HTTPStatus.BAD_REQUEST.name, document.DEFAULT_ERROR_RESPONSE_NAME):
        # a malformed request is refused in plain text
        response = document.spec.components.responses_lazy[name]
        response["content"]["text/plain"] = {"schema": {"type": "string", "enum": ["Bad Request"]}}
    for blueprint in blueprints:
        document.register_blueprint(blueprint)
    return orjson.dumps(document.spec.to_dict())


@page.get(f"{urls.API_PREFIX}/openapi")  # the suffix .json is ignored on every path
def show_openapi() -> Response:
    """Return the document."""
    return Response(current_app.extensions[EXTENSION](), mimetype="application/json")


@page.get("/api/docs")
def show_swagger_ui() -> Response:
    """Show Swagger UI."""
    response = Response(render_template("document/show.html"), mimetype="text/html")
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response


@page.get("/api/docs/<name>")
def show_asset(name: str) -> Response:
    """Return a file of Swagger UI from its package."""
    return send_from_directory(ASSETS, name if name in ASSET_NAMES else "missing", max_age=ASSET_MAX_AGE_SECONDS)


@page.route("/api/v3/<path:_rest>", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
def refuse_old_version(_rest: str) -> Response:
    """Refuse API v3, except for the one route that old clients request first (common reference, section 1)."""
    if _rest == "user":
        view: Any = current_app.view_functions["users.show_current_user"]
        return make_response(view())
    return json_response({"error": "API V3 is no longer supported. Use API V4 instead."}, 410)
