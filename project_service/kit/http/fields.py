"""How a parameter becomes a value, and what is said when it cannot.

Coercion follows the reference for common behaviour, sections 3 and 4: numbers and booleans arrive as text from forms
and from several clients, an empty text counts as absent for everything that is not text, and ``null`` takes the
default. Messages are the half sentences that ``schemas.load`` puts the parameter's name in front of.
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

from project_service.kit import clock
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
_NO_DAY = dt.datetime(4, 2, 29, tzinfo=dt.UTC)  # nobody means that one
LARGEST_INTEGER = 2**63 - 1
DIGITS = 20  # one more than it has; Python reads no texts of thousands of digits


class Parameter(marshmallow_fields.Field[Any]):
    """What all fields share: blanks, defaults, and the closed list of values.

    ``allow_blank=False`` refuses an empty text and ``null``; ``choices`` is the closed list; ``default`` is used when
    the parameter is absent, ``null``, or empty and not text. ``in_forms`` is how queries and forms write what is no
    single value, in the words of OpenAPI.
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
        """Read one parameter; the error carries all half sentences that hold."""
        if value is missing:
            if not self.required:
                return self._default()
            raise ValidationError([MISSING] if self.allow_blank else [MISSING, EMPTY])
        if value is None or (value == "" and self.blank_is_absent):
            if not self.allow_blank:
                raise ValidationError([EMPTY])
            default = self._default()
            if default is missing and self.required and self.choices:
                raise ValidationError([NOT_IN_LIST])  # it has to be there, and nothing is not in the list
            return None if default is missing else default
        if value == "" and not self.allow_blank:
            raise ValidationError([EMPTY])
        try:
            read = self.read(value)
        except ValueError as error:
            raise ValidationError([INVALID, NOT_IN_LIST] if self.choices else [INVALID]) from error
        if self.choices and not self._listed(read):
            raise ValidationError([NOT_IN_LIST])
        self._validate(read)
        return read

    def read(self, value: Any) -> Any:
        """Turn what the client sent into the value; ``ValueError`` when it is of another kind."""
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
    """A whole number, also as decimal digits; ``forbidden`` values have a text of their own."""

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
    """True or false in any of the spellings that clients use."""

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
    """A day; a moment is cut to its day, and impossible days are refused."""

    def read(self, value: Any) -> dt.date:
        return _parse(value).date()


class DateTime(Parameter, marshmallow_fields.DateTime):
    """A moment; without a zone it is UTC."""

    def read(self, value: Any) -> dt.datetime:
        return read_moment(value)


class Array(Parameter, marshmallow_fields.List[Any]):
    """Several values, in brackets, repeated, or in one text; texts are split at commas."""

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
        inner: Parameter = self.inner  # type: ignore[assignment]  # the constructor takes nothing else
        # an element that stands for nothing, as [""] from a form, is none
        return [read for item in _split(value) if (read := inner.deserialize(item)) is not None]


def _split(items: list[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, str):
            yield from (part.strip() for part in item.split(",") if part.strip())
        else:
            yield item


class Hash(Parameter, marshmallow_fields.Dict):
    """Named values: an object in JSON, ``name[key]=`` in forms and queries."""

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
        """``null`` is no file either."""
        if value is None and self.required:
            raise ValidationError([INVALID])
        return super().deserialize(value, attr, data, **options)

    def read(self, value: Any) -> Any:
        if isinstance(value, str | int | float | bool | list | dict):
            raise ValueError(value)
        return value


def whole_number(text: str) -> int | None:
    """The number that decimal digits write, however many there are; ``None`` for every other text.

    One that is larger than a database holds is the largest it holds: nothing has that number.
    """
    if not text.isascii() or not text.isdigit():
        return None
    return min(int(text.lstrip("0")[:DIGITS] or "0"), LARGEST_INTEGER)


def read_moment(value: Any) -> dt.datetime:
    """Read a date or a moment leniently, as the real product does (``2016-12-1`` is a day), or ``ValueError``."""
    try:
        return _parse(value).astimezone(dt.UTC)
    except OverflowError as error:  # the first or last hours of the calendar, in a zone far away
        raise ValueError(value) from error


def parse_date(text: str, default: dt.datetime | None = None) -> dt.datetime:
    """Read any writing of a moment, parts of ``default`` for what it leaves out; without an offset it is in UTC.

    ``ValueError`` when it is none.
    """
    try:
        return dates.parse(text, default=default, tzinfos=_zone)
    except (OverflowError, TypeError) as error:
        raise ValueError(text) from error


def _parse(value: Any) -> dt.datetime:
    if not isinstance(value, str) or not _DIGIT.search(value) or len(value) > 64:
        raise ValueError(value)
    read = parse_date(value, dt.datetime(clock.today().year, 1, 1, tzinfo=dt.UTC))
    if (read.month, read.day) == (1, 1) and parse_date(value, _NO_DAY).date() == _NO_DAY.date():
        raise ValueError(value)  # a time, of no day
    return read


def _zone(_name: str | None, offset: int | None) -> dt.tzinfo:
    # names of zones would mean what the server's own zone makes of them
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


class When(Computed):
    """A computed value that is left out, with its key, unless a condition holds."""

    def __init__(self, condition: Callable[[Any], bool], function: Callable[[Any], Any], **options: Any) -> None:
        self.condition = condition
        super().__init__(function, **options)

    def serialize(self, attr: str, obj: Any, accessor: Any = None, **options: Any) -> Any:
        """Leave the key out when the condition does not hold."""
        return self.function(obj) if self.condition(obj) else missing


class Constant(Computed):
    """A field of GitLab that has only one value here."""

    def __init__(self, value: Any, **options: Any) -> None:
        kinds = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
        super().__init__(lambda _: value, type=kinds.get(type(value)), allow_none=value is None, **options)
