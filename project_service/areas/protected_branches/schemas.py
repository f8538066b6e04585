"""Schemas of protected branches (repositories reference, section 4.6)."""

from __future__ import annotations

from project_service.domain.access_levels import Role
from project_service.domain.repositories.protected_names import LEVELS
from project_service.kit.http import fields
from project_service.kit.http.schemas import Inside, Schema

CHOICES = tuple(int(level) for level in LEVELS)
UNPROTECT = int(Role.MAINTAINER)


class BranchLevelSchema(Schema):
    """A role that may push to or merge into matching branches; ``id`` is that of the protected branch."""

    id = fields.Integer()
    access_level = fields.Integer()
    access_level_description = fields.Computed(lambda row: LEVELS.get(row.access_level, Role(row.access_level).title))


class ProtectedBranchSchema(Schema):
    """A protected branch."""

    id = fields.Integer()
    name = fields.String()
    push_access_levels = fields.Array(Inside(BranchLevelSchema))
    merge_access_levels = fields.Array(Inside(BranchLevelSchema))
    allow_force_push = fields.Boolean()
    unprotect_access_levels = fields.Array(Inside(BranchLevelSchema))
    code_owner_approval_required = fields.Constant(False)


class ProtectedBranchListSchema(Schema):
    """Which protected branches."""

    search = fields.String(metadata={"description": "A part of the name."})


class ProtectedBranchCreateSchema(Schema):
    """A branch name or wildcard to protect."""

    name = fields.String(required=True)
    push_access_level = fields.Integer(default=int(Role.MAINTAINER), choices=CHOICES)
    merge_access_level = fields.Integer(default=int(Role.MAINTAINER), choices=CHOICES)
    unprotect_access_level = fields.Integer(default=UNPROTECT, choices=(UNPROTECT,))
    allow_force_push = fields.Boolean(default=False)


class ProtectedBranchUpdateSchema(Schema):
    """What changes of a protected branch."""

    allow_force_push = fields.Boolean()
