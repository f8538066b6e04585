"""Whom the people of an archive are here (archive format reference, section 6.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.domain.users import User, users
from project_service.kit.db.session import db
from project_service.transfers.archive import layout, reader
from project_service.transfers.archive.reader import DEEPEST
from project_service.transfers.importing.refusals import too_deep

AT_A_TIME = 500
LONGEST_ADDRESS = 254  # of all that mail is sent to (RFC 5321, section 4.5.3.1.3)
LONGEST_DAY = 64


@dataclass(frozen=True, slots=True)
class Grant:
    """The role that the archive gives somebody, and the day it ends as the archive has it."""

    level: int
    expires_at: Any = None


@dataclass(frozen=True, slots=True)
class _Member:
    """Who had which role where the archive comes from; perhaps one that gives nothing here."""

    old_id: int
    grant: Grant | None


@dataclass(slots=True)
class People:
    """The importer, and who of the archive's members is known here: their old ids to those here."""

    importer_id: int
    importer_name: str = ""
    known: dict[int, int] = field(default_factory=dict)
    grants: dict[int, Grant] = field(default_factory=dict)

    def knows(self, old: Any) -> bool:
        """Whether a reference is to somebody who has an account here."""
        return isinstance(old, int) and old in self.known

    def find(self, old: Any) -> int | None:
        """Who is meant by a reference; the importer for strangers, nobody for no reference at all."""
        return None if old is None else self.author(old)

    def author(self, old: Any) -> int:
        """The same for what must have somebody."""
        return self.known.get(old, self.importer_id) if isinstance(old, int) else self.importer_id

    def settle(self, value: Any, kind: str = "", left: int = DEEPEST) -> Any:
        """Data without a table, its references to people made ours and its secrets taken out; may be ``Refused``.

        ``kind`` is what it stands under: of some rows there are columns that are kept whatever is in there.
        """
        if left == 0:
            raise too_deep()
        if isinstance(value, list):
            return [self.settle(inner, kind, left - 1) if isinstance(inner, dict | list) else inner for inner in value]
        if not isinstance(value, dict):
            return value
        free = layout.FREE.get(kind, layout.NOT_FREE)
        settled: dict[str, Any] = {}
        for name, inner in value.items():
            if name in free:
                settled[name] = self._whole(inner, left - 1)
            elif name in layout.PEOPLE:
                settled[name] = self.find(inner)
            elif inner is None or not layout.DROPPED.search(name):
                nested = inner and isinstance(inner, dict | list)
                settled[name] = self.settle(inner, name, left - 1) if nested else inner
        return settled

    def _whole(self, value: Any, left: int) -> Any:
        if reader.too_deep(value, left):
            raise too_deep()
        return value


def people_of(importer: User, members: Iterable[Any]) -> People:
    """Match members by their e-mail address; only an administrator's import does so, and no username ever counts."""
    people = People(importer.id, importer.name)
    if not importer.admin:
        return people
    by_address: dict[str, list[_Member]] = {}
    held = 0
    for member in members:
        user = member.get("user") if isinstance(member, dict) and not is_only_asked(member) else None
        if not isinstance(user, dict) or not isinstance(user.get("id"), int):
            continue
        address = user.get("public_email") or user.get("email")
        level = member.get("access_level")
        if isinstance(address, str) and len(address) <= LONGEST_ADDRESS and isinstance(level, int):
            role = role_of(level)
            grant = None if role is None else Grant(role, _in_brief(member.get("expires_at")))
            by_address.setdefault(address.lower(), []).append(_Member(user["id"], grant))
            held += 1
        if held >= AT_A_TIME:
            _match(people, by_address)
            held = 0
    _match(people, by_address)
    return people


def is_only_asked(row: Any) -> bool:
    """Whether a row of a member is of somebody who is none: was invited, or has asked for access."""
    return isinstance(row, dict) and bool(
        row.get("requested_at") or (row.get("user") is None and row.get("invite_email"))
    )


def role_of(level: int) -> Role | None:
    """The role that a level of an archive is here: never more, and not an owner's; nothing below a guest's."""
    return max((role for role in MEMBER_ROLES if role <= min(level, Role.MAINTAINER)), default=None)


def _in_brief(expires_at: Any) -> Any:
    """A day, or what is none, without what is too much to be remembered of many members."""
    if isinstance(expires_at, str):
        return expires_at[:LONGEST_DAY]
    return bool(expires_at) if isinstance(expires_at, dict | list) else expires_at


def _match(people: People, by_address: dict[str, list[_Member]]) -> None:
    found = db.session.execute(
        select(User.id, func.lower(User.email)).where(
            func.lower(User.email).in_(by_address), User.id.in_(users().with_only_columns(User.id))
        )
    )
    for user_id, address in found:
        for member in by_address.get(address, ()):
            people.known[member.old_id] = user_id
            known = people.grants.get(user_id)
            if member.grant is None:
                continue
            if known is None or member.grant.level > known.level:
                people.grants[user_id] = member.grant
    by_address.clear()
