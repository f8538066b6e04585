"""Fields of schemas: conversion of parameters to values, with the error messages, and serialization of values.

Conversion follows common reference, sections 3 and 4: numbers and booleans arrive as text from forms
and from several clients, an empty text counts as absent for everything that is not text, and ``null`` takes the
default. Messages are predicates; ``schemas.load`` puts the name of the
parameter in front of them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar

from dateutil import parser as dates
from marshmallow import fields as marshmallow_fields
from marshmallow import missing
from marshmallow.exceptions import ValidationError
from marshmallow.validate import And

from project_service.kit import clock
from project_service.kit.http import urls
from project_service.kit.http.parameters import Repeated

MISSING = "is missing"
INVALID = "is invalid"
EMPTY = "is empty"
NOT_IN_LIST = "does not have a valid value"
FORBIDDEN = "has a value not allowed"

IN_COMMAS = {"style": "form", "explode": False}
IN_BRACKETS = {"style": "deepObject", "explode": True}

_TRUE = {text for word in ("t", "true", "on", "yes", "y") for text in (word, word.title(), word.upper())} | {"1"}
_FALSE = {text for word in ("f", "false", "off", "no", "n") for text in (word, word.title(), word.upper())} | {"0"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_DIGIT = re.compile(r"[0-9]")
_PLACEHOLDER_DAY = dt.datetime(4, 2, 29, tzinfo=dt.UTC)  # fills in for a missing date
LARGEST_INTEGER = 2**63 - 1
MAX_DIGITS = 20  # one more than the largest has; Python does not parse texts of thousands of digits


class Parameter(marshmallow_fields.Field[Any]):
    """Base class of parameters: blank values, defaults, and the closed list of values.

    ``allow_blank=False`` refuses an empty text and ``null``; ``choices`` is the closed list; ``default`` is used when
    the parameter is absent, ``null``, or empty and not text. ``in_forms`` is the OpenAPI encoding of arrays and
    objects in queries and forms.
    """

    blank_is_absent = True
    in_forms: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        *,
        default: Any = missing,
        choices: Collection[Any] = (),
        allow_blank: bool = True,
        **options: Any,
    ) -> None:
        self.choices = tuple(choices)
        self.allow_blank = allow_blank
        metadata = dict(options.pop("metadata", None) or {})
        if self.choices:
            metadata.setdefault("enum", list(self.choices))
        super().__init__(load_default=default, allow_none=allow_blank, metadata=metadata, **options)

    def deserialize(
        self, value: Any, attr: str | None = None, data: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        """Convert one parameter; the ``ValidationError`` has all messages."""
        if value is missing:
            if not self.required:
                return self._default()
            raise ValidationError([MISSING] if self.allow_blank else [MISSING, EMPTY])
        if value is None or (value == "" and self.blank_is_absent):
            if not self.allow_blank:
                raise ValidationError([EMPTY])
            default = self._default()
            if default is missing and self.required and self.choices:
                raise ValidationError([NOT_IN_LIST])
            return None if default is missing else default
        if value == "" and not self.allow_blank:
            raise ValidationError([EMPTY])
        try:
            read = self.read(value)
        except ValueError as error:
            raise ValidationError([INVALID, NOT_IN_LIST] if self.choices else [INVALID]) from error
        if self.choices and not self._listed(read):
            raise ValidationError([NOT_IN_LIST])
        if self.validators:
            And(*self.validators)(read)
        return read

    def read(self, value: Any) -> Any:
        """Convert what the client sent; raise ``ValueError`` if it has another type."""
        raise NotImplementedError

    def _default(self) -> Any:
        default = self.load_default
        return default() if callable(default) else default

    def _listed(self, value: Any) -> bool:
        return value in self.choices


class String(Parameter, marshmallow_fields.String):
    """Text; numbers and booleans become their text, arrays and objects are refused."""

    blank_is_absent = False

    def read(self, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return str(value)
        if isinstance(value, str):
            return str(value)
        raise ValueError(value)


class Integer(Parameter, marshmallow_fields.Integer):
    """An integer, also as decimal digits; ``forbidden`` values have a message of their own."""

    def __init__(self, *, forbidden: Collection[int] = (), **options: Any) -> None:
        self.forbidden = tuple(forbidden)
        super().__init__(**options)

    def read(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(value)
        if isinstance(value, str) and not _INTEGER.fullmatch(value):
            raise ValueError(value)
        number = int(value)
        if abs(number) > LARGEST_INTEGER:
            raise ValueError(value)
        if number in self.forbidden:
            raise ValidationError([FORBIDDEN])
        return number


class Boolean(Parameter, marshmallow_fields.Boolean):
    """A boolean in any of the spellings that clients use."""

    def read(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, float) or not isinstance(value, int | str):
            raise ValueError(value)
        if str(value) in _TRUE:
            return True
        if str(value) in _FALSE:
            return False
        raise ValueError(value)


class Date(Parameter, marshmallow_fields.Date):
    """A date; a timestamp is cut to its date, and impossible dates are refused."""

    def read(self, value: Any) -> dt.date:
        return _parse(value).date()


class DateTime(Parameter, marshmallow_fields.DateTime):
    """A timestamp; without a time zone it is UTC."""

    def read(self, value: Any) -> dt.datetime:
        return read_moment(value)


class Array(Parameter, marshmallow_fields.List[Any]):
    """An array in brackets, by repeated names, or as one text; texts are split at commas."""

    blank_is_absent = False
    in_forms = IN_COMMAS

    def __init__(self, inner: marshmallow_fields.Field[Any], **options: Any) -> None:
        super().__init__(cls_or_instance=inner, **options)

    def read(self, value: Any) -> list[Any]:
        if isinstance(value, Repeated):
            value = list(value.every)
        elif isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            value = [value]
        if not isinstance(value, list):
            raise ValueError(value)
        # blank elements, as [""] of a form, are left out
        return [read for item in enumerate(_split(value)) if (read := self._element(*item)) is not None]

    def _element(self, index: int, item: Any) -> Any:
        inner: Parameter = self.inner  # type: ignore[assignment]  # the constructor takes nothing else
        try:
            return inner.deserialize(item)
        except ValidationError as error:
            if isinstance(error.messages, dict):  # of the keys of an object: they keep its place
                raise ValidationError({index: error.messages}) from error
            raise


def _split(items: list[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, str):
            yield from (part.strip() for part in item.split(",") if part.strip())
        else:
            yield item


class Hash(Parameter, marshmallow_fields.Dict):
    """An object without declared keys: JSON, ``name[key]=`` in forms and queries."""

    blank_is_absent = False
    in_forms = IN_BRACKETS

    def read(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(value)
        return value


class Upload(Parameter, marshmallow_fields.Raw):
    """A file part of a multipart body."""

    blank_is_absent = False

    def __init__(self, **options: Any) -> None:
        metadata = {"type": "string", "format": "binary"} | dict(options.pop("metadata", None) or {})
        super().__init__(metadata=metadata, **options)

    def deserialize(
        self, value: Any, attr: str | None = None, data: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        """Refuse ``null`` for a required file."""
        if value is None and self.required:
            raise ValidationError([INVALID])
        return super().deserialize(value, attr, data, **options)

    def read(self, value: Any) -> Any:
        if isinstance(value, str | int | float | bool | list | dict):
            raise ValueError(value)
        return value


class Picture(Upload):
    """A file part with a picture; blank removes the picture that is there."""

    def read(self, value: Any) -> Any:
        return value if value == "" else super().read(value)


class OwnAddress(String):
    """An address in a response: a path of this server is made absolute."""

    def _serialize(self, value: str | None, attr: str | None, obj: Any, **options: Any) -> str | None:
        return urls.absolute_or_none(value)


def whole_number(text: str) -> int | None:
    """Parse decimal digits, however many; ``None`` for every other text.

    A number that is too large for the database becomes the largest it can store, which no row has.
    """
    if not text.isascii() or not text.isdigit():
        return None
    return min(int(text.lstrip("0")[:MAX_DIGITS] or "0"), LARGEST_INTEGER)


def read_moment(value: Any) -> dt.datetime:
    """Parse a date or timestamp leniently, as GitLab does (``2016-12-1`` is a date); raise ``ValueError``."""
    try:
        return _parse(value).astimezone(dt.UTC)
    except OverflowError as error:  # the first or last hours of the calendar in another time zone
        raise ValueError(value) from error


def parse_date(text: str, default: dt.datetime | None = None) -> dt.datetime:
    """Parse a timestamp in any notation; ``default`` fills missing parts; without an offset it is UTC.

    Raises:
        ValueError: the text is not a timestamp.

    """
    try:
        return dates.parse(text, default=default, tzinfos=_zone)
    except (OverflowError, TypeError) as error:
        raise ValueError(text) from error


def _parse(value: Any) -> dt.datetime:
    if not isinstance(value, str) or not _DIGIT.search(value) or len(value) > 64:
        raise ValueError(value)
    read = parse_date(value, dt.datetime(clock.today().year, 1, 1, tzinfo=dt.UTC))
    if (read.month, read.day) == (1, 1) and parse_date(value, _PLACEHOLDER_DAY).date() == _PLACEHOLDER_DAY.date():
        raise ValueError(value)  # a time without a date
    return read


def _zone(_name: str | None, offset: int | None) -> dt.tzinfo:
    # names of time zones are ignored: their meaning would depend on the server's own zone
    return dt.timezone(dt.timedelta(seconds=offset or 0))


class Anything(marshmallow_fields.Raw):
    """A value of any type in a response."""


class Moment(marshmallow_fields.DateTime):
    """A timestamp in a response."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_none=True, **options)

    def _serialize(self, value: dt.datetime | None, attr: str | None, obj: Any, **options: Any) -> str | None:
        return None if value is None else clock.isoformat(value)


class Day(marshmallow_fields.Date):
    """A date in a response."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_none=True, **options)


class Computed(marshmallow_fields.Field[Any]):
    """A value computed from the whole object by a function; ``type`` is its type in the OpenAPI document."""

    def __init__(self, function: Callable[[Any], Any], type: str | None = "string", **options: Any) -> None:
        self.function = function
        metadata = dict(options.pop("metadata", None) or {})
        if type is not None:
            metadata.setdefault("type", type)
        super().__init__(dump_only=True, **{"allow_none": True, "metadata": metadata, **options})

    def serialize(self, attr: str, obj: Any, accessor: Any = None, **options: Any) -> Any:
        """Call the function, whether or not the object has an attribute of that name."""
        return self.function(obj)


class ConditionalField(Computed):
    """A computed value whose key is left out unless a condition holds."""

    def __init__(self, condition: Callable[[Any], bool], function: Callable[[Any], Any], **options: Any) -> None:
        self.condition = condition
        super().__init__(function, **options)

    def serialize(self, attr: str, obj: Any, accessor: Any = None, **options: Any) -> Any:
        """Return ``missing``, which leaves the key out, if the condition does not hold."""
        return self.function(obj) if self.condition(obj) else missing


class Constant(Computed):
    """A field of GitLab that has only one value here."""

    def __init__(self, value: Any, **options: Any) -> None:
        kinds = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
        super().__init__(lambda _: value, type=kinds.get(type(value)), allow_none=value is None, **options)
