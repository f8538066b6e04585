"""What the mapping of all relations shares: the batch, ids, users, and what the project has already."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from project_service.domain.events.models import Kind, Restriction
from project_service.domain.tracker.issue_rules import LONGEST_TEXT
from project_service.kit import clock
from project_service.kit.db.base import Base
from project_service.kit.db.bulk import new_ids
from project_service.transfers.archive import layout
from project_service.transfers.importing.mapping.tables import COLUMNS, MODELS_WITH_IDS, ImportedFailure
from project_service.transfers.importing.mapping.values import NESTED, is_iid, moment_of, text_of
from project_service.transfers.importing.refusals import RowRefused, invalid
from project_service.transfers.importing.user_mapping import UserMapping
from project_service.transfers.models import ImportFailure

MAX_MESSAGE_LENGTH = 255  # characters
FOREIGN_ID_SUFFIXES = ("_id", "_ids", "_html")  # ids of other rows, and HTML that is rendered from Markdown
MAPPED_BY_ALL = frozenset({"id", "created_at", "updated_at", "project_id", "cached_markdown_version"})
MilestoneEvent = tuple[int, int, int, dt.datetime]  # id of the milestone, action, id of the author, moment


@dataclass(slots=True)
class ProjectState:
    """What the project has already, by the values that rows of the archive refer to it with."""

    labels: dict[str, int] = field(default_factory=dict)  # ids by title
    milestones: dict[str, int] = field(default_factory=dict)  # ids by title
    group_milestones: frozenset[int] = frozenset()  # the ids of those of groups above
    milestone_iids: dict[int, None] = field(default_factory=dict)  # final ones, and provisional ones below 0
    milestone_events: dict[MilestoneEvent, None] = field(default_factory=dict)
    iids: dict[int, None] = field(default_factory=dict)  # those that rows of the current portion collide with
    release_tags: dict[str, None] = field(default_factory=dict)
    highest_iid: int = 0  # of the current relation
    lowest_iid: int = 0  # the lowest provisional iid of the current relation
    lowest_milestone_iid: int = 0  # the lowest provisional iid of milestones

    def __post_init__(self) -> None:
        self.lowest_milestone_iid = min((0, *self.milestone_iids))

    def start_relation(self, highest_iid: int = 0, lowest_iid: int = 0) -> None:
        """Begin with another relation, whose iids are independent; the highest and the lowest that are stored."""
        self.iids, self.highest_iid, self.lowest_iid = {}, highest_iid, lowest_iid

    def savepoint(self) -> tuple[int, ...]:
        """Return a value for ``rollback``."""
        return self.highest_iid, self.lowest_iid, self.lowest_milestone_iid, *map(len, self._collections())

    def rollback(self, savepoint: tuple[int, ...]) -> None:
        """Remove everything that was added since the savepoint."""
        self.highest_iid, self.lowest_iid, self.lowest_milestone_iid, *sizes = savepoint
        for collection, size in zip(self._collections(), sizes, strict=True):
            while len(collection) > size:
                collection.popitem()

    def _collections(self) -> tuple[dict[Any, Any], ...]:
        return self.labels, self.milestones, self.milestone_iids, self.milestone_events, self.release_tags, self.iids


class VisibilityRule(NamedTuple):
    """The visibility rule for the events of an object and of its notes."""

    kind: Kind
    restriction: Restriction = Restriction.NONE
    issue_id: int | None = None


class RowBatch:
    """Rows to insert, by table."""

    def __init__(self) -> None:
        self.rows: dict[type[Base], list[tuple[Any, ...]]] = {model: [] for model in COLUMNS}

    def add(self, model: type[Base], row: tuple[Any, ...]) -> None:
        """Add a row of a table."""
        self.rows[model].append(row)

    def savepoint(self) -> list[int]:
        """Return a value for ``rollback``."""
        return list(map(len, self.rows.values()))

    def rollback(self, savepoint: list[int]) -> None:
        """Remove the rows that were added since the savepoint."""
        for rows, length in zip(self.rows.values(), savepoint, strict=True):
            del rows[length:]


@dataclass(frozen=True, slots=True, eq=False)
class MappedKeys:
    """The keys of one kind of row.

    ``columns`` are mapped to columns; ``common`` are written by every exporter and need not be stored when empty;
    ``opaque`` hold arbitrary data, in which no reference is mapped.
    """

    columns: frozenset[str]
    common: frozenset[str]
    opaque: frozenset[str] = layout.NOT_FREE


@dataclass(frozen=True, slots=True)
class ExtraKeys:
    """The keys of a row whose values are stored in ``extra``."""

    all_keys: tuple[str, ...]
    common: tuple[str, ...]
    uncommon: tuple[str, ...]
    users: frozenset[str]

    @classmethod
    def of(cls, all_keys: tuple[str, ...], mapped: MappedKeys) -> ExtraKeys:
        """Select them from the keys of a row: not ids of other rows, nor what can be derived."""
        stored = [
            key
            for key in all_keys
            if key not in mapped.columns
            and (key in layout.USER_REFERENCES or key in layout.UNCHANGED_IDS or not key.endswith(FOREIGN_ID_SUFFIXES))
        ]
        common, uncommon = (
            tuple(key for key in stored if (key in mapped.common) is is_common) for is_common in (True, False)
        )
        return cls(all_keys, common, uncommon, layout.USER_REFERENCES.intersection(stored))


class ImportContext:
    """Collects the rows that an import inserts; one for a whole import.

    It does not query the database, except to reserve ids: rows are mapped outside of transactions.
    """

    def __init__(
        self,
        project_id: int,
        users: UserMapping,
        state: ProjectState,
        now: dt.datetime,
        ids: Callable[[type[Base]], Iterator[int]] = new_ids,
    ) -> None:
        self.project_id = project_id
        self.users = users
        self.state = state
        self.now = now  # for rows without a timestamp; the same in every attempt of an import
        self.ids = {model: ids(model) for model in MODELS_WITH_IDS}
        self.batch = RowBatch()
        self.cuts: list[str] = []  # what was cut in the current row, as notices
        # of the last row of each kind: successive rows mostly have the same keys
        self._extra_keys: dict[MappedKeys, ExtraKeys] = {}

    def take_batch(self) -> RowBatch:
        """Return the rows collected so far, and begin a new batch."""
        batch, self.batch = self.batch, RowBatch()
        return batch

    def record_failure(self, relation: str, line: int, refused: RowRefused) -> None:
        """Record that a row, or a part of it, was left out."""
        message = str(refused)[:MAX_MESSAGE_LENGTH]
        self.batch.add(
            ImportFailure,
            ImportedFailure(
                project_id=self.project_id,
                created_at=clock.now(),
                exception_class=refused.kind,
                exception_message=message,
                source=refused.source,
                relation_name=relation,
                line_number=line,
            ),
        )

    def text_of(self, value: Any, label: str) -> str | None:
        """Return a value as text, cut to the length that the API accepts; ``label`` names it in the recorded notice."""
        text = text_of(value)
        if text is None or len(text) <= LONGEST_TEXT:
            return text
        self.cuts.append(f"{label} is too long (maximum is {LONGEST_TEXT} characters) and was cut")
        return text[:LONGEST_TEXT]

    def reserve_iid(self, row: dict[str, Any]) -> int:
        """Return the iid of a row, which is kept.

        A row without one gets a provisional iid below 0 until all rows are imported: it must not take the iid of a
        later row.
        """
        iid = row.get("iid")
        if iid is None:
            self.state.lowest_iid -= 1
            return self.state.lowest_iid
        if not is_iid(iid):
            raise invalid("Iid is not a number")
        if iid in self.state.iids:
            raise invalid("Iid has already been taken")
        self.state.iids[iid] = None
        self.state.highest_iid = max(self.state.highest_iid, iid)
        return int(iid)

    def timestamps_of(self, row: dict[str, Any]) -> tuple[dt.datetime, dt.datetime]:
        """Return when a row was created and updated."""
        created_at = moment_of(row.get("created_at")) or self.now
        return created_at, moment_of(row.get("updated_at")) or created_at

    def extra_of(self, row: dict[str, Any], mapped: MappedKeys) -> dict[str, Any] | None:
        """Return what a row says that no column holds, without the common keys whose values are empty."""
        all_keys = tuple(row)
        keys = self._extra_keys.get(mapped)
        if keys is None or keys.all_keys != all_keys:
            keys = self._extra_keys[mapped] = ExtraKeys.of(all_keys, mapped)
        extra = {key: value for key in keys.common if (value := row[key]) is not None and (value or value != [])}
        if keys.uncommon:
            extra |= {key: row[key] for key in keys.uncommon if row[key] is None or not layout.DROPPED.search(key)}
        for key, value in extra.items():
            if key in keys.users:
                extra[key] = self.users.find(value)
            elif isinstance(value, NESTED) and key not in mapped.opaque:
                extra[key] = self.users.map_references(value, key)
        return extra or None
