"""Schemas as functions: what ``dump`` does for each field of each row, written out once per schema.

marshmallow asks every field of every row how to get at its value, whether there is one, and how to show it. All of this
is known when the schema is: ``compiled`` writes a function that only does what is left. It gives exactly what
``Schema.dump`` gives, and leaves to marshmallow what it does not know: fields of other kinds, fields with a
``dump_default``, rows that are read by key.

The same thing inside many rows, as the author of all of them, is dumped once: ``seen`` holds for one dump what has been
shown, and the things themselves, so that none of them makes room for another in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import marshmallow
from marshmallow import fields as known
from marshmallow import missing
from marshmallow.utils import ensure_text_type, get_value

from project_service.kit import clock
from project_service.kit.http.fields import Computed, Moment, When

Seen = dict[tuple[type, int], tuple[Any, Any]]
Dumper = Callable[[Any, Seen], dict[str, Any]]


@runtime_checkable
class Compiled(Protocol):
    """A schema that dumps through the function that was made of it."""

    def shown_once(self, thing: Any, seen: Seen) -> Any:
        """One thing, as it was shown before in the same dump if it was."""


def compiled(schema: marshmallow.Schema) -> Dumper:
    """The function that dumps one row of attributes, in a dump in which others have been seen."""
    names: dict[str, Any] = {"missing": missing, "nothing": {}, "get_value": get_value, "access": schema.get_attribute}
    # what stands on a row itself is taken from there: to ask a mapped attribute for it takes several times as long
    lines = ["def dump(o, seen):", " d, own = {}, getattr(o, '__dict__', nothing)"]
    for number, (attribute, field) in enumerate(schema.dump_fields.items()):
        names[f"f{number}"] = field
        key = attribute if field.data_key is None else field.data_key
        lines += [f" {line}" for line in _lines(field, attribute, key, number, names)]
    exec("\n".join([*lines, " return d"]), names)  # noqa: S102  # the text is made of the schema's own names, quoted
    made: Dumper = names["dump"]
    return made


def _lines(field: Any, attribute: str, key: str, number: int, names: dict[str, Any]) -> Iterator[str]:
    """The statements that put one field into ``d``."""
    kind = type(field)
    store = f"d[{key!r}] = "
    if kind._serialize is Computed._serialize and kind.serialize in (Computed.serialize, When.serialize):
        names[f"g{number}"] = field.function
        if kind.serialize is When.serialize:
            names[f"c{number}"] = field.condition
            yield f"v = g{number}(o) if c{number}(o) else missing"
        else:
            yield f"v = g{number}(o)"
        yield f"if v is not missing: {store}v"
        return
    shown = _shown(field, number, names)
    plain = kind.serialize is known.Field.serialize and field.dump_default is missing
    inside = getattr(field, "keep_none", None)
    if shown is None or not plain or (kind.get_value is not known.Field.get_value and inside is None):
        yield f"v = f{number}.serialize({attribute!r}, o, accessor=access)"
        yield f"if v is not missing: {store}v"
        return
    source = attribute if field.attribute is None else field.attribute
    first, *further = source.split(".")
    yield f"v = own[{first!r}] if {first!r} in own else getattr(o, {first!r}, missing)"
    for part in further:
        yield f"v = get_value(v, {part!r}, missing) if hasattr(v, '__getitem__') else getattr(v, {part!r}, missing)"
    yield "if v is not missing:"
    if inside is False:
        yield f" if v is not None: {store}{shown}"
    else:
        yield f" {store}None if v is None else {shown}"


def _shown(field: Any, number: int, names: dict[str, Any]) -> str | None:
    """The expression for a value ``v`` that is not ``None``; ``None`` for kinds of fields that are not known."""
    show = type(field)._serialize
    if show is known.Field._serialize:
        return "v"
    if show is known.String._serialize:
        names["text"] = ensure_text_type
        return "v if type(v) is str else text(v)"
    if show is known.Integer._serialize and not field.as_string:
        return "v if type(v) is int else int(v)"
    if show is known.Nested._serialize:
        return _nested(field, number, names)
    if show is known.List._serialize:
        return _listed(field, number, names)
    if show is Moment._serialize:
        names["moment"] = clock.isoformat
        return "moment(v)"
    return f"f{number}._serialize(v, None, o)" if show is known.Date._serialize else None


def _listed(field: Any, number: int, names: dict[str, Any]) -> str | None:
    inner = type(field.inner)._serialize
    if inner is known.String._serialize:
        names["text"] = ensure_text_type
        return "[x if type(x) is str else None if x is None else text(x) for x in v]"
    if inner is known.Nested._serialize:
        shown = _nested(field.inner, number, names, "x")
        return f"[None if x is None else {shown} for x in v]"
    return None


def _nested(field: Any, number: int, names: dict[str, Any], name: str = "v") -> str:
    schema = field.schema
    many = schema.many or field.many
    names[f"n{number}"] = schema
    if many or not isinstance(schema, Compiled):
        return f"n{number}.dump({name}, many={many})"
    return f"n{number}.shown_once({name}, seen)"
