"""Mapping of the users that an archive refers to (archive format reference, section 6.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.domain.accounts.users import User, users
from project_service.kit.db.session import db
from project_service.transfers.archive import layout, parsing
from project_service.transfers.archive.parsing import MAX_DEPTH
from project_service.transfers.importing.refusals import too_deep

MEMBERS_AT_ONCE = 500
MAX_ADDRESS_LENGTH = 254  # RFC 5321, section 4.5.3.1.3
MAX_DATE_LENGTH = 64  # characters


@dataclass(frozen=True, slots=True)
class ImportedRole:
    """A role in the project, and the value for the day it expires as the archive has it."""

    level: int
    expires_at: Any = None


@dataclass(frozen=True, slots=True)
class _Member:
    """A member with the id on the other server; without a role if there is none like it here."""

    old_id: int
    role: ImportedRole | None


@dataclass(slots=True)
class UserMapping:
    """The accounts here of the members of an archive, by their ids on the other server; all others are the importer."""

    importer_id: int
    importer_name: str = ""
    accounts: dict[int, int] = field(default_factory=dict)
    roles: dict[int, ImportedRole] = field(default_factory=dict)

    def knows(self, old_id: Any) -> bool:
        """Whether a reference is to a user who has an account here."""
        return isinstance(old_id, int) and old_id in self.accounts

    def find(self, old_id: Any) -> int | None:
        """Map an optional reference; users without an account become the importer."""
        return None if old_id is None else self.author(old_id)

    def author(self, old_id: Any) -> int:
        """Map a required reference."""
        return self.accounts.get(old_id, self.importer_id) if isinstance(old_id, int) else self.importer_id

    def map_references(self, value: Any, kind: str = "", levels_left: int = MAX_DEPTH) -> Any:
        """Return data without a table with the references to users mapped and without secrets.

        ``kind`` is the key of the data: rows of some kinds have columns that are kept as they are.

        Raises:
            RowRefused: the data is nested too deeply.

        """
        if levels_left == 0:
            raise too_deep()
        if isinstance(value, list):
            return [
                self.map_references(inner, kind, levels_left - 1) if isinstance(inner, dict | list) else inner
                for inner in value
            ]
        if not isinstance(value, dict):
            return value
        free = layout.FREE_FORM_COLUMNS.get(kind, layout.NOT_FREE)
        mapped: dict[str, Any] = {}
        for name, inner in value.items():
            if name in free:
                mapped[name] = self._unchanged(inner, levels_left - 1)
            elif name in layout.USER_REFERENCES:
                mapped[name] = self.find(inner)
            elif inner is None or not layout.DROPPED.search(name):
                nested = inner and isinstance(inner, dict | list)
                mapped[name] = self.map_references(inner, name, levels_left - 1) if nested else inner
        return mapped

    def _unchanged(self, value: Any, levels_left: int) -> Any:
        if parsing.is_too_deep(value, levels_left):
            raise too_deep()
        return value


def map_users(importer: User, members: Iterable[Any]) -> UserMapping:
    """Match members by their e-mail address, in imports of administrators only; usernames do not count."""
    mapping = UserMapping(importer.id, importer.name)
    if not importer.admin:
        return mapping
    by_address: dict[str, list[_Member]] = {}
    pending = 0
    for member in members:
        user = member.get("user") if isinstance(member, dict) and not is_invitation(member) else None
        if not isinstance(user, dict) or not isinstance(user.get("id"), int):
            continue
        address = user.get("public_email") or user.get("email")
        level = member.get("access_level")
        if isinstance(address, str) and len(address) <= MAX_ADDRESS_LENGTH and isinstance(level, int):
            role = role_of(level)
            imported = None if role is None else ImportedRole(role, _bounded(member.get("expires_at")))
            by_address.setdefault(address.lower(), []).append(_Member(user["id"], imported))
            pending += 1
        if pending >= MEMBERS_AT_ONCE:
            _match(mapping, by_address)
            pending = 0
    _match(mapping, by_address)
    return mapping


def is_invitation(row: Any) -> bool:
    """Whether a row of the members is an invitation or an access request."""
    return isinstance(row, dict) and bool(
        row.get("requested_at") or (row.get("user") is None and row.get("invite_email"))
    )


def role_of(level: int) -> Role | None:
    """Return the highest role that is not above an access level, at most maintainer; nothing below guest."""
    return max((role for role in MEMBER_ROLES if role <= min(level, Role.MAINTAINER)), default=None)


def _bounded(expires_at: Any) -> Any:
    """The value for a date, shortened: the values of many members are in memory."""
    if isinstance(expires_at, str):
        return expires_at[:MAX_DATE_LENGTH]
    return bool(expires_at) if isinstance(expires_at, dict | list) else expires_at


def _match(mapping: UserMapping, by_address: dict[str, list[_Member]]) -> None:
    rows = db.session.execute(
        select(User.id, func.lower(User.email)).where(
            func.lower(User.email).in_(by_address), User.id.in_(users().with_only_columns(User.id))
        )
    )
    for user_id, address in rows:
        for member in by_address.get(address, ()):
            mapping.accounts[member.old_id] = user_id
            role = mapping.roles.get(user_id)
            if member.role is None:
                continue
            if role is None or member.role.level > role.level:
                mapping.roles[user_id] = member.role
    by_address.clear()
