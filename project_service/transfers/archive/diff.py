"""Comparison of two archives by the canonical form of their rows (docs/decisions/archives.md).

The canonical form leaves out what every transfer changes: ids, the targets of references by id, users (and so members,
and the texts that name the author of a note), secrets, events that retention removes, the order of events and labels,
the notation of timestamps, and the difference between ``null``, empty, default (``layout.DEFAULTS``) and missing
values. All other keys, rows and files are compared; of files that imports do not store, the names. Whether there is a
reference is compared where imports keep it (``_refers``).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from project_service.areas.activity.service import oldest_kept
from project_service.kit import exact_json
from project_service.transfers.archive import layout, legacy, parsing, reader
from project_service.transfers.archive.contents import Unpacked
from project_service.transfers.archive.extraction import unpack
from project_service.transfers.exporting.serializers.events import ACTION_NAMES
from project_service.transfers.importing.mapping.notes import BLANK_NOTE
from project_service.transfers.importing.mapping.values import moment_of, objects_in
from project_service.transfers.importing.user_mapping import is_invitation

# ids, and users, which imports map to accounts of the other server
LEFT_OUT = frozenset({"id", "author", "user"})
NOTHING: tuple[Any, ...] = (None, "", [], {})  # not 0 and false, which are values
# relations whose events are rows here, also those of their notes and milestones; retention removes them
WITH_EVENTS = frozenset({"milestones", "issues", "merge_requests", "snippets"})
ATTRIBUTION = re.compile(r"\n\n \*By ([^\n]*) on ([^\n]*) \(imported from GitLab(?: project)?\)\*\Z")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z| UTC|[+-]\d\d:?\d\d)", re.ASCII)
# references to what every transfer creates: the project and its namespace
OF_TRANSFERS = frozenset({"project_id", "target_project_id", "namespace_id", "creator_id"})
# keys whose rows have a table here: of their references only those to users are kept
RELATIONS_WITH_TABLES = frozenset(
    {"labels", "label", "milestones", "milestone", "issues", "merge_requests", "snippets", "notes", "events"}
    | {"issue_assignees"}
)
MAX_UTC_OFFSET, UTC_OFFSET_STEP = dt.timedelta(hours=14), dt.timedelta(minutes=15)
# the authors of a note: those that its text names at the end, in their order, and that of its row
NoteAuthors = tuple[tuple[str, ...], str]
Said = tuple[bytes, tuple[NoteAuthors, ...]]  # the digest of a row, and of its notes

# keys that identify a row in its relation, the first that has a value
KEYS = ("iid", "title", "name", "key", "tag", "invite_email")
# limits of the output: rows whose changed attributes are named, and attributes of one row
MOST_EXPLAINED = 1000
MOST_NAMED = 10


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A row or file that is in one archive only, or differs."""

    place: str
    what: str

    def __str__(self) -> str:
        """``issues 7: changed: title, notes[0].note``."""
        return f"{self.place}: {self.what}"


def compare(first: Path, second: Path) -> list[Difference]:
    """Return the differences of two archives; ``BadArchive`` when one cannot be read.

    Only digests of rows are in memory; rows that differ are read again, to name the attributes.
    """
    with TemporaryDirectory() as folder:
        opened = [_opened(path, Path(folder) / name) for path, name in ((first, "a"), (second, "b"))]
        since = _since(opened)
        first_digests, second_digests = (_digests(unpacked, since) for unpacked in opened)
        changed = sorted(
            path
            for path in first_digests.keys() & second_digests.keys()
            if not _same(first_digests[path], second_digests[path])
        )
        before, after = (_values(unpacked, since, frozenset(changed[:MOST_EXPLAINED])) for unpacked in opened)
    differences = [Difference(path, "only in the first") for path in first_digests.keys() - second_digests.keys()]
    differences += [Difference(path, "only in the second") for path in second_digests.keys() - first_digests.keys()]
    differences += [Difference(path, _changed(before.get(path), after.get(path))) for path in changed]
    return sorted(differences)


def canonical(relation: str, row: Any, since: dt.datetime) -> tuple[Any, tuple[NoteAuthors, ...]]:
    """Return the canonical form of a row, with the events after a time, and the authors of its notes."""
    for noteable in _with_events(relation, row):
        noteable["events"] = _events(noteable["events"], since)
    writers: list[NoteAuthors] = []
    usual = layout.DEFAULTS.get(relation, layout.NOTHING)
    if isinstance(row, dict):
        row = {name: value for name, value in row.items() if name not in usual or value != usual[name]}
    return _without(row, writers, relation), tuple(writers)


def _opened(archive: Path, folder: Path) -> Unpacked:
    unpacked = unpack(archive, folder)
    unpacked.check()
    legacy.convert_legacy(unpacked)
    return unpacked


def _since(archives: Sequence[Unpacked]) -> dt.datetime:
    """Return the time from which on events are compared.

    That is two years ago, since retention removes older events at any time; if both archives have older ones, it is the
    later of their oldest events.
    """
    oldest_event = oldest_kept()
    return max(min((oldest_event, *_moments_of_events(unpacked))) for unpacked in archives)


def _moments_of_events(unpacked: Unpacked) -> Iterator[dt.datetime]:
    for relation in WITH_EVENTS:
        for row in _rows(unpacked, relation):
            for noteable in _with_events(relation, row):
                yield from filter(
                    None, (moment_of(event.get("created_at")) for event in objects_in(noteable["events"]))
                )


def _with_events(relation: str, row: Any) -> Iterator[dict[str, Any]]:
    """Generate the objects of a row whose events are rows here: the row, its milestone, its notes."""
    if relation in WITH_EVENTS and isinstance(row, dict):
        inner = (row, row.get("milestone"), *objects_in(row.get("notes")))
        yield from (nested for nested in inner if isinstance(nested, dict) and nested.get("events"))


def _events(events: Any, since: dt.datetime) -> Any:
    """Return the events to compare, in one notation and order."""
    kept_events = []
    for event in objects_in(events):
        moment, action = moment_of(event.get("created_at")), event.get("action")
        if moment is None or moment >= since:
            kept_events.append(
                event | {"action": ACTION_NAMES.get(action, action)} if isinstance(action, int) else event
            )
    return sorted(kept_events, key=lambda event: exact_json.dumps(_without(event, [], "events"), sort_keys=True))


def _same(first: Said, second: Said) -> bool:
    """Whether two rows are equal, apart from authors that transfers append to notes."""
    return first[0] == second[0] and len(first[1]) == len(second[1]) and all(map(_by_the_same, first[1], second[1]))


def _by_the_same(first: NoteAuthors, second: NoteAuthors) -> bool:
    """Whether the text with more names begins with those of the other text, followed by the author of its row."""
    (named, writer), (more, _) = sorted((first, second), key=lambda writers: len(writers[0]))
    return more[: len(named) + 1] == (*named, writer)[: len(more)]


def _digests(unpacked: Unpacked, since: dt.datetime) -> dict[str, Said]:
    """Return the digests of all rows and files of an archive, by place."""
    shared: dict[NoteAuthors, NoteAuthors] = {}  # shared, since many notes have the same authors
    digests: dict[str, Said] = {}
    for row_path, value, writers in _placed(unpacked, since):
        digests[row_path] = _digest(value), tuple(shared.setdefault(each, each) for each in writers)
    for name, path in unpacked.bundles.items():
        digests[f"{name}.bundle"] = _file(path), ()
    for name, carried in unpacked.carried.items():
        digests[name] = _file(carried.place), ()
    for name in unpacked.left_out:  # imports do not store these files: only the names are compared
        digests[f"{name!r}"] = b"", ()
    return digests


def _values(unpacked: Unpacked, since: dt.datetime, paths: frozenset[str]) -> dict[str, Any]:
    """Return the canonical rows at some places."""
    return {path: value for path, value, _ in _placed(unpacked, since) if path in paths} if paths else {}


def _placed(unpacked: Unpacked, since: dt.datetime) -> Iterator[tuple[str, Any, tuple[NoteAuthors, ...]]]:
    """Generate place, canonical form and authors of notes of each row; files are left out."""
    yield "project", *canonical(layout.PROJECT, reader.project_of(unpacked), since)
    for relation in reader.relations_of(unpacked):
        yield from _numbered(relation, _rows(unpacked, relation), since)
    if unpacked.lfs_types is not None and (types := parsing.loads(unpacked.lfs_types.read_bytes() or b"{}")):
        yield layout.LFS_TYPES, types, ()


def _rows(unpacked: Unpacked, relation: str) -> Iterator[Any]:
    for _, raw in reader.rows_of(unpacked, relation):
        row = parsing.loads(raw) if isinstance(raw, bytes) else raw.text
        # members are mapped to accounts; invitations, which have an address only, are kept
        if relation != layout.MEMBERS or is_invitation(row):
            yield parsing.TOO_DEEP.text if parsing.is_too_deep(row) else row


def _numbered(
    relation: str, rows: Iterator[Any], since: dt.datetime
) -> Iterator[tuple[str, Any, tuple[NoteAuthors, ...]]]:
    """Generate the canonical rows of a relation with their places; the place of a repeated one ends in a number."""
    counts: Counter[str] = Counter()
    for row in rows:
        value, writers = canonical(relation, row, since)
        path = _place(relation, row, value)
        counts[path] += 1
        yield path if counts[path] == 1 else f"{path} ({counts[path]})", value, writers


def _place(relation: str, row: Any, value: Any) -> str:
    if relation in layout.OBJECTS:
        return relation
    return f"{relation} {_key(row) or _digest(value).hex()[:12]}"


def _changed(before: Any, after: Any) -> str:
    """Return ``changed``, with the names of the attributes if they are known."""
    names = list(itertools.islice(_attributes(before, after), MOST_NAMED + 1))
    if len(names) > MOST_NAMED:
        names[-1] = "and others"
    if not names and before is not None and exact_json.dumps(before) == exact_json.dumps(after):
        names = ["who wrote a note, as its text says"]
    return f"changed: {', '.join(names)}" if names else "changed"


def _attributes(before: Any, after: Any, name: str = "") -> Iterator[str]:
    """Generate the paths of the attributes that differ, such as ``notes[0].note``."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _attributes(before.get(key), after.get(key), f"{name}.{key}" if name else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (first, second) in enumerate(zip(before, after, strict=True)):
            yield from _attributes(first, second, f"{name}[{number}]")
    elif name:
        yield name


def _key(row: Any) -> str | None:
    if not isinstance(row, dict):
        return None
    return next((str(row[name]) for name in KEYS if row.get(name) is not None), None)


def _without(value: Any, writers: list[NoteAuthors], kind: str) -> Any:
    """Return the canonical form of the value of a key ``kind``."""
    if isinstance(value, list):
        return [_without(inner, writers, kind) for inner in value]
    if not isinstance(value, dict):
        return value
    free = layout.FREE_FORM_COLUMNS.get(kind, layout.NOT_FREE)  # arbitrary data, which no transfer changes
    compared: dict[str, Any] = {}
    for name, inner in value.items():
        if name in free:
            reduced = inner
        elif name in LEFT_OUT or layout.DROPPED.search(name):
            continue
        elif _is_reference(name):
            reduced = _refers(kind, name, value) or None
        else:
            reduced = _reduced(value, name, writers)
        if reduced not in NOTHING:
            compared[name] = reduced
    return dict(sorted(compared.items()))


def _reduced(row: dict[str, Any], name: str, writers: list[NoteAuthors]) -> Any:
    """Return the canonical form of the value that a row has for a key."""
    value = row[name]
    if name == "note" and isinstance(value, str | None):
        return _text(row, writers)
    reduced = _without(value, writers, name)
    if name.endswith("_at"):
        return _moment(reduced)
    if name == "label_links" and isinstance(reduced, list):
        return sorted(reduced, key=exact_json.dumps)
    if name in layout.USER_RELATIONS and isinstance(reduced, list):
        # several users may be mapped to one (archive format reference, section 6.3)
        return [user for index, user in enumerate(reduced) if user not in reduced[:index]]
    return reduced


def _is_reference(name: str) -> bool:
    return name.endswith(("_id", "_ids", "_html")) and name not in layout.UNCHANGED_IDS


def _refers(kind: str, name: str, row: dict[str, Any]) -> bool:
    """Whether a row has a reference that imports keep, to any target."""
    if kind == "merge_requests" and name == "source_project_id":
        return _keeps_source(row)
    if name in layout.USER_REFERENCES:
        # ``assignee_id`` of issues in old archives becomes one of the assignees
        return row[name] is not None and (kind, name) != ("issues", "assignee_id")
    return (
        kind not in RELATIONS_WITH_TABLES
        and name not in OF_TRANSFERS
        and not name.endswith("_html")
        and row[name] not in NOTHING
    )


def _keeps_source(row: dict[str, Any]) -> bool:
    """Whether an import keeps the source project of a merge request: not of a fork without ``diff_head_sha``."""
    source = row.get("source_project_id")
    return source is not None and (source == row.get("target_project_id") or bool(row.get("diff_head_sha")))


def _text(row: dict[str, Any], writers: list[NoteAuthors]) -> str:
    """Return the text of a note without the authors that transfers append, recognised by their time.

    Archive format reference, section 6.2.
    """
    text: str = row["note"] or ""
    named: list[str] = []
    while (attribution := ATTRIBUTION.search(text)) and _may_be_same(
        moment_of(attribution[2]), moment_of(row.get("updated_at"))
    ):
        named.insert(0, attribution[1])
        text = text[: attribution.start()]
    author = row.get("author")
    name = author.get("name") if isinstance(author, dict) else None
    writers.append((tuple(named), name if isinstance(name, str) else ""))
    return "" if text == BLANK_NOTE else text


def _moment(value: Any) -> Any:
    """Return a timestamp in one notation, any other value unchanged."""
    moment = moment_of(value) if isinstance(value, str) and MOMENT.fullmatch(value) else None
    return moment.isoformat() if moment else value


def _may_be_same(named: dt.datetime | None, moment: dt.datetime | None) -> bool:
    """Whether a time without zone can be a timestamp, in some zone and to the second."""
    if named is None or moment is None:
        return named is moment
    apart = abs(named.replace(microsecond=0) - moment.replace(microsecond=0))
    return apart <= MAX_UTC_OFFSET and not apart % UTC_OFFSET_STEP


def _digest(value: Any) -> bytes:
    return hashlib.sha256(exact_json.dumps(value, sort_keys=True)).digest()


def _file(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
