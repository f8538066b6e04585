"""Schemas of variables (variables reference, sections 1 and 3 to 7)."""

from __future__ import annotations

from marshmallow.validate import Length

from project_service.areas.variables.formats import JSON, TEXT_FORMATS
from project_service.areas.variables.models import ENV_VAR, FILE
from project_service.kit.http import fields
from project_service.kit.http.schemas import Nested, Schema

TYPES = (ENV_VAR, FILE)
MAX_ENVIRONMENT_LENGTH = 255


class VariableSchema(Schema):
    """A variable; the value of a hidden one is never shown."""

    variable_type = fields.String()
    key = fields.String()
    value = fields.Computed(lambda variable: None if variable.hidden else variable.value)
    hidden = fields.Boolean()
    protected = fields.Boolean()
    masked = fields.Boolean()
    raw = fields.Boolean()
    environment_scope = fields.String()
    description = fields.String()


class InstanceVariableSchema(Schema):
    """A variable of the instance, which has no scope and is never hidden."""

    variable_type = fields.String()
    key = fields.String()
    value = fields.String()
    protected = fields.Boolean()
    masked = fields.Boolean()
    raw = fields.Boolean()
    description = fields.String()


class ScopeSchema(Schema):
    """Selects one of several variables with the same key."""

    environment_scope = fields.String()


class VariableFilterSchema(Schema):
    """Selects one of several variables with the same key."""

    filter = Nested(ScopeSchema)


class InstanceVariableUpdateSchema(Schema):
    """Changes of a variable of the instance; without ``value`` the stored one is kept."""

    value = fields.String()
    variable_type = fields.String(choices=TYPES)
    protected = fields.Boolean()
    masked = fields.Boolean()
    raw = fields.Boolean()
    description = fields.String()


class VariableUpdateSchema(InstanceVariableUpdateSchema, VariableFilterSchema):
    """Changes of a variable, and which one of several with the same key."""

    environment_scope = fields.String()


class InstanceVariableCreateSchema(Schema):
    """A new variable of the instance."""

    key = fields.String(required=True)
    value = fields.String(required=True)
    variable_type = fields.String(default=ENV_VAR, choices=TYPES)
    protected = fields.Boolean()
    masked = fields.Boolean()
    raw = fields.Boolean()
    description = fields.String()


class VariableCreateSchema(InstanceVariableCreateSchema):
    """A new variable of a project or group."""

    masked_and_hidden = fields.Boolean()
    environment_scope = fields.String()


class EffectiveFilterSchema(VariableFilterSchema):
    """What a job of an environment gets; without ``environment`` the variable called ``effective`` is meant."""

    environment = fields.String(validate=Length(max=MAX_ENVIRONMENT_LENGTH, error=fields.INVALID))
    protected = fields.Boolean(default=False)
    format = fields.String(choices=(JSON, *TEXT_FORMATS))
    key = fields.Array(fields.String())
    expand = fields.Boolean(default=False)


class EffectiveVariableSchema(Schema):
    """A variable as a job gets it, and where it comes from."""

    key = fields.String()
    value = fields.String()
    variable_type = fields.String()
    protected = fields.Boolean()
    masked = fields.Boolean()
    hidden = fields.Boolean()
    raw = fields.Boolean()
    environment_scope = fields.String()
    source = fields.String()
    source_path = fields.String()
    note = fields.ConditionalField(lambda variable: variable.note is not None, lambda variable: variable.note)
