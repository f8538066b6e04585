"""The API's own document: OpenAPI made from the routes and schemas, and an interactive page that reads it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from flask import Blueprint, Flask, Response, render_template, send_from_directory
from flask_smorest import Api
from marshmallow import Schema

from project_service.access.api import ApiBlueprint, json_response
from project_service.kit import fields

PREFIX = "/api/v4"
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


class Document(Api):  # type: ignore[misc]  # flask-smorest is untyped
    """flask-smorest's API with our errors, rendered by our own handler."""

    ERROR_SCHEMA = ErrorSchema

    def _register_error_handlers(self) -> None:
        """Nothing: the application renders errors."""


def init_app(app: Flask, blueprints: Iterable[ApiBlueprint]) -> None:
    """Register the blueprints, the document under ``/api/v4/openapi.json`` and the page under ``/api/docs``."""
    app.config.update(
        API_TITLE="Project Service",
        API_VERSION="v4",
        OPENAPI_VERSION="3.0.3",
        OPENAPI_URL_PREFIX=PREFIX,
        OPENAPI_JSON_PATH="openapi.json",
        API_SPEC_OPTIONS={
            "components": {"securitySchemes": SECURITY},
            "security": [{name: []} for name in SECURITY],
            "info": {"description": "GitLab REST API v4 for eight areas of a project-hosting platform."},
        },
    )
    document = Document(app)
    for blueprint in blueprints:
        document.register_blueprint(blueprint)
    app.register_blueprint(page)


SECURITY: dict[str, Any] = {
    "private_token": {"type": "apiKey", "in": "header", "name": "PRIVATE-TOKEN"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


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
    """API v3 is gone (common behaviour, section 1)."""
    return json_response({"error": "API V3 is no longer supported. Use API V4 instead."}, 410)
