"""Bots of projects and groups: the users that their access tokens act as.

A bot is a member of its project or group, cannot sign in, counts no seat, and is removed with its last active token.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, ForeignKey, Select, delete, exists, or_, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain import removal
from project_service.domain.access_levels import Role
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import User
from project_service.domain.audit import recording
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit import clock, jobs
from project_service.kit.db.base import Model
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadRequest

MAX_NAME_LENGTH = 255
MAX_TOKEN_LIFETIME = dt.timedelta(days=365)
ProjectOrGroup = Project | Group


class ResourceBot(Model):
    """Which project or group a bot belongs to; neither when that has been deleted."""

    __tablename__ = "resource_bots"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    user: Mapped[User] = relationship()
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="SET NULL"), index=True)
    namespace_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="SET NULL"), index=True)


def column_of(subject: ProjectOrGroup) -> ColumnElement[bool]:
    """Return the condition for the bots of a project or group."""
    return (ResourceBot.project_id if isinstance(subject, Project) else ResourceBot.namespace_id) == subject.id


def is_bot(user_id: int | None) -> bool:
    """Whether a user is the bot of a project or group."""
    return db.session.scalar(select(ResourceBot.id).where(ResourceBot.user_id == user_id)) is not None


def bots() -> Select[int]:
    """The ids of the users that are bots of projects and groups."""
    return select(ResourceBot.user_id)


def bots_among(user_ids: Iterable[int]) -> set[int]:
    """Return those of some ids that are ids of bots of projects and groups."""
    return set(db.session.scalars(bots().where(ResourceBot.user_id.in_(user_ids))))


def create_bot(subject: ProjectOrGroup, name: str, role: Role, created_by_id: int | None) -> User:
    """Create a bot that is a member of a project or group; its name begins with that of the project or group."""
    kind = "project" if isinstance(subject, Project) else "group"
    username, now = f"{kind}_{subject.id}_bot_{secrets.token_hex(16)}", clock.now()
    user = User(
        username=username,
        name=f"{subject.name} bot: {name}"[:MAX_NAME_LENGTH],
        email=f"{username}@bots.invalid",
        external=True,  # sees its own project or group, and what is public
        projects_limit=0,
        can_create_group=False,
        confirmed_at=now,
    )
    db.session.add(user)
    db.session.flush()
    project_id = subject.id if isinstance(subject, Project) else None
    namespace_id = subject.id if isinstance(subject, Group) else None
    db.session.add(ResourceBot(user_id=user.id, project_id=project_id, namespace_id=namespace_id))
    db.session.add(
        Membership(
            user_id=user.id,
            project_id=project_id,
            namespace_id=namespace_id,
            access_level=role,
            created_by_id=created_by_id,
        )
    )
    db.session.flush()
    return user


def checked_expiry(day: dt.date | None) -> dt.date:
    """Return the day on which a token of a bot expires: the last possible one when none is given.

    Raises:
        BadRequest: the day is not in the future, or later than ``MAX_TOKEN_LIFETIME`` from now.

    """
    latest = clock.today() + MAX_TOKEN_LIFETIME
    if day is not None and day <= clock.today():
        raise BadRequest("400 Bad request - Expiration date must be in the future")
    if day is not None and day > latest:
        raise BadRequest(f"400 Bad request - Expiration date must not be after {latest.isoformat()}")
    return day or latest


def remove_bot(user: User) -> None:
    """Take a bot out of its project or group at once, and hide it; a job hands its contributions to the ghost."""
    if user.deleting_since is None:
        user.deleting_since = clock.now()
        db.session.execute(delete(Membership).where(Membership.user_id == user.id))
        removal.remove_user.defer(user.id)


def remove_idle_bots(*conditions: ColumnElement[bool]) -> None:
    """Remove the bots that meet the conditions and have no active token, or whose project or group is gone."""
    for user in db.session.scalars(_idle(User).where(*conditions)):
        remove_bot(user)


def _idle(columns: Any) -> Select[Any]:
    active = exists().where(
        PersonalAccessToken.user_id == ResourceBot.user_id,
        PersonalAccessToken.revoked.is_(False),
        or_(PersonalAccessToken.expires_at.is_(None), PersonalAccessToken.expires_at > clock.today()),
    )
    is_homeless = ResourceBot.project_id.is_(None) & ResourceBot.namespace_id.is_(None)
    statement = select(columns).select_from(User).join(ResourceBot, ResourceBot.user_id == User.id)
    return statement.where(User.deleting_since.is_(None), or_(~active, is_homeless))


def revoke_family(token_id: int) -> None:
    """Revoke all tokens that were made by rotating one another, because an old one was used to rotate it again."""
    token = db.session.get_one(PersonalAccessToken, token_id)
    family_id = token.family_id or token.id
    is_relative = or_(PersonalAccessToken.id == family_id, PersonalAccessToken.family_id == family_id)
    relatives = select(PersonalAccessToken).where(is_relative, PersonalAccessToken.revoked.is_(False))
    owner = db.session.get_one(User, token.user_id)
    for relative in db.session.scalars(relatives):
        relative.revoked = True
        text = f"Revoked personal access token with id {relative.id}: the older token {token.id} was used to rotate it"
        target = AuditTarget("PersonalAccessToken", relative.id, relative.name)
        recording.record("personal_access_token_revoked", owner, text, target=target)
    db.session.flush()
    remove_idle_bots(ResourceBot.user_id == token.user_id)


@jobs.periodic(every=dt.timedelta(hours=1))
@jobs.job("domain.resource_bots.prune")
def prune() -> None:
    """Remove the bots whose tokens have expired, or whose project or group was deleted."""
    with jobs.step():
        user_ids = list(db.session.scalars(_idle(User.id)))
    jobs.for_each(user_ids, _prune_bot)


def _prune_bot(user_id: int) -> None:
    with jobs.step():
        remove_idle_bots(ResourceBot.user_id == user_id)
