"""What the home page and the page of a group are about: the projects whose state concerns the caller."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Select, select

from project_service.access.identity import Caller
from project_service.domain.access_levels import Role
from project_service.domain.memberships import authorized_projects
from project_service.domain.namespaces import Group, NamespaceAncestor
from project_service.domain.projects import DISABLED, Project


@dataclass(frozen=True, slots=True)
class HomeScope:
    """The caller's projects, or those of a group and the groups below it; archived projects are left out."""

    caller: Caller
    group: Group | None = None

    def projects(self, least: Role, feature: str | None = None) -> Select[int]:
        """The ids of the projects in which the caller has at least a role; administrators see all of a group.

        With a feature, those in which it is switched on.
        """
        statement = select(Project.id).where(Project.deleting_since.is_(None), Project.archived.is_(False))
        if feature is not None:
            statement = statement.where(getattr(Project, f"{feature}_access_level") != DISABLED)
        if self.group is not None:
            below = select(NamespaceAncestor.namespace_id).where(NamespaceAncestor.ancestor_id == self.group.id)
            statement = statement.where(Project.namespace_id.in_(below))
        if self.group is None or not self.caller.admin:
            statement = statement.where(Project.id.in_(authorized_projects(self.caller.user_id or 0, least)))
        return statement
