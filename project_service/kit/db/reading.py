"""Rows that are only read: what a list shows, as columns, without the machinery that follows every change of an entity.

``rows`` carries out a ``select`` of one model. What it gives has the shape of the model, with its properties and
methods, but belongs to no session: it cannot be changed or added, and whatever was not read raises instead of being
fetched row by row. ``along`` names the relationships that are read with the rows; each kind of row they lead to takes
one statement for the whole page, and rows that the session has already are taken from there.

To put a statement together, to cut it into a page and to find out that it has been compiled before costs several times
what the database needs for it. Statements that differ only in their values have the same *shape*, of which all this is
kept. A function under ``made_once`` puts its statement together only once, for lists that are asked for all the time.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import BigInteger, Column, Select, bindparam, func, inspect, select
from sqlalchemy.orm import Mapper, RelationshipDirection, RelationshipProperty
from sqlalchemy.orm.attributes import QueryableAttribute
from sqlalchemy.orm.exc import UnmappedInstanceError

from project_service.kit.db.bulk import among, numbers
from project_service.kit.db.session import db
from project_service.kit.db.statements import Ready

COUNTED = 10_000
SHAPES = 128  # each takes some 80 kB
FORMS = 32  # of a statement that is made once, the same
STATE = "_sa_instance_state"  # which only what belongs to a session has
Selected = TypeVar("Selected", bound=Select[*tuple[Any, ...]])
Path = QueryableAttribute[Any] | tuple[QueryableAttribute[Any], ...]
Tree = dict["Link", "Tree"]
Pool = dict[Mapper[Any], dict[int, Any]]


@dataclass(frozen=True, slots=True)
class Given:
    """A statement that was made once, with the values that it has this time."""

    shape: Shape
    values: dict[str, Any]


Statement = Select[*tuple[Any, ...]] | Given


def made_once(make: Callable[..., Select[*tuple[Any, ...]]]) -> Callable[..., Given]:
    """Keep the statement that ``make`` returns, whose values are ``bindparam``; calls give it their values by name.

    What is given by position goes to ``make``: it tells the forms apart that a statement may have.
    """

    @functools.lru_cache(maxsize=FORMS)
    def shape_of(_dialect: str, *form: Hashable) -> Shape:
        return Shape(make(*form), ())

    @functools.wraps(make)
    def give(*form: Hashable, **values: Any) -> Given:
        return Given(shape_of(db.engine.dialect.name, *form), values)

    return give


def along(statement: Selected, *paths: Path) -> Selected:
    """Read these relationships with the rows: ``Issue.author``, or one behind the other as a tuple."""
    return statement.execution_options(along=_paths(statement) + paths)


def rows(statement: Statement, *, limit: int | None = None, offset: int = 0) -> list[Any]:
    """The rows of a statement, or some of them; columns it has beside the model stand on each row under their names.

    A statement without a model gives its only column, or tuples.
    """
    shape, values = _shape_of(statement)
    db.session.flush()  # what is not there yet would not be seen
    if limit is None:
        found = shape.whole.send(values)
    else:
        found = shape.page.send(values | {"page_limit": limit, "page_offset": offset})
    if shape.kind is None:
        return [row[0] for row in found] if shape.is_single else list(found)
    made = shape.kind.made(found)
    add_related(made, shape.related)
    return made


def count(statement: Statement) -> int:
    """How many rows a statement has, counted up to one more than ``COUNTED``."""
    shape, values = _shape_of(statement)
    return total_of(shape.counted, values)


@dataclass(frozen=True, slots=True)
class Listed:
    """The rows of a statement, as a list that knows how long it is and reads any part of itself.

    ``some`` may name part of them that is counted sooner: if these are too many already, no others are counted.
    """

    statement: Statement
    some: Statement | None = None

    @property
    def total(self) -> int:
        """How many there are, counted up to one more than ``COUNTED``."""
        if self.some is not None and (many := count(self.some)) > COUNTED:
            return many
        return count(self.statement)

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Some of them."""
        return rows(self.statement, limit=limit, offset=offset)


def total_of(counted: Ready, values: Mapping[str, Any]) -> int:
    """Return the number of rows a statement counts."""
    db.session.flush()
    found: int = counted.send(values).scalar_one()
    return found


def by_id(model: type[Any], ids: Iterable[int], *paths: Path) -> dict[int, Any]:
    """The rows of a model that have these ids, each under its own, with whatever the paths lead to."""
    found: dict[int, Any] = {}
    mapper = inspect(model).mapper
    _fetch(mapper, set(ids), found)
    add_related(_without_own(found.values()), _tree_of(mapper, paths, db.engine.dialect.name), {mapper: found})
    return found


def fetch(found: Sequence[Any], *paths: Path) -> None:
    """Read relationships of rows of one model that were read without them."""
    if missing := _without_own(found):
        add_related(missing, _tree_of(inspect(model_of(missing[0])).mapper, paths, db.engine.dialect.name))


def remember(*found: Any) -> None:
    """Have rows that were read taken for what leads to them, for as long as the current unit of work goes on."""
    _ = found


def model_of(row: Any) -> type[Any]:
    """The model of a row, whether it belongs to a session or was only read."""
    found: type[Any] = type(row).__mapper__.class_
    return found


class Unread:
    """What a row says of a column or a relationship that was not read; one that was stands before it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, row: Any, model: type[Any]) -> Any:
        """Raise for a row; the class says what the model does."""
        if row is None:
            return getattr(model.__mapper__.class_, self.name)
        raise UnmappedInstanceError(row, f"{self.name} of {model.__name__} was not read")


@functools.cache
def read_only(mapper: Mapper[Any]) -> type[Any]:
    """The class of the rows of a model that are only read.

    It is the model, of which it has all methods and properties, but its attributes are plain: to ask one that is mapped
    takes fifteen times as long, since the library watches each of them.
    """
    model, mapped = mapper.class_, frozenset(mapper.attrs.keys())

    def refuse(row: Any, name: str, value: Any) -> None:
        if name in mapped:
            raise AttributeError(f"{name} of {model.__name__} was only read and cannot be changed")
        object.__setattr__(row, name, value)

    own = {"__abstract__": True, "__doc__": model.__doc__, "__module__": model.__module__, "__setattr__": refuse}
    return type(model.__name__, (model,), {**own, **{name: Unread(name) for name in mapped}})


class Kind:
    """What it takes to make rows of a model out of columns, and further columns if there are any."""

    def __init__(self, entity: Any, *also: Any) -> None:
        mapper: Mapper[Any] = inspect(entity).mapper
        read = [one.key for one in mapper.column_attrs if not one.deferred and isinstance(one.columns[0], Column)]
        self.mapper = mapper
        self.columns = [*(getattr(entity, name) for name in read), *also]
        self.names = (*read, *(column.key for column in also))
        self.width = len(self.names)
        self.cls = read_only(mapper)
        self.classes: Mapping[Any, type[Any]] | None = None
        if mapper.polymorphic_on is not None:
            self.classes = {value: read_only(one) for value, one in mapper.polymorphic_map.items()}
            self.told_by = self.names.index(mapper.get_property_by_column(mapper.polymorphic_on).key)

    def made(self, found: Iterable[Sequence[Any]]) -> list[Any]:
        """The rows; ``object.__new__`` leaves out what would connect them with a session."""
        new, put, names, classes, cls = object.__new__, object.__setattr__, self.names, self.classes, self.cls
        made = []
        for values in found:
            row = new(cls if classes is None else classes[values[self.told_by]])
            put(row, "__dict__", dict(zip(names, values, strict=True)))
            made.append(row)
        return made


class Shape:
    """What statements have in common that differ only in their values."""

    def __init__(self, statement: Select[*tuple[Any, ...]], binds: Sequence[Any]) -> None:
        self.names = [bind.key for bind in binds]
        first, *others = statement.column_descriptions
        self.is_single = not others
        self.kind: Kind | None = None
        self.related: Tree = {}
        whole = statement
        entity = first.get("entity")
        if entity is not None and first["expr"] is entity:
            self.kind = Kind(entity, *(other["expr"] for other in others))
            self.related = _tree(self.kind.mapper, _paths(statement))
            whole = statement.with_only_columns(*self.kind.columns, maintain_column_froms=True)
        limit, offset = bindparam("page_limit", type_=BigInteger), bindparam("page_offset", type_=BigInteger)
        self.whole, self.page = Ready(whole), Ready(whole.limit(limit).offset(offset))
        capped = statement.order_by(None).with_only_columns(1, maintain_column_froms=True).limit(COUNTED + 1)
        self.counted = Ready(select(func.count()).select_from(capped.subquery()))


class Link:
    """How rows of one model lead to rows of another, as a relationship says."""

    def __init__(self, relationship: RelationshipProperty[Any]) -> None:
        (local, remote), *further = relationship.local_remote_pairs or []
        self.name = relationship.key
        self.target: Mapper[Any] = relationship.mapper
        self.local = relationship.parent.get_property_by_column(local).key
        self.leads_to_one = relationship.direction is RelationshipDirection.MANYTOONE
        # whether the rows it leads to have to be looked up by their ids
        self.by_id = relationship.direction is not RelationshipDirection.ONETOMANY
        self.kind = Kind(self.target.class_)
        columns = [remote, further[0][1]] if further else [remote, *self.kind.columns]
        statement = select(*columns).where(among(remote, "ids")).order_by(*(relationship.order_by or ()))
        self.statement = Ready(statement)

    def values(self, found: Iterable[Any]) -> set[int]:
        """What leads from rows: the ids of the target, if each leads to one."""
        local = self.local
        return {value for row in found if (value := row.__dict__[local]) is not None}

    def ends(self, found: Iterable[Any]) -> dict[int, list[Any]]:
        """Where rows lead to, by their value that leads there: ids of the target, or its rows if these are children."""
        sent = _by_ids(self.statement, self.values(found))
        reached = [row[1] for row in sent] if self.by_id else self.kind.made(row[1:] for row in sent)
        ends: dict[int, list[Any]] = {}
        for (value, *_), end in zip(sent, reached, strict=True):
            ends.setdefault(value, []).append(end)
        return ends

    def put(self, found: Iterable[Any], ends: Mapping[int, list[Any]], known: Mapping[int, Any]) -> None:
        """Set on rows what they lead to."""
        name, local = self.name, self.local
        for row in found:
            own = row.__dict__
            if self.leads_to_one:
                own[name] = known.get(own[local])
            else:
                there = ends.get(own[local], [])
                own[name] = [known[number] for number in there if number in known] if self.by_id else there

    def reached(self, found: Iterable[Any]) -> list[Any]:
        """What rows lead to, each only once."""
        there = (row.__dict__[self.name] for row in found)
        each = (one for one in there if one is not None) if self.leads_to_one else chain.from_iterable(there)
        return list({id(one): one for one in each}.values())


def add_related(found: Sequence[Any], tree: Tree, pool: Pool | None = None) -> None:
    """Set related rows on rows that were read: a statement for each link to many, and one for each kind of row."""
    if not found or not tree:
        return
    pool = {} if pool is None else pool
    ends: dict[Link, dict[int, list[Any]]] = {link: {} if link.leads_to_one else link.ends(found) for link in tree}
    wanted: dict[Mapper[Any], set[int]] = {}
    for link in tree:
        if link.by_id:
            ids = link.values(found) if link.leads_to_one else chain.from_iterable(ends[link].values())
            wanted.setdefault(link.target, set()).update(ids)
    for mapper, missing in wanted.items():
        _fetch(mapper, missing, pool.setdefault(mapper, {}))
    for link, behind in tree.items():
        link.put(found, ends[link], pool.get(link.target, {}))
        if behind:
            add_related(_without_own(link.reached(found)), behind, pool)


def _without_own(found: Iterable[Any]) -> list[Any]:
    """The rows that do not belong to the session, which find by themselves what they lead to."""
    return [row for row in found if STATE not in row.__dict__]


@functools.lru_cache(maxsize=SHAPES)
def _tree_of(mapper: Mapper[Any], paths: tuple[Path, ...], _dialect: str) -> Tree:
    return _tree(mapper, paths)


def _tree(mapper: Mapper[Any], paths: Iterable[Path]) -> Tree:
    """Paths that begin at a model, as links; whatever the model always brings along is among them."""
    behind: dict[RelationshipProperty[Any], list[Path]] = {
        one: [] for one in mapper.relationships if one.lazy == "joined"
    }
    for path in paths:
        head, *rest = path if isinstance(path, tuple) else (path,)
        behind.setdefault(_relationship(head), []).extend([tuple(rest)] if rest else [])
    return {_link(one, db.engine.dialect.name): _tree(one.mapper, further) for one, further in behind.items()}


def _relationship(attribute: QueryableAttribute[Any]) -> RelationshipProperty[Any]:
    if not isinstance(attribute.property, RelationshipProperty):
        raise TypeError(f"{attribute} leads to no other rows")
    return attribute.property


def _fetch(mapper: Mapper[Any], ids: set[int], known: dict[int, Any]) -> None:
    """Add rows of a model to those that are known, from the session or the unit of work if it has them."""
    for number in ids - known.keys():
        there = db.session.identity_map.get(mapper.identity_key_from_primary_key((number,)))
        if there is not None:
            known[number] = there
    if missing := ids - known.keys():
        kind, statement = _lookup(mapper, db.engine.dialect.name)
        known.update((row.id, row) for row in kind.made(_by_ids(statement, missing)))


def _by_ids(statement: Ready, ids: Iterable[int]) -> Sequence[Any]:
    return statement.send({"ids": numbers(ids)})


@functools.cache
def _lookup(mapper: Mapper[Any], _dialect: str) -> tuple[Kind, Ready]:
    kind = Kind(mapper.class_)
    return kind, Ready(select(*kind.columns).where(among(mapper.primary_key[0], "ids")))


@functools.cache
def _link(relationship: RelationshipProperty[Any], _dialect: str) -> Link:
    return Link(relationship)


_shapes: OrderedDict[Any, Shape] = OrderedDict()
_lock = threading.Lock()


def _shape_of(statement: Statement) -> tuple[Shape, dict[str, Any]]:
    """The shape of a statement, and its values under the names they have there."""
    if isinstance(statement, Given):
        return statement.shape, statement.values
    made = statement._generate_cache_key()
    if made is None:
        raise TypeError(f"no shape can be told of {statement}")
    key = made.key, _paths(statement), db.engine.dialect.name
    with _lock:
        shape = _shapes.get(key)
        if shape is None:
            shape = _shapes[key] = Shape(statement, made.bindparams)
            if len(_shapes) > SHAPES:
                _shapes.popitem(last=False)
        else:
            _shapes.move_to_end(key)
    return shape, {name: bind.effective_value for name, bind in zip(shape.names, made.bindparams, strict=True)}


def _paths(statement: Select[*tuple[Any, ...]]) -> tuple[Path, ...]:
    found: tuple[Path, ...] = statement.get_execution_options().get("along", ())
    return found
