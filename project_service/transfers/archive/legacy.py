"""Conversion of archives of the legacy form, one JSON object, to the current form, a file per relation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from project_service.kit import exact_json
from project_service.transfers.archive import layout
from project_service.transfers.archive.contents import (
    BAD_JSON,
    MAX_LEFT_OUT,
    MAX_NAME_LENGTH,
    MAX_RELATIONS,
    TOO_MANY,
    BadArchive,
    Unpacked,
    UnreadRow,
)
from project_service.transfers.archive.json_stream import Elements, _row, members_of, with_long_numbers
from project_service.transfers.archive.reader import MAX_OBJECT_BYTES


def convert_legacy(unpacked: Unpacked) -> None:
    """Write the relations of a legacy archive to files, row by row; does nothing for the current form."""
    if unpacked.legacy is None or unpacked.project is not None:
        return
    path = unpacked.folder / "tree-project.json"
    try:
        attributes = with_long_numbers(_split, unpacked.legacy, unpacked)
    except (UnicodeError, TypeError) as error:
        raise BadArchive(BAD_JSON) from error
    path.write_bytes(exact_json.dumps(attributes))
    unpacked.project = path


def _split(legacy: Path, unpacked: Unpacked, *, long_numbers: bool) -> dict[str, Any]:
    """Write the relations to files; return the other members, which are the attributes of the project."""
    attributes: dict[str, Any] = {}
    size = 0
    for name, value in members_of(legacy, long_numbers=long_numbers):
        read = _read(name, value)
        if isinstance(read, Iterator):
            _write_rows(unpacked, name, read)
        elif isinstance(read, UnreadRow):
            raise BadArchive(BAD_JSON)
        else:
            attributes[name] = read
            size += len(name) + len(exact_json.dumps(read))
        if size > MAX_OBJECT_BYTES:
            raise BadArchive(BAD_JSON)
        if len(unpacked.relations) > MAX_RELATIONS:
            raise BadArchive(TOO_MANY)
    return attributes


def _read(name: str, value: Any) -> Any:
    """Return an iterator of the rows of a relation, or the value of an attribute of the project."""
    if not isinstance(value, Elements):
        return iter([value]) if name in layout.KNOWN else value
    if name in layout.KNOWN or value.events.peek()[0] == "start_map":
        return iter(value)
    return _row("start_array", None, value.events)


def _write_rows(unpacked: Unpacked, name: str, rows: Any) -> None:
    is_name = bool(layout.RELATION_NAME.fullmatch(name))
    if not is_name and len(unpacked.left_out) < MAX_LEFT_OUT:
        unpacked.left_out[f"project.json/{name}"[:MAX_NAME_LENGTH]] = None
    keep = is_name and name not in layout.IGNORED
    path = unpacked.folder / f"relation-{name}.ndjson" if keep else Path(os.devnull)
    too_large: dict[int, UnreadRow] = {}
    with path.open("wb") as target:
        for number, row in enumerate(rows, start=1):
            if isinstance(row, UnreadRow):
                too_large[number] = row
            target.write(b"\n" if isinstance(row, UnreadRow) else exact_json.dumps(row) + b"\n")
    if keep:
        unpacked.relations[name], unpacked.too_large[name] = path, too_large
