"""Create, rotate and revoke access tokens."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from project_service.access import audit
from project_service.domain import instance_settings
from project_service.domain.accounts.resource_bots import ResourceBot, checked_expiry, is_bot, remove_idle_bots
from project_service.domain.accounts.tokens import RESOURCE_SCOPES, SCOPES, PersonalAccessToken, digest_of
from project_service.domain.accounts.users import User
from project_service.domain.audit.recording import AuditTarget
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadRequest, Unprocessable
from project_service.kit.security import tokens

ROTATED_TOKEN_LIFETIME = dt.timedelta(days=7)


def create_token(
    user: User,
    *,
    name: str | None,
    scopes: Iterable[str] | None,
    description: str | None = None,
    expires_at: dt.date | None = None,
    secret: str | None = None,
    family_id: int | None = None,
) -> PersonalAccessToken:
    """Create a token; its secret is only in the attribute ``token`` of the returned object.

    Bots have fewer scopes than people, and their tokens expire, on every route that creates or rotates one.
    """
    is_of_bot = is_bot(user.id)
    distinct_scopes = list(dict.fromkeys(scopes or ()))
    problems = []
    if not name or not name.strip():
        problems.append("Name can't be blank")
    if not distinct_scopes:
        problems.append("Scopes can't be blank")
    elif not set(distinct_scopes) <= set(RESOURCE_SCOPES if is_of_bot else SCOPES):
        problems.append("Scopes can only contain available scopes")
    if problems:
        raise Unprocessable(" and ".join(problems))
    secret = secret or tokens.new_token(instance_settings.setting("personal_access_token_prefix") or "")
    token = PersonalAccessToken(
        user_id=user.id,
        name=name or "",
        description=description,
        scopes=distinct_scopes,
        expires_at=checked_expiry(expires_at) if is_of_bot else expires_at,
        digest=digest_of(secret),
        family_id=family_id,
    )
    db.session.add(token)
    db.session.flush()
    audit.record(
        "personal_access_token_issued",
        user,
        f"Created personal access token with id {token.id}",
        target=_token_target(token),
        scopes=", ".join(distinct_scopes),
    )
    token.token = secret
    return token


def rotate_token(token: PersonalAccessToken, *, expires_at: dt.date | None = None) -> PersonalAccessToken:
    """Revoke a token and create a new one with the same name and scopes."""
    lock_row(token, "revoked")  # of two concurrent rotations only one succeeds
    if token.revoked:
        raise BadRequest("400 Bad request - Token already revoked")
    if expires_at is not None and expires_at <= clock.today():
        raise BadRequest("400 Bad request - Expiration date must be in the future")
    _mark_revoked(token)
    owner = db.session.get_one(User, token.user_id)
    return create_token(
        owner,
        family_id=token.family_id or token.id,
        name=token.name,
        description=token.description,
        scopes=token.scopes,
        expires_at=expires_at or clock.today() + ROTATED_TOKEN_LIFETIME,
    )


def revoke_token(token: PersonalAccessToken) -> None:
    """Revoke a token; the bot of a project or group goes with its last one."""
    _mark_revoked(token)
    db.session.flush()
    remove_idle_bots(ResourceBot.user_id == token.user_id)


def _mark_revoked(token: PersonalAccessToken) -> None:
    if not token.revoked:
        text = f"Revoked personal access token with id {token.id}"
        owner = db.session.get_one(User, token.user_id)
        audit.record("personal_access_token_revoked", owner, text, target=_token_target(token))
    token.revoked = True


def _token_target(token: PersonalAccessToken) -> AuditTarget:
    return AuditTarget("PersonalAccessToken", token.id, token.name)
