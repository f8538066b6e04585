"""The base class of schemas, and loading of parameters through schemas."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import marshmallow
from marshmallow.exceptions import ValidationError

from project_service.kit.http import fields, serializers
from project_service.kit.http.errors import BadParameters

IMMUTABLE_TYPES = (str, int, tuple, type(None))


class Schema(marshmallow.Schema):
    """Fields in the order of the response; undeclared parameters are ignored (common reference, section 2).

    ``exclusive`` names parameters that refuse each other, ``at_least_one`` (or ``counts_too``, which the refusal does
    not name) and ``exactly_one`` those of which one is required, ``all_or_none`` those that are only
    valid together. ``alternatives`` maps a required parameter to the one that may replace it.
    """

    class Meta:
        unknown = marshmallow.EXCLUDE

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = ()
    at_least_one: ClassVar[tuple[str, ...]] = ()
    counts_too: ClassVar[tuple[str, ...]] = ()
    exactly_one: ClassVar[tuple[str, ...]] = ()
    all_or_none: ClassVar[tuple[str, ...]] = ()
    alternatives: ClassVar[Mapping[str, str]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the schema itself: nothing changes it, and documenting routes would copy it some thousand times."""
        return self

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of the parameters that the schema loads."""
        return frozenset(field.data_key or name for name, field in self.load_fields.items())

    @functools.cached_property
    def defaults(self) -> Mapping[str, Any] | None:
        """The fields loaded from a request without any of the parameters, if they are constant."""
        if self.at_least_one or self.exactly_one or any(field.required for field in self.load_fields.values()):
            return None
        values = [field.load_default for field in self.load_fields.values()]
        if any(default is not marshmallow.missing and not isinstance(default, IMMUTABLE_TYPES) for default in values):
            return None
        loaded: dict[str, Any] = self.load({})
        return loaded

    @classmethod
    def dump_value(cls, value: Any) -> Any:
        """Serialize an object, or a list of objects, with a shared instance of this schema."""
        return _instance_of(cls).dump(value, many=isinstance(value, list | tuple))

    def dump(self, obj: Any, *, many: bool | None = None) -> Any:
        """Serialize an object or several, as marshmallow does but with the closures of ``serializers``.

        Dump hooks are not called: a schema that needs them sets ``dump = marshmallow.Schema.dump``.
        """
        many = self.many if many is None else many
        return [self._dump_one(item) for item in obj] if many else self._dump_one(obj)

    def _dump_one(self, obj: Any) -> Any:
        if isinstance(obj, dict):  # marshmallow knows how to read its items
            return super().dump(obj, many=False)
        return self._serializer(obj)

    @functools.cached_property
    def _serializer(self) -> serializers.Serializer:
        return serializers.serializer_of(self)


@functools.cache
def _instance_of(schema: type[Schema]) -> Schema:
    return schema()


def load(*schemas: Schema, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Load the parameters through several schemas; ``BadParameters`` has all messages, in order.

    An absent parameter without a default is absent in the result.
    """
    loaded: dict[str, Any] = {}
    texts: list[str] = []
    for schema in schemas:
        if schema.defaults is not None and schema.names.isdisjoint(parameters):
            loaded |= schema.defaults
            continue
        try:
            loaded |= schema.load(parameters)
        except ValidationError as error:
            messages = error.normalized_messages()
            for name, other in schema.alternatives.items():
                if messages.get(name) == [fields.MISSING] and parameters.get(other) is not None:
                    del messages[name]
            if not messages:
                loaded |= error.valid_data or {}
            texts += _texts(schema, messages)
        texts += _counts(schema, parameters)
    if texts:
        raise BadParameters(*texts)
    return loaded


def _texts(schema: marshmallow.Schema, messages: Mapping[str, Any], prefix: str = "") -> list[str]:
    texts = []
    for name, field in schema.load_fields.items():
        key = field.data_key or name
        errors = messages.get(key)
        if errors is None:
            continue
        path = f"{prefix}[{key}]" if prefix else key
        texts += _flatten(field, errors, path)
    return texts


def _flatten(field: Any, messages: Any, shown: str) -> list[str]:
    if isinstance(messages, list):
        return [f"{shown} {text}" for text in messages]
    if isinstance(field, marshmallow.fields.Nested):
        return _texts(field.schema, messages, shown) or [f"{shown} {fields.INVALID}"]  # not an object at all
    if isinstance(field, fields.Array):
        return [text for index, inner in messages.items() for text in _flatten(field.inner, inner, f"{shown}[{index}]")]
    return [f"{shown} {fields.INVALID}"]


def _counts(schema: Schema, parameters: Mapping[str, Any]) -> list[str]:
    texts = []
    for group in schema.exclusive:
        sent = [name for name in group if parameters.get(name) is not None]
        if len(sent) > 1:
            texts.append(f"{', '.join(sent)} are mutually exclusive")
    if schema.at_least_one and not any(name in parameters for name in (*schema.at_least_one, *schema.counts_too)):
        texts.append(f"{', '.join(schema.at_least_one)} are missing, at least one parameter must be provided")
    if schema.exactly_one:
        sent = [name for name in schema.exactly_one if parameters.get(name) is not None]
        if not sent:
            texts.append(f"{', '.join(schema.exactly_one)} are missing, exactly one parameter must be provided")
        elif len(sent) > 1:
            texts.append(f"{', '.join(sent)} are mutually exclusive")
    if schema.all_or_none:
        sent = [name for name in schema.all_or_none if parameters.get(name) is not None]
        if sent and len(sent) < len(schema.all_or_none):
            texts.append(f"{', '.join(schema.all_or_none)} provide all or none of parameters")
    return texts


class Nested(fields.Parameter, marshmallow.fields.Nested):
    """An object with declared parameters of its own; ``name[key]=`` in forms and queries."""

    blank_is_absent = False
    in_forms = fields.IN_BRACKETS

    def __init__(self, nested: type[Schema], **options: Any) -> None:
        super().__init__(nested=nested, **options)

    def deserialize(
        self, value: Any, attr: str | None = None, data: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        """Load the object; refuse ``null`` where it is required."""
        if value is None and self.required:
            raise marshmallow.ValidationError([fields.INVALID])
        return super().deserialize(value, attr, data, **options)

    def read(self, value: Any) -> Any:
        """Load the object; the messages inside keep their place."""
        if not isinstance(value, dict):
            raise ValueError(value)
        return self.schema.load(value)


class Embedded(marshmallow.fields.Nested):
    """An object nested in a response; left out when it is ``None``, unless ``keep_none``."""

    def __init__(self, nested: type[Schema], *, keep_none: bool = False, **options: Any) -> None:
        self.keep_none = keep_none
        super().__init__(nested, dump_only=True, allow_none=keep_none, **options)

    def get_value(self, obj: Any, attr: str, accessor: Any = None, default: Any = marshmallow.missing) -> Any:
        """Return ``missing`` for ``None`` unless ``keep_none``."""
        value = super().get_value(obj, attr, accessor, default)
        return marshmallow.missing if value is None and not self.keep_none else value
