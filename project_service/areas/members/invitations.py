"""Invitations by e-mail of people without an account: a signed link that works once, for two weeks."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection
from typing import Any, TypedDict, Unpack

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import joinedload, selectinload

from project_service.access import audit
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.roles import role_of
from project_service.access.sign_in import new_accounts
from project_service.areas.members import service
from project_service.areas.members.models import INVITATION_LIFETIME, Invitation
from project_service.areas.members.service import ProjectOrGroup
from project_service.domain import instance_settings
from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.domain.accounts.users import ACTIVE, User, find_user, users
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.rate_limits import HOUR_SECONDS, RateLimit
from project_service.kit import clock, mail
from project_service.kit.db import searching
from project_service.kit.db.session import add_unique, db, one
from project_service.kit.http import urls
from project_service.kit.http.errors import BadRequest, Conflict, Forbidden, Invalid, RecordNotFound, TooManyRequests
from project_service.kit.security import signed_links

PURPOSE = "invitation"
MAX_AT_ONCE = 100  # addresses and users
SENT = RateLimit("invitations:sent", 50, HOUR_SECONDS)  # by one user
TOO_MANY = f"Not invited: at most {SENT.calls} invitations are sent in an hour, try again later"
MAX_EMAIL_LENGTH = 255
EMAIL = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+")
GONE = "This invitation is not valid any more: it was accepted, revoked, or is older than two weeks."


class OfferedMembership(TypedDict):
    """What those who are invited get."""

    access_level: int
    expires_at: dt.date | None


def may_create_accounts() -> bool:
    """Whether people who were invited may create an account."""
    return bool(instance_settings.setting("signup_enabled"))


def user_with_public_email(email: str) -> User | None:
    """Return the user who shows this address to everyone."""
    return db.session.scalar(users().where(func.lower(User.public_email) == email.strip().lower()).limit(1))


def invite(
    requester: Caller,
    author: User,
    subject: ProjectOrGroup,
    *,
    email: str,
    access_level: int,
    expires_at: dt.date | None,
) -> Invitation:
    """Mail an invitation to an address.

    Raises:
        Invalid: the address or the role is not valid, or the server cannot send mail.
        Conflict: the address was invited already.
        Forbidden: the role is above that of the requester.
        TooManyRequests: the requester has sent too many.

    """
    address = email.strip().lower()
    _check(subject, address, access_level, expires_at)
    if access_level > role_of(requester, subject):
        raise Forbidden
    SENT.check(author.id)
    is_project = isinstance(subject, Project)
    invitation = Invitation(
        email=address,
        access_level=access_level,
        expires_at=expires_at,
        project_id=subject.id if is_project else None,
        namespace_id=None if is_project else subject.id,
        created_by_id=author.id,
    )
    add_unique(invitation, Conflict("This address was invited already. Revoke the invitation to send another one."))
    _queue_mail(author, subject, invitation)
    _record("member_invited", subject, f"Invited {address}", invitation)
    return invitation


def invite_all(
    requester: Caller,
    author: User,
    subject: ProjectOrGroup,
    *,
    emails: Collection[str],
    user_ids: Collection[int],
    **membership: Unpack[OfferedMembership],
) -> dict[str, str]:
    """Invite addresses, and add users and those who show such an address; return the problems by address or username.

    Raises:
        BadRequest: they are more than ``MAX_AT_ONCE``.
        NotFound: a user does not exist.
        Forbidden: the role is above that of the requester.

    """
    if len(emails) + len(user_ids) > MAX_AT_ONCE:
        raise BadRequest(f"Too many users specified (limit is {MAX_AT_ONCE})")
    people: list[tuple[str, User | None]] = [(email.strip(), user_with_public_email(email)) for email in emails]
    people += [(user.username, user) for user in map(find_user, user_ids)]
    problems: dict[str, str] = {}
    for name, user in people:
        try:
            if user is not None:
                service.add_member(requester, subject, user, **membership)
            else:
                invite(requester, author, subject, email=name, **membership)
        except TooManyRequests:  # what was sent before is sent: the answer says which were not
            problems[name] = TOO_MANY
        except Conflict as error:
            problems[name] = str(error.message)
        except Invalid as error:
            problems[name] = _sentence(error.message)
    return problems


def _sentence(messages: dict[str, list[str]]) -> str:
    """The problems of the fields of a membership as one text."""
    names = {"username": "Address"}
    parts = (
        f"{names.get(name, name.replace('_', ' ').capitalize())} {text}" for name in messages for text in messages[name]
    )
    return ". ".join(parts)


def change(requester: Caller, subject: ProjectOrGroup, invitation: Invitation, fields: dict[str, Any]) -> Invitation:
    """Change the role (``access_level``) or the end (``expires_at``) of the membership that an invitation gives.

    Raises:
        Invalid: the role or the date is not valid.
        Forbidden: the role, or the one until now, is above that of the requester.

    """
    access_level = fields.get("access_level") or invitation.access_level
    expires_at = fields.get("expires_at", invitation.expires_at)
    if problems := _problems_of_membership(subject, access_level, expires_at):
        raise Invalid(**problems)
    if max(access_level, invitation.access_level) > role_of(requester, subject):
        raise Forbidden
    invitation.access_level, invitation.expires_at = access_level, expires_at
    db.session.flush()
    _record("member_invitation_updated", subject, f"Changed the invitation of {invitation.email}", invitation)
    return invitation


def _check(subject: ProjectOrGroup, email: str, access_level: int, expires_at: dt.date | None) -> None:
    problems = _problems_of_membership(subject, access_level, expires_at)
    if not mail.is_on() or not may_create_accounts():
        problems["username"] = [
            "belongs to no user, and invitations are off on this server: ask an administrator to create an account"
        ]
    elif not EMAIL.fullmatch(email) or len(email) > MAX_EMAIL_LENGTH:
        problems["username"] = ["is not a valid e-mail address"]
    if problems:
        raise Invalid(**problems)


def _problems_of_membership(
    subject: ProjectOrGroup, access_level: int, expires_at: dt.date | None
) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {}
    if access_level not in [role for role in MEMBER_ROLES if isinstance(subject, Group) or role < Role.OWNER]:
        problems["access_level"] = ["is not included in the list"]
    if expires_at is not None and expires_at < clock.today():
        problems["expires_at"] = ["cannot be a date in the past"]
    return problems


def _queue_mail(author: User, subject: ProjectOrGroup, invitation: Invitation) -> None:
    address = urls.absolute(f"/-/invitations/{signed_links.sign(PURPOSE, invitation.id)}")
    role = Role(invitation.access_level).title
    texts = (
        f"{author.name} (@{author.username}) invites you to {subject.full_path} as {role}.",
        f"Accept the invitation here within two weeks; if you have no account yet, you create one:\n{address}",
        "If you do not expect this, ignore this mail.",
    )
    mail.queue([invitation.email], f"Invitation to {subject.full_path}", "\n\n".join(texts) + "\n")


def invitations_to(subject: ProjectOrGroup, query: str | None = None) -> Select[Invitation]:
    """The invitations to a project or group that can still be accepted, newest first; ``query`` is in the address."""
    here = Invitation.project_id if isinstance(subject, Project) else Invitation.namespace_id
    statement = select(Invitation).where(here == subject.id, Invitation.created_at > _oldest())
    if query and query.strip():
        statement = statement.where(searching.contains(query.strip(), Invitation.email))
    return statement.order_by(Invitation.id.desc()).options(joinedload(Invitation.created_by))


def find_invitation(subject: ProjectOrGroup, invitation_id: int) -> Invitation:
    """One invitation to a project or group by its id."""
    return one(invitations_to(subject).where(Invitation.id == invitation_id), RecordNotFound())


def find_invitation_of(subject: ProjectOrGroup, email: str) -> Invitation:
    """One invitation to a project or group by its address."""
    return one(invitations_to(subject).where(Invitation.email == email.strip().lower()), RecordNotFound())


def revoke(subject: ProjectOrGroup, invitation_id: int) -> None:
    """Delete an invitation: its link does not work any more."""
    invitation = find_invitation(subject, invitation_id)
    db.session.delete(invitation)
    _record("member_invitation_revoked", subject, f"Revoked the invitation of {invitation.email}", invitation)


def find_by_link(text: str) -> Invitation | None:
    """Return the invitation of a link; ``None`` if it cannot be accepted any more."""
    number = signed_links.read(PURPOSE, text, INVITATION_LIFETIME)
    if number is None:
        return None
    statement = select(Invitation).where(Invitation.id == number, Invitation.created_at > _oldest())
    # SQLite would read all projects for a join with the project and its namespace
    loaded = joinedload(Invitation.created_by), selectinload(Invitation.project), joinedload(Invitation.group)
    invitation = db.session.scalar(statement.options(*loaded))
    return None if invitation is None or invitation.place.deleting_since is not None else invitation


def accept(invitation: Invitation, user: User) -> None:
    """Make a user a member as the invitation says, by the role that its author has now; it works once.

    Raises:
        Invalid: it was accepted or revoked meanwhile, or its author may not invite any more.
        Conflict: the user is a member already.

    """
    subject, author = invitation.place, Caller.of(invitation.created_by)
    used = delete(Invitation).where(Invitation.id == invitation.id).returning(Invitation.id)
    if db.session.scalar(used) is None:
        raise Invalid(base=GONE)
    ability = Ability.ADMIN_PROJECT_MEMBERS if isinstance(subject, Project) else Ability.ADMIN_GROUP
    may_invite = invitation.created_by.state == ACTIVE and allowed(author, ability, subject)
    if not may_invite or invitation.access_level > role_of(author, subject):
        raise Invalid(base="The person who invited you may not add members any more.")
    service.add_member(author, subject, user, access_level=invitation.access_level, expires_at=invitation.expires_at)


def accept_as_new_user(invitation: Invitation, *, name: str, username: str, password: str) -> User:
    """Create an account with the address of the invitation, and accept it."""
    if not may_create_accounts():
        raise Invalid(base="Accounts cannot be created by invitation on this server: ask an administrator for one.")
    user = new_accounts.create_account(name=name, username=username, email=invitation.email, password=password)
    accept(invitation, user)
    return user


def prune() -> None:
    """Delete invitations whose links have expired."""
    db.session.execute(delete(Invitation).where(Invitation.created_at <= _oldest()))


def _oldest() -> dt.datetime:
    return clock.now() - INVITATION_LIFETIME


def _record(event_name: str, subject: ProjectOrGroup, message: str, invitation: Invitation) -> None:
    target = AuditTarget("Invitation", invitation.id, invitation.email)
    details: dict[str, Any] = {"as": Role(invitation.access_level).title}
    audit.record(event_name, subject, message, target=target, **details)
