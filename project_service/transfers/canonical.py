"""Whether two archives say the same: their canonical form, and what differs in it.

Left aside is what a transfer has to change: ids and references by id, who people are on the other server (and so the
texts that say who wrote a note), when memberships and protections were made, events (they are kept for two years only),
and whether something empty is written down. Everything else counts, whatever relation or file it is in.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from project_service.transfers import layout, trees
from project_service.transfers.rows import BLANK_NOTE
from project_service.transfers.unpacking import Unpacked, unpack

MOMENTS = frozenset({"created_at", "updated_at"})
# made anew by every import
MADE_ANEW = frozenset({layout.MEMBERS, layout.PROTECTED_TAGS, layout.FEATURES})
LEFT_OUT = frozenset({"id", "author", "user", "events", "assignee_id", "textColor", "template"})
ATTRIBUTION = re.compile(r"(?:\n\n \*By [^\n]* on [^\n]* \(imported from GitLab(?: project)?\)\*)+\Z")


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """Something that is in one archive only, or not the same in both."""

    place: str
    what: str

    def __str__(self) -> str:
        """``issues 7: changed``."""
        return f"{self.place}: {self.what}"


def compare(one: Path, other: Path) -> list[Difference]:
    """What differs between two archives; nothing when they are equal. ``BadArchive`` when one cannot be read."""
    with TemporaryDirectory() as folder:
        left, right = (_digests(path, Path(folder) / name) for path, name in ((one, "a"), (other, "b")))
    found = [Difference(place, "only in the first") for place in left.keys() - right.keys()]
    found += [Difference(place, "only in the second") for place in right.keys() - left.keys()]
    found += [Difference(place, "changed") for place in left.keys() & right.keys() if left[place] != right[place]]
    return sorted(found)


def canonical(relation: str, row: Any) -> Any:
    """A row without what a transfer changes."""
    return _without(row, MOMENTS if relation in MADE_ANEW else frozenset())


def _digests(archive: Path, folder: Path) -> dict[str, bytes]:
    """Every row and file of an archive by its place."""
    unpacked = unpack(archive, folder)
    unpacked.check()
    trees.split_legacy(unpacked)
    found = {"project": _digest(canonical(layout.PROJECT, trees.project_of(unpacked)))}
    for relation in trees.relations_of(unpacked):
        if relation != layout.MEMBERS:  # who the members are is what a transfer decides
            found |= _numbered(relation, _rows(unpacked, relation))
    for name, path in unpacked.bundles.items():
        found[f"{name}.bundle"] = _file(path)
    for name, carried in unpacked.carried.items():
        found[name] = _file(carried.place)
    if unpacked.lfs_types is not None:
        found[layout.LFS_TYPES] = _digest(trees.loads(unpacked.lfs_types.read_bytes() or b"{}"))
    return found


def _rows(unpacked: Unpacked, relation: str) -> Iterator[Any]:
    for _, raw in trees.rows_of(unpacked, relation):
        row = trees.loads(raw) if isinstance(raw, bytes) else "a line that is too long"
        yield "a row that is nested too deeply" if trees.too_deep(row) else row


def _numbered(relation: str, rows: Iterator[Any]) -> dict[str, bytes]:
    """The rows of a relation by what tells them apart: the number, else the name, else the content itself."""
    found: dict[str, bytes] = {}
    for row in rows:
        digest = _digest(canonical(relation, row))
        key = _key(row) or digest.hex()[:12]
        place, count = f"{relation} {key}", 1
        while place in found:
            count += 1
            place = f"{relation} {key} ({count})"
        found[place] = digest
    return found


def _key(row: Any) -> str | None:
    if not isinstance(row, dict):
        return None
    return next((str(row[name]) for name in ("iid", "title", "name", "key", "tag") if row.get(name) is not None), None)


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_without(inner, names) for inner in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, inner in value.items():
        if name in LEFT_OUT or name in names or _is_reference(name) or layout.DROPPED.search(name):
            continue
        reduced = _text(inner) if name == "note" and isinstance(inner, str) else _without(inner, names)
        if name == "label_links" and isinstance(reduced, list):
            reduced = sorted(reduced, key=orjson.dumps)
        if reduced not in (None, [], {}, False, ""):
            kept[name] = reduced
    return dict(sorted(kept.items()))


def _is_reference(name: str) -> bool:
    return name.endswith(("_id", "_ids", "_html")) and name not in layout.KEPT_IDS


def _text(note: str) -> str:
    text = ATTRIBUTION.sub("", note)
    return "" if text == BLANK_NOTE else text


def _digest(value: Any) -> bytes:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()


def _file(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
