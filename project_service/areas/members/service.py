"""Add, change and remove members of projects and groups; changes of project members record events."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import select

from project_service.access import audit
from project_service.access.abilities import Ability
from project_service.access.identity import Caller
from project_service.access.roles import forget_roles, role_of
from project_service.areas.members import queries
from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.domain.accounts.resource_bots import is_bot
from project_service.domain.accounts.users import User
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.events.models import Action
from project_service.domain.events.recording import record
from project_service.domain.hooks import member_payloads
from project_service.domain.memberships import Membership, direct_membership, owners_of
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Conflict, Forbidden, Invalid

ProjectOrGroup = Project | Group
MEMBER_EXISTS = "Member already exists"


def administering(subject: ProjectOrGroup) -> Ability:
    """Return the ability that changing members of others takes."""
    return Ability.ADMIN_PROJECT_MEMBERS if isinstance(subject, Project) else Ability.ADMIN_GROUP


def add_member(
    requester: Caller, subject: ProjectOrGroup, user: User, *, access_level: int, expires_at: dt.date | None = None
) -> Membership:
    """Add a member, with at most the role of the requester."""
    former = direct_membership(user.id, subject)
    if former is not None and not former.expired:
        raise Conflict(MEMBER_EXISTS)
    _check(subject, user, access_level, expires_at)
    _refuse_above(requester, subject, access_level)
    if former is not None:
        expire_member(subject, former)
    membership = Membership(
        user_id=user.id,
        user=user,
        project_id=subject.id if isinstance(subject, Project) else None,
        namespace_id=subject.id if isinstance(subject, Group) else None,
        access_level=access_level,
        expires_at=expires_at,
        created_by_id=requester.user_id,
    )
    add_unique(membership, Conflict(MEMBER_EXISTS))
    if isinstance(subject, Project):
        record(user, Action.JOINED, subject)
    member_payloads.announce_member(subject, membership, member_payloads.ADDED)
    details: dict[str, Any] = {"add": "user_access", "as": Role(access_level).title, "expiry_to": _day(expires_at)}
    audit.record("member_created", subject, "Membership created", target=_target(user), **details)
    forget_roles()
    return membership


def update_member(
    requester: Caller,
    subject: ProjectOrGroup,
    membership: Membership,
    *,
    access_level: int,
    expires_at: dt.date | None,
    keeps_expiry: bool,
) -> Membership:
    """Change the role or the expiry date of a member."""
    _refuse_bot(membership)
    _refuse_above(requester, subject, membership.access_level)
    _refuse_last_owner(subject, membership)
    with db.session.no_autoflush:
        _check(subject, membership.user, access_level, None if keeps_expiry else expires_at)
    _refuse_above(requester, subject, access_level)
    former_role, former_expiry = Role(membership.access_level).title, membership.expires_at
    membership.access_level = access_level
    if not keeps_expiry:
        membership.expires_at = expires_at
    if (former_role, former_expiry) != (Role(access_level).title, membership.expires_at):
        db.session.flush()
        member_payloads.announce_member(subject, membership, member_payloads.UPDATED)
    details: dict[str, Any] = {
        "change": "access_level",
        "from": former_role,
        "to": Role(access_level).title,
        "expiry_from": _day(former_expiry),
        "expiry_to": _day(membership.expires_at),
    }
    audit.record("member_updated", subject, "Membership updated", target=_target(membership.user), **details)
    forget_roles()
    return membership


def remove_member(requester: Caller, subject: ProjectOrGroup, membership: Membership) -> None:
    """Remove a member. Users may leave; other members need at least the role of the removed one."""
    _refuse_bot(membership)
    if membership.user_id != requester.user_id:
        _refuse_above(requester, subject, membership.access_level)
    _refuse_last_owner(subject, membership)
    member_payloads.announce_member(subject, membership, member_payloads.REMOVED)
    delete_locked(membership)
    if isinstance(subject, Project):
        record(membership.user, Action.LEFT, subject)
    _record_removal(subject, membership, "Membership destroyed")
    forget_roles()


def _refuse_bot(membership: Membership) -> None:
    """Raise ``Forbidden`` for the bot of an access token, which goes with its last token."""
    if is_bot(membership.user_id):
        raise Forbidden


def expire_member(subject: ProjectOrGroup, membership: Membership) -> None:
    """Delete an expired membership, which has granted nothing since it expired."""
    delete_locked(membership)
    db.session.flush()
    if isinstance(subject, Project) and subject.deleting_since is None:
        record(membership.user, Action.EXPIRED, subject)
    _record_removal(subject, membership, f"Membership expired on {_day(membership.expires_at)}")


def expired_ids() -> list[int]:
    """Return the ids of the expired memberships."""
    expired = select(Membership.id).where(Membership.expires_at <= clock.today()).order_by(Membership.id)
    return list(db.session.scalars(expired))


def expire(membership_id: int) -> None:
    """Delete a membership if it is still expired."""
    membership = db.session.get(Membership, membership_id)
    if membership is not None and membership.expired:
        expire_member(_place_of(membership), membership)


def _record_removal(subject: ProjectOrGroup, membership: Membership, message: str) -> None:
    details: dict[str, Any] = {"remove": "user_access", "from": Role(membership.access_level).title}
    audit.record("member_destroyed", subject, message, target=_target(membership.user), **details)


def _target(user: User) -> AuditTarget:
    return AuditTarget("User", user.id, user.name)


def _day(day: dt.date | None) -> str | None:
    return day.isoformat() if day else None


def _place_of(membership: Membership) -> ProjectOrGroup:
    if membership.project_id is not None:
        return db.session.get_one(Project, membership.project_id)
    return db.session.get_one(Group, membership.namespace_id)


def _refuse_last_owner(subject: ProjectOrGroup, membership: Membership) -> None:
    """Raise ``Forbidden`` for the last owner of a top-level group."""
    if not isinstance(subject, Group) or subject.parent_id is not None or membership.access_level < Role.OWNER:
        return
    # locked, so that two owners who leave concurrently do not each count the other
    db.session.execute(select(Group.id).where(Group.id == subject.id).with_for_update(key_share=True))
    others = owners_of(subject.id).where(Membership.user_id != membership.user_id)
    if db.session.scalar(others.limit(1)) is None:
        raise Forbidden


def _refuse_above(requester: Caller, subject: ProjectOrGroup, level: int) -> None:
    if level > role_of(requester, subject):
        raise Forbidden


def _check(subject: ProjectOrGroup, user: User, access_level: int, expires_at: dt.date | None) -> None:
    problems: dict[str, list[str]] = {}
    if is_bot(user.id):
        problems["user"] = ["project bots cannot be added to other groups / projects"]
    allowed = [role for role in MEMBER_ROLES if isinstance(subject, Group) or role < Role.OWNER]
    if access_level not in allowed:
        problems["access_level"] = ["is not included in the list"]
    else:
        inherited, group = queries.inherited_role(user.id, subject)
        if group is not None and access_level < inherited:
            problems["access_level"] = [
                f"should be greater than or equal to {inherited.title} inherited membership from group {group.name}"
            ]
    if expires_at is not None and expires_at < clock.today():
        problems["expires_at"] = ["cannot be a date in the past"]
    if problems:
        raise Invalid(**problems)
