"""Schemas of protected tags and branches (repositories reference, section 4.6; protected tags reference, 1 and 5)."""

from __future__ import annotations

from project_service.domain.access_levels import Role
from project_service.domain.repositories.protected_refs import LEVEL_TEXTS
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Nested, Schema

CHOICES = tuple(int(level) for level in LEVEL_TEXTS)
UNPROTECT = int(Role.MAINTAINER)
BY_DEFAULT = {"description": "By default 40."}


def _description(level: int) -> str:
    return LEVEL_TEXTS.get(Role(level), Role(level).title)


class AccessEntrySchema(Schema):
    """One entry of ``allowed_to_push`` and the like; only levels are supported, others are refused."""

    id = fields.Integer()
    access_level = fields.Integer(choices=CHOICES)
    user_id = fields.Integer()
    group_id = fields.Integer()
    deploy_key_id = fields.Integer()
    _destroy = fields.Boolean()


class TagLevelSchema(Schema):
    """A level that may create matching tags."""

    access_level = fields.Computed(int, type="integer")
    access_level_description = fields.Computed(_description)


class ProtectedTagSchema(Schema):
    """A protected tag."""

    name = fields.String()
    create_access_levels = fields.Array(Embedded(TagLevelSchema))


class ProtectedTagCreateSchema(Schema):
    """A tag name or wildcard to protect."""

    name = fields.String(required=True)
    create_access_level = fields.Integer(choices=CHOICES, metadata=BY_DEFAULT)
    allowed_to_create = fields.Array(Nested(AccessEntrySchema))


class BranchLevelSchema(Schema):
    """A role that may push to or merge into matching branches; ``id`` is that of the protected branch."""

    id = fields.Integer()
    access_level = fields.Integer()
    access_level_description = fields.Computed(lambda row: _description(row.access_level))


class ProtectedBranchSchema(Schema):
    """A protected branch."""

    id = fields.Integer()
    name = fields.String()
    push_access_levels = fields.Array(Embedded(BranchLevelSchema))
    merge_access_levels = fields.Array(Embedded(BranchLevelSchema))
    allow_force_push = fields.Boolean()
    unprotect_access_levels = fields.Array(Embedded(BranchLevelSchema))
    code_owner_approval_required = fields.Constant(False)


class ProtectedBranchListSchema(Schema):
    """Which protected branches."""

    search = fields.String(metadata={"description": "A part of the name."})


class ProtectedBranchCreateSchema(Schema):
    """A branch name or wildcard to protect."""

    name = fields.String(required=True)
    push_access_level = fields.Integer(choices=CHOICES, metadata=BY_DEFAULT)
    merge_access_level = fields.Integer(choices=CHOICES, metadata=BY_DEFAULT)
    unprotect_access_level = fields.Integer(default=UNPROTECT, choices=(UNPROTECT,))
    allow_force_push = fields.Boolean(default=False)
    allowed_to_push = fields.Array(Nested(AccessEntrySchema))
    allowed_to_merge = fields.Array(Nested(AccessEntrySchema))
    allowed_to_unprotect = fields.Array(Nested(AccessEntrySchema))
    code_owner_approval_required = fields.Boolean()


class ProtectedBranchUpdateSchema(Schema):
    """What changes of a protected branch."""

    allow_force_push = fields.Boolean()
    allowed_to_push = fields.Array(Nested(AccessEntrySchema))
    allowed_to_merge = fields.Array(Nested(AccessEntrySchema))
    allowed_to_unprotect = fields.Array(Nested(AccessEntrySchema))
    code_owner_approval_required = fields.Boolean()
