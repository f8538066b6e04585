"""Custom templates of payloads: ``{{a.b}}`` is replaced by a value of the payload (webhooks reference, section 9)."""

from __future__ import annotations

import re
from typing import Any

from project_service.kit import exact_json

PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")


class TemplateFailed(Exception):
    """The result of a template is no JSON."""


def render(template: str, payload: dict[str, Any]) -> str:
    """Return the body of a request.

    Raises:
        TemplateFailed: the result is no JSON.

    """
    body = PLACEHOLDER.sub(lambda match: _value(payload, match[1].strip()), template)
    try:
        exact_json.loads(body)
    except ValueError as error:
        raise TemplateFailed(f"Error while parsing rendered custom webhook template: {error}") from error
    return body


def _value(payload: Any, path: str) -> str:
    for key in path.split("."):
        payload = payload.get(key) if isinstance(payload, dict) else None
    text = exact_json.dumps(payload).decode()
    return text[1:-1] if isinstance(payload, str) else text
