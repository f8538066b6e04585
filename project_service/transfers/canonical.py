"""Whether two archives say the same: their canonical form, and what differs in it.

Left aside is what a transfer has to change: ids and references by id, who people are on the other server (and so the
texts that say who wrote a note), when memberships and protections were made, events (they are kept for two years only),
and whether something empty is written down. Everything else counts, whatever relation or file it is in.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from project_service.kit import exact
from project_service.transfers import layout, trees
from project_service.transfers.rows import BLANK_NOTE
from project_service.transfers.unpacking import Unpacked, unpack

MOMENTS = frozenset({"created_at", "updated_at"})
# made anew by every import
MADE_ANEW = frozenset({layout.MEMBERS, layout.PROTECTED_TAGS, layout.FEATURES})
LEFT_OUT = frozenset({"id", "author", "user", "events", "assignee_id", "textColor", "template"})
ATTRIBUTION = re.compile(r"(?:\n\n \*By [^\n]* on [^\n]* \(imported from GitLab(?: project)?\)\*)+\Z")


# of how many changed rows the attributes are named, and of how many attributes of one row
MOST_EXPLAINED = 1000
MOST_NAMED = 10


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """Something that is in one archive only, or not the same in both."""

    place: str
    what: str

    def __str__(self) -> str:
        """``issues 7: changed: title, notes[0].note``."""
        return f"{self.place}: {self.what}"


def compare(one: Path, other: Path) -> list[Difference]:
    """What differs between two archives; nothing when they are equal. ``BadArchive`` when one cannot be read.

    Of every row only a digest is remembered; those that differ are read once more, to tell which attributes do.
    """
    with TemporaryDirectory() as folder:
        opened = [_opened(path, Path(folder) / name) for path, name in ((one, "a"), (other, "b"))]
        left, right = (_digests(unpacked) for unpacked in opened)
        changed = sorted(place for place in left.keys() & right.keys() if left[place] != right[place])
        before, after = (_values(unpacked, frozenset(changed[:MOST_EXPLAINED])) for unpacked in opened)
    found = [Difference(place, "only in the first") for place in left.keys() - right.keys()]
    found += [Difference(place, "only in the second") for place in right.keys() - left.keys()]
    found += [Difference(place, _changed(before.get(place), after.get(place))) for place in changed]
    return sorted(found)


def canonical(relation: str, row: Any) -> Any:
    """A row without what a transfer changes."""
    return _without(row, MOMENTS if relation in MADE_ANEW else frozenset())


def _opened(archive: Path, folder: Path) -> Unpacked:
    unpacked = unpack(archive, folder)
    unpacked.check()
    trees.split_legacy(unpacked)
    return unpacked


def _digests(unpacked: Unpacked) -> dict[str, bytes]:
    """Every row and file of an archive by its place."""
    found = {place: _digest(value) for place, value in _placed(unpacked)}
    for name, path in unpacked.bundles.items():
        found[f"{name}.bundle"] = _file(path)
    for name, carried in unpacked.carried.items():
        found[name] = _file(carried.place)
    return found


def _values(unpacked: Unpacked, places: frozenset[str]) -> dict[str, Any]:
    """The rows at some places."""
    return {place: value for place, value in _placed(unpacked) if place in places} if places else {}


def _placed(unpacked: Unpacked) -> Iterator[tuple[str, Any]]:
    """What an archive says, without its files: each row in its canonical form, and its place."""
    yield "project", canonical(layout.PROJECT, trees.project_of(unpacked))
    for relation in trees.relations_of(unpacked):
        if relation != layout.MEMBERS:  # who the members are is what a transfer decides
            yield from _numbered(relation, _rows(unpacked, relation))
    if unpacked.lfs_types is not None:
        yield layout.LFS_TYPES, trees.loads(unpacked.lfs_types.read_bytes() or b"{}")


def _rows(unpacked: Unpacked, relation: str) -> Iterator[Any]:
    for _, raw in trees.rows_of(unpacked, relation):
        row = trees.loads(raw) if isinstance(raw, bytes) else "a line that is too long"
        yield "a row that is nested too deeply" if trees.too_deep(row) else row


def _numbered(relation: str, rows: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    """The rows of a relation by what tells them apart: the number, else the name, else the content itself."""
    counts: Counter[str] = Counter()
    for row in rows:
        value = canonical(relation, row)
        place = _place(relation, row, value)
        counts[place] += 1
        yield place if counts[place] == 1 else f"{place} ({counts[place]})", value


def _place(relation: str, row: Any, value: Any) -> str:
    if relation in layout.SINGLES:
        return relation
    return f"{relation} {_key(row) or _digest(value).hex()[:12]}"


def _changed(before: Any, after: Any) -> str:
    """``changed``, and the attributes that did where that can be told."""
    names = list(itertools.islice(_attributes(before, after), MOST_NAMED + 1))
    if len(names) > MOST_NAMED:
        names[-1] = "and others"
    return f"changed: {', '.join(names)}" if names else "changed"


def _attributes(before: Any, after: Any, name: str = "") -> Iterator[str]:
    """The attributes in which two values differ, the nested ones with the way there: ``notes[0].note``."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _attributes(before.get(key), after.get(key), f"{name}.{key}" if name else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _attributes(one, other, f"{name}[{number}]")
    elif name:
        yield name


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
            reduced = sorted(reduced, key=exact.dumps)
        if reduced not in (None, [], {}, False, ""):
            kept[name] = reduced
    return dict(sorted(kept.items()))


def _is_reference(name: str) -> bool:
    return name.endswith(("_id", "_ids", "_html")) and name not in layout.KEPT_IDS


def _text(note: str) -> str:
    text = ATTRIBUTION.sub("", note)
    return "" if text == BLANK_NOTE else text


def _digest(value: Any) -> bytes:
    return hashlib.sha256(exact.dumps(value, sort_keys=True)).digest()


def _file(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
