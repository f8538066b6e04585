"""Query plans of both databases: full table scans and sorts.

What counts is whether an index *can* serve. PostgreSQL is therefore told to avoid whatever works without one, which it
prefers for few rows; what it does all the same, it does for want of an index. SQLite knows no statistics here, as in
service, and plans by its indexes alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from project_service.kit.db.session import db
from tests.support import many_rows

READ, WALKED, SORTED = "read from end to end", "walked through for a page", "sorted for a page"
WITHOUT_INDEX = ("seqscan", "hashjoin", "mergejoin", "material", "memoize")
WITHOUT_CONDITION = (*WITHOUT_INDEX, "indexscan", "indexonlyscan")  # bitmaps are left, which always have one
LARGEST_PAGE = 101
PAGE = re.compile(r"LIMIT %\((\w+)\)s(?:::\w+)? OFFSET")
NUMBER = r"(\(SELECT [^()]*\)|\S+)"
CUT = re.compile(rf"\sLIMIT\s+{NUMBER}(\s+OFFSET\s+{NUMBER})?\s*$")
NAMED = re.compile(r"\b(\w+) AS (\w+)")
LOOP = re.compile(r"(?:SCAN|SEARCH) (\w+)")
NOTHING_ASKED = re.compile(r"\sWHERE\s+0 = 1\s+(ORDER BY|LIMIT)")  # SQLite evaluates it once, before it reads a row
END_TO_END = re.compile(r"SCAN \w+(?! VIRTUAL)|SEARCH \w+ USING AUTOMATIC")
SORTING = re.compile(r"USE TEMP B-TREE FOR (ORDER|GROUP|DISTINCT)")
# what hands rows on one by one: where a limit stands above, it ends the reading below
STREAMING = {"Nested Loop", "Subquery Scan", "Append", "Merge Append", "Result", "Incremental Sort", "Unique", "Limit"}


@dataclass(frozen=True, order=True, slots=True)
class Fault:
    """What a plan does to a table, or to what a part of the statement gives."""

    table: str
    what: str


def faults(statement: str, parameters: Any) -> set[Fault]:
    """What a plan does that takes longer the larger the tables are."""
    found = _on_sqlite if db.engine.dialect.name == "sqlite" else _on_postgresql
    tables, grown = set(db.metadata.tables), {table.name for table in many_rows.growing()}
    # what comes of a part of the statement may be read as a whole: how it came about has been looked at
    return {
        fault
        for fault in found(statement, parameters)
        if fault.table in grown or (fault.what is SORTED and fault.table not in tables)
    }


def _on_sqlite(statement: str, parameters: Any) -> Iterator[Fault]:
    if NOTHING_ASKED.search(statement):
        return
    tables = {alias: table for table, alias in NAMED.findall(statement)}
    lines = _explained(["EXPLAIN QUERY PLAN " + statement], parameters)
    details = {number: detail for number, _, _, detail in lines}
    above = {number: parent for number, parent, _, _ in lines}

    def streams(number: int) -> bool:
        """Whether rows are read here as they are wanted: in the first loop of the statement, or of what it hands on."""
        parent = above[number]
        beside = [details[one] for one in details if above[one] == parent]
        first = next(one for one in beside if LOOP.match(one))
        if details[number] != first or any(SORTING.match(one) for one in beside):
            return False
        return parent == 0 or (details[parent].startswith("CO-ROUTINE") and above[parent] == 0)

    for number, detail in details.items():
        if END_TO_END.match(detail):
            name = detail.split()[1]
            yield Fault(tables.get(name, name), WALKED if "LIMIT" in statement and streams(number) else READ)
        if detail == "USE TEMP B-TREE FOR ORDER BY" and above[number] == 0 and CUT.search(statement):
            name = next(found[1] for one in details.values() if (found := LOOP.match(one)))
            yield Fault(tables.get(name, name), SORTED)


def _on_postgresql(statement: str, parameters: Any) -> Iterator[Fault]:
    explain = "EXPLAIN (FORMAT JSON) " + statement
    if limit := PAGE.search(statement):
        parameters = {**parameters, limit[1]: LARGEST_PAGE}

    def plan(*avoided: str) -> dict[str, Any]:
        switches = [f"SET LOCAL enable_{name} = off" for name in avoided]
        switches += [f"SET LOCAL cpu_{kind}_cost = 100" for kind in ("tuple", "index_tuple")]  # what counts is rows
        found: dict[str, Any] = _explained([*switches, explain], parameters)[0][0][0]["Plan"]
        return found

    without = {fault.table for fault in _read(plan(*WITHOUT_CONDITION), cut=False)}
    if without:
        yield from (fault for fault in _read(plan(*WITHOUT_INDEX), cut=False) if fault.table in without)
    if CUT.search(statement):
        yield from _sorted(plan(*WITHOUT_INDEX, "sort"))


def _read(node: dict[str, Any], *, cut: bool) -> Iterator[Fault]:
    kind = node["Node Type"]
    if "Relation Name" in node and not _has_condition(node):
        yield Fault(node["Relation Name"], WALKED if cut else READ)
    for part in node.get("Plans", ()):
        is_inner = part["Parent Relationship"] not in ("Outer", "Subquery", "Member")
        following = kind == "Limit" or (cut and kind in STREAMING)
        yield from _read(part, cut=following and not is_inner)


def _has_condition(node: dict[str, Any]) -> bool:
    """Whether a part of a table is looked up: by an index, or by several that make a bitmap."""
    if node["Node Type"] in ("Bitmap Heap Scan", "BitmapAnd", "BitmapOr"):
        return all(_has_condition(part) for part in node["Plans"] if part["Parent Relationship"] != "SubPlan")
    # of small tables any index will do that has the column: what counts is whether one begins with it
    begin = _beginnings().get(node.get("Index Name", ""), ())
    return any(re.search(rf"(?<![\w.]){re.escape(first)}", node.get("Index Cond", "")) for first in begin)


@functools.cache
def _beginnings() -> dict[str, set[str]]:
    """By the name of each index of PostgreSQL: what the indexes of its table begin with."""
    indexes = "SELECT relname, indrelid, pg_get_indexdef(oid, 1, false) FROM pg_class JOIN pg_index ON oid = indexrelid"
    found = _explained([indexes], ())
    by_table: dict[int, set[str]] = {}
    for _, table, first in found:
        by_table.setdefault(table, set()).add(first.strip('"'))
    return {name: by_table[table] for name, table, _ in found}


def _sorted(node: dict[str, Any]) -> Iterator[Fault]:
    """A sort on the way of the rows up to the page; what is sorted beside it is not the list."""
    while True:
        if node["Node Type"] == "Sort":
            yield from (Fault(name, SORTED) for name in _tables(node)[:1])
        below = [one for one in node.get("Plans", ()) if one["Parent Relationship"] in ("Outer", "Subquery")]
        if not below or node["Node Type"] in ("Aggregate", "Group"):
            return
        node = below[0]


def _tables(node: dict[str, Any]) -> list[str]:
    """The tables that a part of a plan reads, in its order; none where the database sees that nothing is asked for."""
    own = [node["Relation Name"]] if "Relation Name" in node else []
    return own + [name for part in node.get("Plans", ()) for name in _tables(part)]


def _explained(statements: list[str], parameters: Any) -> list[Any]:
    """The rows of the last of some statements, in a transaction that leaves nothing behind."""
    connection = db.engine.raw_connection()
    try:
        cursor = connection.cursor()
        for statement in statements[:-1]:
            cursor.execute(statement)
        cursor.execute(statements[-1], parameters)
        return list(cursor.fetchall())
    finally:
        connection.rollback()
        connection.close()
