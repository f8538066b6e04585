"""``/oauth/token``, ``/oauth/revoke`` and ``/oauth/token/info``, outside of the API (accounts reference, section 7)."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request

from project_service.access.api import json_response
from project_service.access.identity import bearer_of, find_oauth_token
from project_service.areas.accounts.oauth import errors, service
from project_service.areas.accounts.oauth.errors import OAuthRefused
from project_service.areas.accounts.oauth.service import IssuedToken
from project_service.domain.accounts.tokens import OAUTH_TOKEN_SECONDS
from project_service.kit.db.session import reading
from project_service.kit.http import responses
from project_service.kit.http.parameters import header, parameters

NEVER_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
MAX_BODY_BYTES = 64 << 10
PREFLIGHT_SECONDS = "7200"

oauth = Blueprint("oauth", __name__, url_prefix="/oauth")


@oauth.before_request
def limit_body() -> None:
    """Refuse bodies that no client sends: everybody may call these addresses."""
    request.max_content_length = MAX_BODY_BYTES


@oauth.post("/token")
def create_token() -> Response:
    """Exchange a password or a refresh token for an access token."""
    fields = _texts(parameters())
    grant = fields.get("grant_type", "")
    if not grant:
        raise OAuthRefused("invalid_request", "Missing required parameter: grant_type.")
    if grant not in ("password", "refresh_token"):
        raise OAuthRefused("unsupported_grant_type", errors.UNKNOWN_GRANT)
    service.check_switched_on()
    if fields.get("client_id") or fields.get("client_secret") or header(request, "Authorization"):
        raise OAuthRefused("invalid_client", errors.NO_CLIENTS, 401)
    if grant == "refresh_token":
        return _shown(service.renew(fields.get("refresh_token", "")))
    scopes = service.checked_scopes(fields.get("scope", ""))
    return _shown(service.issue_for_password(fields.get("username", ""), fields.get("password", ""), scopes))


@oauth.post("/revoke")
def revoke_token() -> Response:
    """End a pair of tokens; the answer is the same for unknown ones."""
    service.revoke(_texts(parameters()).get("token", ""))
    return json_response({})


@oauth.get("/token/info")
def show_token() -> Response:
    """Show what the access token of the request may do, and how long."""
    with reading():
        text = bearer_of(request, parameters())
        token = find_oauth_token(text) if text else None
        if token is None:
            raise errors.invalid_token()
        if token.revoked_at is not None:
            raise errors.invalid_token("was revoked")
        if not token.active:
            raise errors.invalid_token("expired")
        token_info = {
            "resource_owner_id": token.user_id,
            "scope": token.scopes,
            "expires_in": token.expires_in,
            "application": {"uid": None},
            "created_at": int(token.created_at.timestamp()),
            "scopes": token.scopes,
            "expires_in_seconds": token.expires_in,
        }
    return json_response(token_info, headers=NEVER_STORED)


@oauth.route("/token", methods=["OPTIONS"])
@oauth.route("/revoke", methods=["OPTIONS"])
def answer_preflight() -> Response:
    """Let pages of other origins call these addresses, without credentials of the browser."""
    response = Response(status=200)
    response.headers["Access-Control-Allow-Methods"] = "POST, OPTIONS"
    response.headers["Access-Control-Allow-Headers"] = request.headers.get("Access-Control-Request-Headers", "*")
    response.headers["Access-Control-Max-Age"] = PREFLIGHT_SECONDS
    return response


@oauth.errorhandler(Exception)
def render_error(error: Exception) -> Response:
    """Render every error as JSON."""
    return responses.render(responses.as_service_error(error))


@oauth.after_request
def allow_origins(response: Response) -> Response:
    """Allow every origin to read the answers, but for those about a token."""
    if request.endpoint != "oauth.show_token":
        response.headers["Access-Control-Allow-Origin"] = "*"
    return response


def _texts(fields: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def _shown(issued: IssuedToken) -> Response:
    answer = {
        "access_token": issued.access_token,
        "token_type": "Bearer",
        "expires_in": OAUTH_TOKEN_SECONDS,
        "refresh_token": issued.refresh_token,
        "scope": " ".join(issued.row.scopes),
        "created_at": int(issued.row.created_at.timestamp()),
    }
    return json_response(answer, headers=NEVER_STORED)
