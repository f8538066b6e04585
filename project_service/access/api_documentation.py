"""Descriptions of the views of the API for the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from project_service.kit.http import pagination
from project_service.kit.http.fields import Upload
from project_service.kit.http.schemas import Schema

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
METHODS_WITH_BODY = ("POST", "PUT", "PATCH")
SECURITY_SCHEMES: dict[str, Any] = {
    "private_token": {"type": "apiKey", "in": "header", "name": "PRIVATE-TOKEN"},
    "bearer": {"type": "http", "scheme": "bearer"},
}
PATH_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
PATH_PARAMETERS = {
    "project": "The id or the URL-encoded full path of the project.",
    "group": "The id or the URL-encoded full path of the group.",
    "namespace": "The id or the URL-encoded full path of the namespace.",
    "user": "The id of the user.",
    "token": "The id of the token.",
}
PAGE_HEADERS = {name: {"description": text, "schema": {"type": "string"}} for name, text in pagination.HEADERS.items()}
REFUSALS = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)


def path_parameters(rule: str) -> list[dict[str, Any]]:
    """Describe the parameters of the path of a URL rule."""
    return [
        {"in": "path", "name": name, "description": PATH_PARAMETERS.get(name, f"The {name}, URL-encoded.")}
        for name in PATH_PARAMETER.findall(rule)
    ]


def operation(name: str, view: Callable[..., Any], method: str) -> dict[str, Any]:
    """Describe a view: its name, parameters or body, refusals and security; ``response`` describes its success."""
    described: dict[str, Any] = {
        "operationId": name,
        "responses": {status.value: status.name for status in REFUSALS},
    }
    if not getattr(view, "needs_user", False):
        described["security"] = [{}, *({scheme: []} for scheme in SECURITY_SCHEMES)]
    schemas: tuple[Schema, ...] = getattr(view, "parameter_schemas", ())
    if schemas and method in METHODS_WITH_BODY:
        described["requestBody"] = _request_body(schemas[0])
    elif schemas:
        described["parameters"] = [{"in": "query", "schema": schema} for schema in schemas]
    return described


def _request_body(schema: Schema) -> dict[str, Any]:
    required = {name for name, field in schema.load_fields.items() if field.required}
    return {"content": _content(schema), "required": not required <= schema.alternatives.keys()}


def _content(schema: Schema) -> dict[str, Any]:
    """Describe the body for each content type; a schema with a required file has only the one with files."""
    fields = schema.load_fields
    if any(isinstance(field, Upload) and field.required for field in fields.values()):
        return {MULTIPART: {"schema": schema}}
    encoding = {name: style for name, field in fields.items() if (style := getattr(field, "in_forms", None))}
    form = {"schema": schema, "encoding": encoding} if encoding else {"schema": schema}
    return {JSON: {"schema": schema}, FORM: form, MULTIPART: {"schema": schema}}
