"""Access tokens of projects and groups: each acts as a bot that is a member of its project or group."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from sqlalchemy import ColumnElement, select

from project_service.access import audit
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.roles import forget_roles, role_of
from project_service.areas.accounts.tokens import queries, service
from project_service.domain.access_levels import Role
from project_service.domain.accounts.resource_bots import (
    ProjectOrGroup,
    ResourceBot,
    bots,
    checked_expiry,
    create_bot,
    is_bot,
)
from project_service.domain.accounts.tokens import RESOURCE_SCOPES, PersonalAccessToken
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.memberships import user_ids_with
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadRequest, Forbidden, Unprocessable

MAX_NAME_LENGTH = 255
MAIL_BEFORE = dt.timedelta(days=7)
BAD_REQUEST = "400 Bad request - "


def create_token(
    requester: Caller,
    subject: ProjectOrGroup,
    *,
    name: str | None,
    scopes: Collection[str] | None,
    access_level: int | None = None,
    expires_at: dt.date | None = None,
    description: str | None = None,
) -> PersonalAccessToken:
    """Create a token with a bot of its own; the secret is only in the attribute ``token`` of the returned object.

    ``requester`` is a person with at least the role that the bot gets; a token expires after a year by default.

    Raises:
        Forbidden: the requester is a bot.
        BadRequest: a field breaks a rule.

    """
    if is_bot(requester.user_id):
        raise Forbidden
    level = Role(access_level or Role.MAINTAINER)
    _refuse_role_above(requester, subject, level)
    if not set(scopes or ()) <= set(RESOURCE_SCOPES):
        raise BadRequest(f"{BAD_REQUEST}Scopes can only contain available scopes")
    if len(name or "") > MAX_NAME_LENGTH:
        raise BadRequest(f"{BAD_REQUEST}Name is too long (maximum is {MAX_NAME_LENGTH} characters)")
    checked_expiry(expires_at)
    bot = create_bot(subject, name or "", level, requester.user_id)
    try:
        token = service.create_token(bot, name=name, scopes=scopes, description=description, expires_at=expires_at)
    except Unprocessable as error:
        raise BadRequest(f"{BAD_REQUEST}{error.message}") from error
    token.access_level = level
    forget_roles()
    _record("created", subject, token, f" with the role {level.title}")
    return token


def rotate_token(
    requester: Caller, subject: ProjectOrGroup, token: PersonalAccessToken, *, expires_at: dt.date | None = None
) -> PersonalAccessToken:
    """Replace a token by a new one of the same bot; the secret of a role above one's own is not given out."""
    level = token.access_level
    if requester.token_id != token.id:
        _refuse_role_above(requester, subject, Role(level or 0))
    rotated = service.rotate_token(token, expires_at=expires_at)
    rotated.access_level = level
    _record("rotated", subject, rotated)
    return rotated


def revoke_token(subject: ProjectOrGroup, token: PersonalAccessToken) -> None:
    """Revoke a token; its bot goes with its last one."""
    if not token.revoked:
        _record("revoked", subject, token)
    service.revoke_token(token)


def revoke_leaked(secret: str, requester: Caller) -> PersonalAccessToken | None:
    """Revoke the active token with this text; ``None`` if there is none, or none that the requester may revoke.

    Administrators may revoke every token, users their own and those of projects and groups whose tokens they manage.
    """
    token = queries.token_by_secret(secret.strip())
    if token is None or not token.active:
        return None
    bot = db.session.scalar(select(ResourceBot).where(ResourceBot.user_id == token.user_id))
    subject = None if bot is None else _subject_of(bot)
    if not _may_revoke(requester, token, subject):
        return None
    if subject is None:
        service.revoke_token(token)
    else:
        revoke_token(subject, token)
    return token


def expiring(*conditions: ColumnElement[bool]) -> list[tuple[PersonalAccessToken, ProjectOrGroup]]:
    """Return the active tokens that expire within ``MAIL_BEFORE``, whose managers were not mailed yet."""
    token = PersonalAccessToken
    soon = token.expires_at.between(clock.today() + dt.timedelta(days=1), clock.today() + MAIL_BEFORE)
    rows = db.session.execute(
        select(token, ResourceBot)
        .join(ResourceBot, ResourceBot.user_id == token.user_id)
        .where(soon, token.revoked.is_(False), token.expiry_mailed_on.is_(None), *conditions)
        .order_by(token.id)
    )
    subjects = [(row, _subject_of(bot)) for row, bot in rows]
    return [(row, subject) for row, subject in subjects if subject is not None and subject.deleting_since is None]


def addresses(subject: ProjectOrGroup) -> list[str]:
    """Return the e-mail addresses of those who may manage the tokens of a project or group."""
    least = Role.MAINTAINER if isinstance(subject, Project) else Role.OWNER
    people = select(User.email).where(
        User.id.in_(user_ids_with(least, subject)),
        User.state == ACTIVE,
        User.deleting_since.is_(None),
        User.id.not_in(bots()),
    )
    return list(db.session.scalars(people))


def _may_revoke(requester: Caller, token: PersonalAccessToken, subject: ProjectOrGroup | None) -> bool:
    if requester.admin or token.user_id == requester.user_id:
        return True
    if subject is None:
        return False
    ability = Ability.ADMIN_PROJECT_TOKENS if isinstance(subject, Project) else Ability.ADMIN_GROUP_TOKENS
    return allowed(requester, ability, subject)


def _record(action: str, subject: ProjectOrGroup, token: PersonalAccessToken, detail: str = "") -> None:
    """Record what was done with a token as an event of its project or group."""
    kind = "project" if isinstance(subject, Project) else "group"
    target = AuditTarget("PersonalAccessToken", token.id, token.name)
    text = f"{action.capitalize()} {kind} access token {token.name}{detail}"
    audit.record(f"{kind}_access_token_{action}", subject, text, target=target)


def _subject_of(bot: ResourceBot) -> ProjectOrGroup | None:
    if bot.project_id is not None:
        return db.session.get(Project, bot.project_id)
    return None if bot.namespace_id is None else db.session.get(Group, bot.namespace_id)


def _refuse_role_above(requester: Caller, subject: ProjectOrGroup, level: Role) -> None:
    if level > role_of(requester, subject):
        raise BadRequest(f"{BAD_REQUEST}Could not provision {level.title.lower()} access to project access token")
