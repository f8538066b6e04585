"""What goes wrong, as a family of exceptions: each knows its status and its body, one renderer answers them all.

The shapes and texts are those of the reference for common behaviour, section 9.
"""

from __future__ import annotations

import errno
from typing import Any

FULL = (errno.ENOSPC, errno.EDQUOT)


class ServiceError(Exception):
    """Something the caller is told about."""

    status = 500

    def __init__(self, message: Any = "500 Internal Server Error", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        return {"message": self.message}


class BadParameters(ServiceError):
    """Parameters that cannot be read: 400 ``{"error": "key is missing, value is missing"}``."""

    status = 400

    def __init__(self, *texts: str) -> None:
        super().__init__(", ".join(texts))

    def body(self) -> dict[str, Any]:
        """The texts under ``error``, as for every refusal before the rules are asked."""
        return {"error": self.message}


class Invalid(ServiceError):
    """A record that breaks its rules: 400 ``{"message": {"value": ["is invalid"]}}``."""

    status = 400

    def __init__(self, **messages: str | list[str]) -> None:
        super().__init__({name: [text] if isinstance(text, str) else text for name, text in messages.items()})


class BadRequest(ServiceError):
    """400 with a text of its own."""

    status = 400


class Unauthorized(ServiceError):
    """Nobody is signed in, or with a token that nobody has."""

    status = 401

    def __init__(self) -> None:
        super().__init__("401 Unauthorized")


class InvalidToken(ServiceError):
    """A token that was good once: expired, revoked."""

    status = 401

    def __init__(self, description: str) -> None:
        challenge = f'Bearer realm="Protected by OAuth 2.0", error="invalid_token", error_description="{description}"'
        super().__init__(description, headers={"WWW-Authenticate": challenge})

    def body(self) -> dict[str, Any]:
        """The OAuth form."""
        return {"error": "invalid_token", "error_description": self.message}


class InsufficientScope(ServiceError):
    """A token that may not do this; ``scopes`` are those that may."""

    status = 403

    def __init__(self, scopes: str) -> None:
        super().__init__("The request requires higher privileges than provided by the access token.")
        self.scopes = scopes

    def body(self) -> dict[str, Any]:
        """The OAuth form, naming the scopes that would do."""
        return {"error": "insufficient_scope", "error_description": self.message, "scope": self.scopes}


class Forbidden(ServiceError):
    """Known, and not allowed."""

    status = 403

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"403 Forbidden - {reason}" if reason else "403 Forbidden")


class NotFound(ServiceError):
    """Missing or hidden: ``404 Project Not Found``; without a resource ``404 Not Found``."""

    status = 404

    def __init__(self, resource: str = "") -> None:
        super().__init__(f"404 {resource} Not Found" if resource else "404 Not Found")


class RecordNotFound(ServiceError):
    """A record looked up by its own id or name is missing: the lower-case ``404 Not found``."""

    status = 404

    def __init__(self) -> None:
        super().__init__("404 Not found")


class UnknownRoute(ServiceError):
    """No such address."""

    status = 404

    def __init__(self) -> None:
        super().__init__("404 Not Found")

    def body(self) -> dict[str, Any]:
        """Under ``error``: the router speaks, not a resource."""
        return {"error": self.message}


class MethodNotAllowed(ServiceError):
    """A known address that does not answer this method."""

    status = 405

    def __init__(self, text: str = "405 Not Allowed", allow: str = "") -> None:
        super().__init__(text, headers={"Allow": allow} if allow else None)

    def body(self) -> dict[str, Any]:
        """Under ``error``: the router speaks, not a resource."""
        return {"error": self.message}


class Conflict(ServiceError):
    """Somebody was faster, or it is ambiguous what is meant."""

    status = 409


class PreconditionFailed(ServiceError):
    """``If-Unmodified-Since`` is older than the record."""

    status = 412

    def __init__(self) -> None:
        super().__init__("412 Precondition Failed")


class TooLarge(ServiceError):
    """More bytes than allowed."""

    status = 413

    def __init__(self) -> None:
        super().__init__("413 Request Entity Too Large")


class UnsupportedContentType(ServiceError):
    """A body in a language the API does not read."""

    status = 415

    def __init__(self, content_type: str) -> None:
        super().__init__(f"The provided content-type '{content_type}' is not supported.")

    def body(self) -> dict[str, Any]:
        """Under ``error``."""
        return {"error": self.message}


class Unprocessable(ServiceError):
    """Understood, and refused by a rule: 422."""

    status = 422


class TooManyRequests(ServiceError):
    """A limit was reached; ``after`` seconds later it is free again."""

    status = 429

    def __init__(self, after: int = 60) -> None:
        text = "This endpoint has been requested too many times. Try again later."
        super().__init__({"error": text}, headers={"Retry-After": str(after)})


class Unavailable(ServiceError):
    """A part that the answer needs does not work at the moment."""

    status = 503

    def __init__(self) -> None:
        super().__init__("503 Service Unavailable")


class NoRoom(ServiceError):
    """The disk of this server is full."""

    status = 507

    def __init__(self) -> None:
        super().__init__("507 Insufficient Storage: there is no room left on the disk of this server")


class Malformed(ServiceError):
    """Bytes that are no text: answered in plain text before anything else happens."""

    status = 400

    def __init__(self) -> None:
        super().__init__("Bad Request")
