"""Exceptions for error responses; each knows its status and body, and ``responses.render`` renders all of them.

Bodies and texts are those of the common reference, section 9.
"""

from __future__ import annotations

import errno
from typing import Any

DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


class ServiceError(Exception):
    """An error that is reported to the client; ``page_text`` is the title and advice of its page if it has its own."""

    status = 500
    page_text: tuple[str, str] | None = None

    def __init__(self, message: Any = "500 Internal Server Error", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """Return the JSON body of the response."""
        return {"message": self.message}


class BadParameters(ServiceError):
    """Parameters that are not valid: 400 ``{"error": "key is missing, value is missing"}``."""

    status = 400

    def __init__(self, *texts: str) -> None:
        super().__init__(", ".join(texts))

    def body(self) -> dict[str, Any]:
        """Return the text under ``error``, as for all errors of validation."""
        return {"error": self.message}


class Invalid(ServiceError):
    """Fields that break a rule of their record: 400 ``{"message": {"value": ["is invalid"]}}``."""

    status = 400

    def __init__(self, **messages: str | list[str]) -> None:
        super().__init__({name: [text] if isinstance(text, str) else text for name, text in messages.items()})


class BadRequest(ServiceError):
    """400 with any text."""

    status = 400


class Unauthorized(ServiceError):
    """The request has no token, or an unknown one."""

    status = 401

    def __init__(self) -> None:
        super().__init__("401 Unauthorized")


class InvalidToken(ServiceError):
    """The token has expired or was revoked."""

    status = 401

    def __init__(self, description: str) -> None:
        challenge = f'Bearer realm="Protected by OAuth 2.0", error="invalid_token", error_description="{description}"'
        super().__init__(description, headers={"WWW-Authenticate": challenge})

    def body(self) -> dict[str, Any]:
        """Return the body of OAuth errors."""
        return {"error": "invalid_token", "error_description": self.message}


class InsufficientScope(ServiceError):
    """The scopes of the token do not allow the request; ``scopes`` names those that do."""

    status = 403

    def __init__(self, scopes: str) -> None:
        super().__init__("The request requires higher privileges than provided by the access token.")
        self.scopes = scopes

    def body(self) -> dict[str, Any]:
        """Return the body of OAuth errors with the required scopes."""
        return {"error": "insufficient_scope", "error_description": self.message, "scope": self.scopes}


class Forbidden(ServiceError):
    """The user lacks the permission."""

    status = 403

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"403 Forbidden - {reason}" if reason else "403 Forbidden")


class NotFound(ServiceError):
    """The resource is missing or hidden: ``404 Project Not Found``; without a resource ``404 Not Found``."""

    status = 404

    def __init__(self, resource: str = "") -> None:
        super().__init__(f"404 {resource} Not Found" if resource else "404 Not Found")


class RecordNotFound(ServiceError):
    """A record looked up by its own id or name is missing: the lower-case ``404 Not found``."""

    status = 404

    def __init__(self) -> None:
        super().__init__("404 Not found")


class UnknownRoute(ServiceError):
    """No route matches the URL."""

    status = 404

    def __init__(self) -> None:
        super().__init__("404 Not Found")

    def body(self) -> dict[str, Any]:
        """Return the text under ``error``, as for all errors of routing."""
        return {"error": self.message}


class MethodNotAllowed(ServiceError):
    """The route does not support the method."""

    status = 405

    def __init__(self, text: str = "405 Not Allowed", allow: str = "") -> None:
        super().__init__(text, headers={"Allow": allow} if allow else None)

    def body(self) -> dict[str, Any]:
        """Return the text under ``error``, as for all errors of routing."""
        return {"error": self.message}


class RequestTimeout(ServiceError):
    """What is asked for takes longer than one request may: 408 with the text under ``error``."""

    status = 408
    page_text = ("That takes too long", "Search for something more specific, or in a smaller place.")

    def __init__(self) -> None:
        super().__init__({"error": "Request timed out"})


class Conflict(ServiceError):
    """The request conflicts with existing data, or is ambiguous."""

    status = 409


class PreconditionFailed(ServiceError):
    """The record changed after ``If-Unmodified-Since``."""

    status = 412

    def __init__(self) -> None:
        super().__init__("412 Precondition Failed")


class BodyTooLarge(ServiceError):
    """The body is larger than allowed."""

    status = 413

    def __init__(self) -> None:
        super().__init__("413 Request Entity Too Large")


class UnsupportedContentType(ServiceError):
    """The content type of the body is not supported."""

    status = 415

    def __init__(self, content_type: str) -> None:
        super().__init__(f"The provided content-type '{content_type}' is not supported.")

    def body(self) -> dict[str, Any]:
        """Return the text under ``error``."""
        return {"error": self.message}


class Unprocessable(ServiceError):
    """The request is valid but breaks a rule: 422."""

    status = 422


class TooManyRequests(ServiceError):
    """A rate limit is reached; retry after ``after`` seconds."""

    status = 429

    def __init__(self, after: int = 60) -> None:
        text = "This endpoint has been requested too many times. Try again later."
        super().__init__({"error": text}, headers={"Retry-After": str(after)})


class Unavailable(ServiceError):
    """The database or Redis does not respond."""

    status = 503

    def __init__(self) -> None:
        super().__init__("503 Service Unavailable")


class SearchTooSlow(ServiceError):
    """A search reached the deadline of its statements."""

    status = 503
    page_text = ("That takes too long", "Search for something more specific, or in a smaller place.")

    def __init__(self) -> None:
        super().__init__(
            "503 Service Unavailable: the search takes too long, search for something more specific",
            headers={"Retry-After": "10"},
        )


class InsufficientStorage(ServiceError):
    """The disk of this server is full."""

    status = 507

    def __init__(self) -> None:
        super().__init__("507 Insufficient Storage: there is no room left on the disk of this server")


class Malformed(ServiceError):
    """The request is not valid text; the response is plain text."""

    status = 400

    def __init__(self) -> None:
        super().__init__("Bad Request")
