"""Import of members from another project."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from project_service.access.abilities import Ability, judge
from project_service.access.identity import Caller
from project_service.access.roles import role_of
from project_service.areas.members import queries, service
from project_service.domain.access_levels import Role
from project_service.domain.accounts.resource_bots import bots
from project_service.domain.memberships import Membership
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import Conflict, Invalid

MAX_IMPORTED_MEMBERS = 500


@dataclass(frozen=True, slots=True)
class ImportedMembers:
    """How many members were added, and the names of those who were not, since they have a higher role already."""

    added: int
    left_out: list[str]


def import_members(requester: Caller, project: Project, source: Project) -> ImportedMembers:
    """Add the direct members of another project with their roles, at most the requester's; members keep theirs.

    Raises:
        Invalid: the source is the project itself, or has too many members.
        Forbidden: the requester may not administer the members of the source.

    """
    judge(requester, Ability.ADMIN_PROJECT_MEMBERS, source)
    if source.id == project.id:
        raise Invalid(source="is this project itself")
    here = select(Membership.user_id).where(Membership.project_id == project.id)
    members = queries.members_of(source).where(Membership.user_id.not_in(here), Membership.user_id.not_in(bots()))
    memberships = list(db.session.scalars(members.limit(MAX_IMPORTED_MEMBERS + 1)))
    if len(memberships) > MAX_IMPORTED_MEMBERS:
        raise Invalid(source=f"has more than {MAX_IMPORTED_MEMBERS} members: share the project with a group instead")
    highest = min(role_of(requester, project), Role.MAINTAINER)
    added, left_out = 0, list[str]()
    for member in memberships:
        try:
            service.add_member(
                requester,
                project,
                member.user,
                access_level=min(member.access_level, highest),
                expires_at=member.expires_at,
            )
            added += 1
        except (Conflict, Invalid):
            left_out.append(member.user.name)
    return ImportedMembers(added, left_out)
