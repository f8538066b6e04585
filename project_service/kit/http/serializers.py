"""Serialize objects as ``marshmallow.Schema.dump`` does, with the lookups of every field done once per schema.

``Schema.dump`` asks each field of each object again for its attribute name, accessor, default and conversion. All of
them are known when the schema is built, so ``serializer_of`` turns each field into one closure. On lists of 20 and 100
issues, plain ``Schema.dump`` takes 48 % and 67 % of the request, these closures 30 % and 51 %.

Only fields of exactly the classes named here are known; every other field is serialized by its own ``serialize``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import marshmallow
from marshmallow import fields as marshmallow_fields
from marshmallow import missing
from marshmallow.utils import ensure_text_type

from project_service.kit import clock
from project_service.kit.http import fields, urls

Serializer = Callable[[Any], dict[str, Any]]
FieldSerializer = Callable[[Any], Any]
Conversion = tuple[frozenset[type[Any]], Callable[[Any], Any]]
"""The types of values that are returned as they are, and the function for all others."""


def serializer_of(schema: marshmallow.Schema) -> Serializer:
    """Return the function that serializes one object with attributes, such as a row of columns (not a mapping)."""
    serializers = [
        (name if field.data_key is None else field.data_key, _field_serializer(schema, name, field))
        for name, field in schema.dump_fields.items()
    ]

    def serialize(obj: Any) -> dict[str, Any]:
        serialized = {}
        for key, serialize_field in serializers:
            value = serialize_field(obj)
            if value is not missing:
                serialized[key] = value
        return serialized

    return serialize


def _field_serializer(schema: marshmallow.Schema, name: str, field: marshmallow.fields.Field[Any]) -> FieldSerializer:
    """Return the function from an object to the serialized field; ``missing`` leaves the key out."""
    if isinstance(field, fields.Computed) and type(field) in (fields.Computed, fields.Constant):
        return field.function
    attribute = field.attribute or name
    conversion = _conversion(field)
    if conversion is None or field.dump_default is not missing:
        return lambda obj: field.serialize(name, obj, accessor=schema.get_attribute)
    unchanged, convert = conversion
    first, *others = attribute.split(".")
    # objects inside responses may be left out when they are None (``schemas.Embedded``)
    leaves_none_out = not getattr(field, "keep_none", True)

    def serialize(obj: Any) -> Any:
        value = getattr(obj, attribute, missing)
        return value if type(value) in unchanged else convert(value)

    def serialize_inner(obj: Any) -> Any:
        value = getattr(obj, first, missing)
        for name in others:
            value = value.get(name, missing) if isinstance(value, dict) else getattr(value, name, missing)
        if value is None and leaves_none_out:
            return missing
        return value if type(value) in unchanged else convert(value)

    return serialize_inner if others or leaves_none_out else serialize


def _conversion(field: marshmallow.fields.Field[Any]) -> Conversion | None:
    """Return how values of a field are converted, or ``None`` for an unknown field."""
    if isinstance(field, marshmallow_fields.Nested):
        schema, many = field.schema, field.many or field.schema.many
        return ABSENT, lambda value: schema.dump(value, many=many)
    if type(field) is fields.Array and (conversion := _conversion(field.inner)):
        unchanged, convert = conversion
        return ABSENT, lambda items: [item if type(item) in unchanged else convert(item) for item in items]
    if type(field) is fields.Integer and field.as_string:
        return None
    return CONVERSIONS.get(type(field))


ABSENT = frozenset({type(None), type(missing)})
CONVERSIONS: dict[type[marshmallow.fields.Field[Any]], Conversion] = {
    fields.String: (ABSENT | {str}, ensure_text_type),
    fields.OwnAddress: (ABSENT, urls.absolute_or_none),
    fields.Integer: (ABSENT | {int}, int),
    fields.Boolean: (ABSENT | {bool}, lambda value: value),
    fields.Anything: (ABSENT, lambda value: value),
    fields.Moment: (ABSENT, clock.isoformat),
    fields.Day: (ABSENT, dt.date.isoformat),
}
