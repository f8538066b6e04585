"""Refusals of OAuth requests, as clients read them (accounts reference, section 7)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from project_service.domain.rate_limits import seconds_of
from project_service.kit.http.errors import ServiceError

REALM = "Doorkeeper"  # the name that clients know
GRANT_REFUSED = (
    "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI used in the "
    "authorization request, or was issued to another client."
)
NO_CLIENTS = (
    "Client authentication failed due to unknown client, no client authentication included, or unsupported "
    "authentication method."
)
UNKNOWN_GRANT = "The authorization grant type is not supported by the authorization server."
UNKNOWN_SCOPE = "The requested scope is invalid, unknown, or malformed."
SWITCHED_OFF = "Switch on {} in the application settings, or use an access token."


class OAuthRefused(ServiceError):
    """A request is refused with an error code of RFC 6749, section 5.2."""

    def __init__(self, code: str, description: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        challenge = f'Bearer realm="{REALM}", error="{code}", error_description="{description}"'
        super().__init__(description, {"WWW-Authenticate": challenge, **(headers or {})})
        self.code, self.status = code, status

    def body(self) -> dict[str, Any]:
        """Return the code and its description."""
        return {"error": self.code, "error_description": self.message}


def invalid_grant() -> OAuthRefused:
    """Return the one refusal of all credentials that do not count: nothing tells them apart."""
    return OAuthRefused("invalid_grant", GRANT_REFUSED)


def invalid_token(reason: str = "is invalid") -> OAuthRefused:
    """Return the refusal of an access token."""
    return OAuthRefused("invalid_token", f"The access token {reason}", 401)


def too_many_failures(wait: dt.timedelta) -> OAuthRefused:
    """Return the refusal of a sign-in after too many failures."""
    seconds = seconds_of(wait)
    text = f"Too many failed attempts. Try again in {seconds} seconds."
    return OAuthRefused("too_many_requests", text, 429, {"Retry-After": str(seconds)})
