"""Reading of the relations of an unpacked archive, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from project_service.kit import exact_json
from project_service.transfers.archive import layout
from project_service.transfers.archive.contents import BAD_JSON, BadArchive, Unpacked, UnreadRow
from project_service.transfers.archive.json_stream import Elements, members_of, with_long_numbers
from project_service.transfers.archive.parsing import MAX_LINE_BYTES, TOO_LONG, TOO_MANY_VALUES, is_too_deep, loads

MAX_OBJECT_BYTES = 16 << 20  # the project without its relations, or a setting
MAX_LFS_TYPES = 100  # of an LFS object; there are four


def relations_of(unpacked: Unpacked) -> list[str]:
    """Return the relations of an archive in the order of import: the known ones in the order of the format."""
    there = {layout.RENAMED.get(name, name) for name in unpacked.relations} - layout.IGNORED
    ordered = [name for name in layout.RELATIONS if name in there]
    return [*ordered, *sorted(there - set(ordered))]


def project_of(unpacked: Unpacked) -> dict[str, Any]:
    """Return the attributes of the project; raises ``BadArchive``."""
    if unpacked.project is None:
        return {}
    if unpacked.project.stat().st_size > MAX_OBJECT_BYTES:
        raise BadArchive(BAD_JSON)
    raw = unpacked.project.read_bytes()
    if exact_json.has_too_many_values(raw):
        raise BadArchive(BAD_JSON)
    attributes = loads(raw)
    if not isinstance(attributes, dict) or is_too_deep(attributes):
        raise BadArchive(BAD_JSON)
    return attributes


def rows_of(unpacked: Unpacked, relation: str, after: int = 0) -> Iterator[tuple[int, bytes | UnreadRow]]:
    """Generate the lines after line ``after`` with their numbers, without empty ones and ``null``."""
    names = [name for name in unpacked.relations if layout.RENAMED.get(name, name) == relation]
    line = 0
    for name in sorted(names):
        too_large = unpacked.too_large.get(name, {})
        with unpacked.relations[name].open("rb", buffering=1 << 20) as file:
            for number, raw in enumerate(_lines(file), start=1):
                line += 1
                if line <= after:
                    continue
                if number in too_large:
                    yield line, too_large[number]
                elif isinstance(raw, UnreadRow) or exact_json.has_too_many_values(raw):
                    yield line, raw if isinstance(raw, UnreadRow) else TOO_MANY_VALUES
                elif raw.startswith(b"{") or raw.strip() not in (b"", b"null"):
                    yield line, raw


def count_rows(unpacked: Unpacked) -> int:
    """Return the approximate number of rows, without nested ones."""
    return sum(_count_lines(path) for name, path in unpacked.relations.items() if name not in layout.IGNORED)


def lfs_types_of(unpacked: Unpacked) -> dict[str, list[Any]]:
    """Return the types of each LFS object; without the file of types, all belong to the project.

    Archive format reference, section 1.
    """
    if unpacked.lfs_types is None:
        objects = (path for path in unpacked.carried if layout.LFS_OBJECT.fullmatch(path))
        return {path.removeprefix("lfs-objects/"): [layout.LFS_OF_PROJECT] for path in objects}
    if not unpacked.lfs_types.stat().st_size:
        return {}
    return with_long_numbers(_parse_lfs_types, unpacked.lfs_types, unpacked)


def _parse_lfs_types(path: Path, unpacked: Unpacked, *, long_numbers: bool) -> dict[str, list[Any]]:
    types_by_object: dict[str, list[Any]] = {}
    for oid, types in members_of(path, long_numbers=long_numbers, or_none=True):
        if isinstance(types, Elements):
            parsed: list[int | None] = []
            for type_ in types:
                if len(parsed) < MAX_LFS_TYPES and (type_ is None or isinstance(type_, int)):
                    parsed.append(type_)
            if f"lfs-objects/{oid}" in unpacked.carried:
                types_by_object[oid] = parsed
    return types_by_object


def _lines(file: IO[bytes]) -> Iterator[bytes | UnreadRow]:
    while raw := file.readline(MAX_LINE_BYTES + 1):
        if len(raw) <= MAX_LINE_BYTES:
            yield raw
            continue
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(1 << 20)
        yield TOO_LONG


def _count_lines(path: Path) -> int:
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):  # a file may have millions of empty lines
            lines += chunk.count(b"\n")
            last = chunk
    return lines + (not last.endswith(b"\n"))
