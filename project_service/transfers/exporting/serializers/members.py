"""Serialization of members."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import String, cast, or_, select

from project_service.domain.accounts.resource_bots import bots
from project_service.domain.accounts.users import User
from project_service.domain.memberships import Membership, alive
from project_service.domain.namespaces import NamespaceAncestor
from project_service.transfers.archive import layout
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.templates import Line


def serialize_members(context: ExportContext) -> Iterator[Line]:
    """Generate the direct members; those of ancestor groups as well if the exporting user administers them."""
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == context.project.namespace_id)
    here = Membership.project_id == context.project.id
    condition = or_(here, Membership.namespace_id.in_(above)) if context.with_group_members else here
    statement = (
        select(
            Membership.id,
            Membership.access_level,
            Membership.user_id,
            Membership.created_by_id,
            cast(Membership.expires_at, String),
            context.iso(Membership.created_at),
            context.iso(Membership.updated_at),
            User.email,
            User.username,
        )
        .join(User, User.id == Membership.user_id)
        .where(condition, User.deleting_since.is_(None), User.id.not_in(bots()))
        # an expired role still maps the user of rows, and counts only if there is no other
        .order_by(alive().desc(), Membership.project_id.is_(None), Membership.access_level.desc(), Membership.id)
    )
    user_ids: set[int] = set()
    for number, level, user_id, made_by, expires_at, created_at, updated_at, email, username in context.execute(
        statement
    ):
        if user_id in user_ids:
            continue
        user_ids.add(user_id)
        yield {
            "id": number,
            "access_level": level,
            "source_type": "Project",
            "user_id": user_id,
            "notification_level": 3,
            "created_at": created_at,
            "updated_at": updated_at,
            "created_by_id": made_by,
            "invite_email": None,
            "invite_token": None,
            "invite_accepted_at": None,
            "requested_at": None,
            "expires_at": expires_at,
            "ldap": False,
            "override": False,
            "user": {"id": user_id, "email": email, "username": username},
        }
    yield from context.archived(layout.MEMBERS)
