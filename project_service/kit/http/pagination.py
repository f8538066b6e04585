"""Lists, cut into pages, counted and linked: common reference, section 11.

There is one ``paged``; a view hands over an ordered statement and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

from flask import request
from sqlalchemy import ColumnElement, Select, bindparam, func, literal_column, select

from project_service.kit.db import large_texts
from project_service.kit.db.base import Key
from project_service.kit.db.session import db
from project_service.kit.http import fields, urls
from project_service.kit.http.parameters import Repeated, parameters
from project_service.kit.http.schemas import Schema

DEFAULT_SIZE = 20
LARGEST_SIZE = 100
MAX_COUNTED_ROWS = 10_000
HEADERS = {
    "X-Total": "How many rows there are; left out above 10,000.",
    "X-Total-Pages": "How many pages there are, at least 1; left out above 10,000 rows.",
    "X-Per-Page": "Rows of a page.",
    "X-Page": "This page.",
    "X-Next-Page": "The next page; empty on the last.",
    "X-Prev-Page": "The page before; empty on the first.",
    "Link": "The addresses of the pages before and after, of the first and of the last.",
}
UNSHOWN = frozenset({"private_token", "access_token"})


class PageNumber(fields.Integer):
    """A whole number of any length: what is too large for a database is as far beyond the end as the largest."""

    def read(self, value: Any) -> int:
        if isinstance(value, str) and value.isascii() and value.lstrip("+-").isdigit():
            value = max(min(int(value[:40]), fields.LARGEST_INTEGER), -fields.LARGEST_INTEGER)
        return super().read(value)


class PagingSchema(Schema):
    """Which page of a list."""

    page = PageNumber(default=1, metadata={"description": "Which page, from 1."})
    per_page = PageNumber(
        default=DEFAULT_SIZE, forbidden=(0,), metadata={"description": "Rows of a page, at most 100."}
    )


@dataclass(frozen=True, slots=True)
class Paging:
    """A page as asked for, and what links to other pages repeat.

    ``size`` is what ``asked_size`` is capped to. ``loaded`` are the validated parameters of the request; ``path_names``
    is what links call the parameters of the path.
    """

    number: int
    size: int
    asked_size: int
    loaded: Mapping[str, Any] = field(default_factory=dict, compare=False)
    path_names: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, loaded: Mapping[str, Any], path_names: Mapping[str, str]) -> Paging:
        """Read the loaded parameters: below 1 is the first page, below 0 the default size."""
        asked = loaded["per_page"] if loaded["per_page"] > 0 else DEFAULT_SIZE
        largest_page = fields.LARGEST_INTEGER // LARGEST_SIZE
        number = min(max(loaded["page"], 1), largest_page)
        return cls(number, min(asked, LARGEST_SIZE), asked, dict(loaded), path_names)

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.size

    def address(self, changes: Mapping[str, Any]) -> str:
        """Return the address of the request with all its effective parameters, keys in order, some of them changed."""
        effective = {**self._parameters(), **changes}
        query = "&".join(_query(effective, sorted(effective.keys() - UNSHOWN)))
        return f"{urls.base_url()}{urls.raw_path(_target())}?{query}"

    def around_number(self) -> tuple[str, str]:
        """Return the text before and after the page number in the URLs of all pages of the list."""
        effective = self._parameters() | {"per_page": self.asked_size}
        names = sorted(effective.keys() - UNSHOWN - {"page"})
        before = _query(effective, [name for name in names if name < "page"])
        behind = _query(effective, [name for name in names if name > "page"])
        start = f"{urls.base_url()}{urls.raw_path(_target())}?{'&'.join([*before, 'page='])}"
        return start, "&".join(["", *behind])

    def _parameters(self) -> dict[str, Any]:
        loaded = {name: value for name, value in self.loaded.items() if value is not None}
        of_path = {self.path_names.get(name, name): value for name, value in (request.view_args or {}).items()}
        return {**loaded, **parameters(), **of_path}


@dataclass(frozen=True, slots=True)
class Keyset:
    """A list that is followed from row to row by its key, without totals (common reference, section 11.4)."""

    statement: Select[Any]
    key: Any
    descending: bool


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page that was read already, with its headers."""

    rows: list[Any]
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class ListedRows:
    """A list that is in memory."""

    items: Sequence[Any]

    @property
    def total(self) -> int:
        """The number of rows."""
        return len(self.items)

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the rows."""
        return list(self.items[offset : offset + limit])


class Listing(Protocol):
    """A list that is read and counted by other means than one statement."""

    @property
    def total(self) -> int:
        """The number of rows."""

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the rows."""


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The rows that an ordered statement selects: its first column or entity."""

    statement: Select[Any]

    @property
    def total(self) -> int:
        """The number of rows, counted up to one more than ``MAX_COUNTED_ROWS``."""
        return db.session.scalar(counted(self.statement)) or 0

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the rows; long texts are loaded when they are read."""
        return large_texts.load(self.statement.limit(limit).offset(offset))


@dataclass(frozen=True, slots=True)
class OrderedRows(SelectedRows):
    """The same, counted in the order of the list.

    PostgreSQL then reads the index of the order and stops, where it would join all rows to count the first ones.
    """

    @property
    def total(self) -> int:
        """The number of rows, counted up to one more than ``MAX_COUNTED_ROWS``."""
        return db.session.scalar(counted(self.statement, in_order=True)) or 0


@dataclass(frozen=True, slots=True)
class ShortenedRows(SelectedRows):
    """The same for pages: with the beginnings of long texts."""

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the rows."""
        return large_texts.load(self.statement.limit(limit).offset(offset), shorten=True)


class ColumnList:
    """A list of columns, ordered and with bind parameters, whose statements are built once, when a module is loaded."""

    def __init__(self, statement: Select[Any]) -> None:
        limit, offset = bindparam("row_limit", type_=Key), bindparam("row_offset", type_=Key)
        self.page = statement.limit(limit).offset(offset)
        self.count = counted(statement)

    def of(self, **parameters: Any) -> SelectedColumns:
        """Return the list for some values of its parameters."""
        return SelectedColumns(self, parameters)


@dataclass(frozen=True, slots=True)
class SelectedColumns:
    """The rows of a ``ColumnList``: tuples with the columns as attributes."""

    columns: ColumnList
    parameters: Mapping[str, Any]

    @property
    def total(self) -> int:
        """The number of rows, counted up to one more than ``MAX_COUNTED_ROWS``."""
        return db.session.scalar(self.columns.count, self.parameters) or 0

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the rows."""
        part = {"row_limit": limit, "row_offset": offset}
        return list(db.session.execute(self.columns.page, {**self.parameters, **part}))


def counted(statement: Select[Any], *, in_order: bool = False) -> Select[int]:
    """Return the statement that counts the rows of another, up to one more than ``MAX_COUNTED_ROWS``."""
    constant: ColumnElement[int] = literal_column("1")
    rows = statement if in_order else statement.order_by(None)
    counted_rows: Select[Any] = rows.with_only_columns(constant, maintain_column_froms=True)
    return select(func.count()).select_from(counted_rows.limit(MAX_COUNTED_ROWS + 1).subquery())


def listing_of(rows: Select[Any] | Listing) -> Listing:
    """Return the list that a statement describes."""
    return SelectedRows(rows) if isinstance(rows, Select) else rows


def cut(listed: Select[Any] | Keyset | Listing | PreparedPage, paging: Paging) -> tuple[list[Any], dict[str, str]]:
    """The rows of the page, and the headers that describe the whole list."""
    if isinstance(listed, PreparedPage):
        return listed.rows, listed.headers
    if isinstance(listed, Keyset):
        return _cut_keyset(listed, paging)
    rows, total, more = _cut_rows(listing_of(listed), paging.number, paging.size)
    return rows, headers(paging, total, more=more)


def _cut_rows(listing: Listing, number: int, size: int) -> tuple[list[Any], int, bool]:
    """Return the rows of a page, how many there are in all, and whether there are more behind the page."""
    offset = (number - 1) * size
    rows = listing.rows(offset, size + 1)
    more = len(rows) > size
    is_last = not more and (bool(rows) or number == 1)
    return rows[:size], offset + len(rows) if is_last else listing.total, more


def _cut_keyset(keyset: Keyset, paging: Paging) -> tuple[list[Any], dict[str, str]]:
    rows = list(db.session.scalars(keyset.statement.limit(paging.size)))
    if not rows:
        return rows, {}
    name = "id_before" if keyset.descending else "id_after"
    link = f'<{paging.address({name: getattr(rows[-1], keyset.key.key)})}>; rel="next"'
    return rows, {"Link": link, "Links": link}


def headers(paging: Paging, total: int, *, more: bool) -> dict[str, str]:
    """``X-*`` and ``Link``; totals are left out above ``MAX_COUNTED_ROWS`` rows (common reference, section 11.3)."""
    pages = max(1, -(-total // paging.size))
    following, before = _neighbours(paging.number, pages, total, more=more)
    is_counted = total <= MAX_COUNTED_ROWS
    links = [("prev", before), ("next", following), ("first", 1), ("last", pages if is_counted else None)]
    start, end = paging.around_number()
    answer = {
        "X-Per-Page": str(paging.size),
        "X-Page": str(paging.number),
        "X-Next-Page": str(following or ""),
        "X-Prev-Page": str(before or ""),
        "Link": ", ".join(f'<{start}{number}{end}>; rel="{name}"' for name, number in links if number),
    }
    if is_counted:
        answer |= {"X-Total": str(total), "X-Total-Pages": str(pages)}
    return answer


def _neighbours(number: int, pages: int, total: int, *, more: bool) -> tuple[int | None, int | None]:
    """Return the numbers of the pages after and before one."""
    has_before = 1 < number <= pages or (number > 1 and total > MAX_COUNTED_ROWS)
    return number + 1 if more else None, number - 1 if has_before else None


def uncounted_headers(paging: Paging, *, more: bool) -> dict[str, str]:
    """The headers of a list whose rows are not counted."""
    return headers(paging, MAX_COUNTED_ROWS + 1, more=more)


def _query(values: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    pairs = (pair for name in names for pair in flatten(name, values[name]))
    return [f"{_quoted(name)}={_quoted(value)}" for name, value in pairs]


def _quoted(text: str) -> str:
    return text if text.isascii() and text.isalnum() else quote(text, safe="")


def flatten(name: str, value: Any) -> list[tuple[str, str]]:
    """Bracketed pairs of one parameter, or as many as it was repeated."""
    if isinstance(value, Repeated):
        return [(name, text) for text in value.every]
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in flatten(f"{name}[{key}]", inner)]
    if isinstance(value, list):
        return [pair for inner in value for pair in flatten(f"{name}[]", inner)]
    if isinstance(value, bool):
        return [(name, "true" if value else "false")]
    return [] if value is None else [(name, str(value))]


def _target() -> str:
    target: str = request.environ.get("RAW_URI") or request.environ.get("REQUEST_URI") or quote(request.path)
    return target


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page of a list as people see it."""

    rows: list[Any]
    number: int
    total: int
    counted: bool
    following: int | None
    before: int | None
    size: int = DEFAULT_SIZE

    @property
    def range_text(self) -> str:
        """Which rows these are, such as "41-60 of 192" with a dash; without the total where rows are not counted."""
        first = (self.number - 1) * self.size + 1
        last = first + len(self.rows) - 1
        rows = f"{first:,}\N{EN DASH}{last:,}"
        if self.counted:
            return f"{rows} of {self.total:,}"
        return f"{rows} of more than {self.total:,}" if self.total else rows


def read_page(statement: Select[Any] | Listing, number: str | None, size: int = DEFAULT_SIZE) -> ShownPage:
    """Cut a list for a page of HTML; nonsense in the address is the first page, a number past the end the last one.

    Long texts are shortened.
    """
    at = min(fields.whole_number(number or "") or 1, 1_000_000)
    listing = ShortenedRows(statement) if isinstance(statement, Select) else statement
    rows, total, more = _cut_rows(listing, at, size)
    if not rows and at > 1:
        at = max(1, -(-listing.total // size))
        rows, total, more = _cut_rows(listing, at, size)
    following, before = _neighbours(at, max(1, -(-total // size)), total, more=more)
    is_counted = total <= MAX_COUNTED_ROWS
    return ShownPage(rows, at, total if is_counted else MAX_COUNTED_ROWS, is_counted, following, before, size)
