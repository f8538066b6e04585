"""What the rows of an archive become: rows of our tables (archive format reference, sections 4 to 6).

Nothing here asks the database, except for blocks of ids: a batch is made outside of any transaction and written at
once. What has no column is kept in ``extra``.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

from project_service.domain.access_levels import Visibility
from project_service.domain.events.models import Action, Event, Kind, Restriction
from project_service.domain.events.recording import SNIPPETS
from project_service.domain.tracker import issues, labels, milestones, notes, others
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.domain.tracker.labels import Label
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import NOTE_TYPES, Note
from project_service.kit import bigint_json, clock
from project_service.kit.db.base import Base
from project_service.kit.db.bulk import new_ids
from project_service.kit.times import read_time
from project_service.transfers.archive import layout, reader
from project_service.transfers.archive.extraction import BadArchive, TooLarge
from project_service.transfers.archive.reader import DEEPEST
from project_service.transfers.importing.refusals import Refused, invalid, too_deep, unreadable
from project_service.transfers.importing.user_mapping import People
from project_service.transfers.models import ArchivedRow, ImportFailure

LONGEST_TITLE = 255
LONGEST_MESSAGE = 255
LONGEST_POSITION = 64 << 10
LEVELS_ABOVE = 6  # of the position of a note, wherever that stands
LARGEST_INTEGER = 2**63 - 1
LARGEST_IID = 2**31 - 1  # with room behind it, for what comes after the import
BLANK_NOTE = "*Blank note*"
REMOTE = re.compile(r"[a-z][a-z0-9+.-]+:|//", re.IGNORECASE)  # what an address of another server begins with
BLANKS = re.compile(r"\A[\x00-\x20]+|[\t\r\n]")  # which browsers leave out
YEAR = re.compile(r"[12]\d{3}", re.ASCII)
LONGEST_KNOWN_MOMENT = 64  # nobody writes longer ones, which have dozens of digits behind the second
FIRST_SECOND, MILLISECONDS = 10**8, 10**11  # in 1973, and in the year 5138

COLUMNS: dict[type[Base], tuple[str, ...]] = {
    model: tuple(names.split())
    for model, names in (
        (Label, "id project_id title color description extra created_at updated_at"),
        (Milestone, "id project_id iid title description state start_date due_date extra created_at updated_at"),
        (
            Issue,
            """id project_id iid title description state issue_type severity confidential discussion_locked
            due_date weight notes_count author_id closed_at closed_by_id milestone_id extra created_at updated_at""",
        ),
        (IssueLabel, "issue_id title"),
        (IssueAssignee, "issue_id user_id"),
        (
            others.MergeRequest,
            """id project_id iid title description state source_branch target_branch author_id milestone_id extra
            created_at updated_at""",
        ),
        (others.MergeRequestLabel, "merge_request_id title"),
        (
            others.Snippet,
            "id project_id title file_name content visibility author_id extra created_at updated_at",
        ),
        (others.Design, "id project_id issue_id iid filename"),
        (
            Note,
            """id project_id noteable_type noteable_id commit_id type body attachment system confidential position
            author_id extra created_at updated_at""",
        ),
        (
            Event,
            "id action kind restriction author_id project_id issue_id target_type target_id data extra created_at",
        ),
        (ArchivedRow, "project_id relation data"),
        (
            ImportFailure,
            "project_id created_at exception_class exception_message source relation_name line_number",
        ),
    )
}
NUMBERED = (Label, Milestone, Issue, others.MergeRequest, others.Snippet, others.Design, Note, Event)


Told = tuple[int, int, int, dt.datetime]  # a milestone, what was done, by whom and when


@dataclass(slots=True)
class Known:
    """What of the project is there already, by what rows refer to it with."""

    labels: dict[str, int] = field(default_factory=dict)
    milestones: dict[str, int] = field(default_factory=dict)
    milestone_iids: dict[int, None] = field(default_factory=dict)  # those to be kept, and provisional ones below 0
    milestone_events: dict[Told, None] = field(default_factory=dict)  # what was done to milestones
    iids: dict[int, None] = field(default_factory=dict)  # those of the rows of a portion that are taken
    highest_iid: int = 0  # of those that rows of this kind have
    lowest_iid: int = 0  # the lowest number of a row of this kind that gets its own at the end
    provisional: int = 0  # the same of milestones

    def __post_init__(self) -> None:
        self.provisional = min((0, *self.milestone_iids))

    def start_relation(self, highest_iid: int = 0, lowest_iid: int = 0) -> None:
        """Begin with the rows of a relation, whose iids count by themselves; the highest and lowest that are stored."""
        self.iids, self.highest_iid, self.lowest_iid = {}, highest_iid, lowest_iid

    def marks(self) -> tuple[int, ...]:
        """How much is known; for ``forget``."""
        return self.highest_iid, self.lowest_iid, self.provisional, *map(len, self._growing())

    def forget(self, marks: tuple[int, ...]) -> None:
        """Forget what has become known since."""
        self.highest_iid, self.lowest_iid, self.provisional, *sizes = marks
        for known, size in zip(self._growing(), sizes, strict=True):
            while len(known) > size:
                known.popitem()

    def _growing(self) -> tuple[dict[Any, Any], ...]:
        return self.labels, self.milestones, self.milestone_iids, self.milestone_events, self.iids


class Audience(NamedTuple):
    """By which rule the events of something, and of what hangs on it, are seen."""

    kind: Kind
    restriction: Restriction = Restriction.NONE
    issue_id: int | None = None


class Batch:
    """The rows that some lines of one relation become, table by table."""

    def __init__(self) -> None:
        self.rows: dict[type[Base], list[tuple[Any, ...]]] = {model: [] for model in COLUMNS}

    def add(self, model: type[Base], row: tuple[Any, ...]) -> None:
        """Add a row of a table."""
        self.rows[model].append(row)

    def marks(self) -> list[int]:
        """How much there is; for ``cut``."""
        return list(map(len, self.rows.values()))

    def cut(self, marks: list[int]) -> None:
        """Take out what was added since."""
        for rows, length in zip(self.rows.values(), marks, strict=True):
            del rows[length:]


@dataclass(frozen=True, slots=True)
class Beside:
    """The names in a row, and of what no column has those that are kept: what archives usually say, and the others."""

    names: tuple[str, ...]
    usual: tuple[str, ...]
    others: tuple[str, ...]
    people: frozenset[str]

    @classmethod
    def of(cls, names: tuple[str, ...], columns: frozenset[str], usual: frozenset[str]) -> Beside:
        """Those of one row; ids of what stays behind, and what can be made anew, are not kept."""
        kept = [
            name
            for name in names
            if name not in columns and (name in layout.PEOPLE or name in layout.KEPT_IDS or not name.endswith(FOREIGN))
        ]
        usually, beside = (tuple(name for name in kept if (name in usual) is is_usual) for is_usual in (True, False))
        return cls(names, usually, beside, layout.PEOPLE.intersection(kept))


class Translator:
    """Makes rows of ours from rows of an archive; one for a whole import."""

    def __init__(
        self,
        project_id: int,
        people: People,
        known: Known,
        now: dt.datetime,
        ids: Callable[[type[Base]], Iterator[int]] = new_ids,
    ) -> None:
        self.project_id = project_id
        self.people = people
        self.known = known
        self.now = now
        self.ids = {model: ids(model) for model in NUMBERED}
        self.batch = Batch()
        self._beside: dict[frozenset[str], Beside] = {}  # of the last row of each kind: mostly they have the same names
        self.translate: dict[str, Callable[[dict[str, Any]], Any]] = {
            "labels": self._label,
            "milestones": self._milestone,
            "issues": self._issue,
            "merge_requests": self._merge_request,
            "snippets": self._snippet,
            "triggers": self._trigger,
            "boards": self._board,
            "ci_pipelines": self._pipeline,
            "commit_notes": self._commit_note,
        }

    def take(self, relation: str, line: int, row: Any) -> None:
        """Add what a row becomes to the batch; a refused one becomes a failure, with nothing of it left."""
        marks, before = self.batch.marks(), self.known.marks()
        try:
            if not isinstance(row, dict) and relation in layout.RELATIONS:
                raise unreadable("no implicit conversion into Hash")
            translate = self.translate.get(relation)
            if translate is None:
                self._keep(relation, row)
            else:
                translate(row)
        except Refused as refused:
            self.known.forget(before)
            self.batch.cut(marks)
            self.fail(relation, line, refused)

    def fail(self, relation: str, line: int, refused: Refused) -> None:
        """Note that a row, or something in it, was left out."""
        message = str(refused)[:LONGEST_MESSAGE]
        self.batch.add(
            ImportFailure, (self.project_id, clock.now(), refused.kind, message, refused.source, relation, line)
        )

    def _keep(self, relation: str, row: Any) -> None:
        self._sign({relation: [row]}, DEEPEST + 2)  # the row itself may have as many levels as any
        self.batch.add(ArchivedRow, (self.project_id, relation, self.people.settle(row, relation)))

    def _sign(self, value: Any, left: int, kind: str = "") -> None:
        """Have notes of strangers that stand in rows without a table say who wrote them, as all others do."""
        if left == 0:
            raise too_deep()
        if isinstance(value, dict):
            for name in NOTES & value.keys():
                for note in listed(value[name]):
                    if "note" in note and (isinstance(note["note"], str | None) or note.get("author_id") is not None):
                        note["note"] = self._body(note, note.get("author_id"))
                        if isinstance(note.get("author"), dict) and not self.people.knows(note.get("author_id")):
                            note["author"] = {"name": self.people.importer_name}
            free = layout.FREE.get(kind, layout.NOT_FREE)
            nested = [(name, inner) for name, inner in value.items() if name not in free]
        else:
            nested = [(kind, inner) for inner in value]
        for name, inner in nested:
            if isinstance(inner, NESTED):
                self._sign(inner, left - 1, name)

    def _trigger(self, row: dict[str, Any]) -> None:
        if row.get("owner_id") is not None:  # without an owner it is skipped (section 6.4)
            self._keep("triggers", row)

    def _board(self, row: dict[str, Any]) -> None:
        self._mention_labels(row.get("lists"))
        self._keep("boards", row)

    def _pipeline(self, row: dict[str, Any]) -> None:
        self._notes_with_events(row.get("notes"))
        self._keep("ci_pipelines", row)

    def _commit_note(self, row: dict[str, Any]) -> None:
        self._notes_with_events([row])
        self._keep("commit_notes", row)

    def _notes_with_events(self, rows: Any) -> None:
        """Add the notes of a commit that somebody's feed tells of; like all others they are kept where they stand."""
        for row in [row for row in listed(rows) if row.get("events")]:
            marks = self.batch.marks()
            try:
                self._notes([row], notes.COMMIT, None, Audience(Kind.CODE))
            except Refused:
                self.batch.cut(marks)  # no feed tells of it then

    def _iid(self, row: dict[str, Any]) -> int:
        """The number within the project, which is kept.

        A row without one has a provisional one below 0 until all are known: it must not take a number that another row
        brings, be that the last.
        """
        iid = row.get("iid")
        if iid is None:
            self.known.lowest_iid -= 1
            return self.known.lowest_iid
        if not is_iid(iid):
            raise invalid("Iid is not a number")
        if iid in self.known.iids:
            raise invalid("Iid has already been taken")
        self.known.iids[iid] = None
        self.known.highest_iid = max(self.known.highest_iid, iid)
        return int(iid)

    def _label(self, row: dict[str, Any]) -> None:
        title = title_of(row)
        if title in self.known.labels:
            return
        number = self.known.labels[title] = next(self.ids[Label])
        extra = self._extra(row, LABEL_COLUMNS, LABEL_USUAL)
        color = text_of(row.get("color")) or labels.DEFAULT_COLOR
        self.batch.add(
            Label,
            (number, self.project_id, title, color, text_of(row.get("description")), extra, *self._moments(row)),
        )

    def _milestone(self, row: Any) -> int | None:
        """The milestone of this title, made when there is none; each of its events comes along once."""
        if not isinstance(row, dict):
            return None
        title = title_of(row)
        number = self.known.milestones.get(title)
        if number is None:
            number = self.known.milestones[title] = next(self.ids[Milestone])
            iid = self._milestone_iid(row)
            state = milestones.CLOSED if row.get("state") == milestones.CLOSED else milestones.ACTIVE
            self.batch.add(
                Milestone,
                (
                    number,
                    self.project_id,
                    iid,
                    title,
                    text_of(row.get("description")),
                    state,
                    day_of(row.get("start_date")),
                    day_of(row.get("due_date")),
                    self._extra(row, MILESTONE_COLUMNS, MILESTONE_USUAL),
                    *self._moments(row),
                ),
            )
        if row.get("events"):
            by_people = [event for event in listed(row["events"]) if event.get("author_id") is not None]
            events = [(self._told(number, event), event) for event in by_people]
            new = [event for told, event in events if told not in self.known.milestone_events]
            self._events(new, milestones.TARGET, number, Audience(Kind.MILESTONE))
            self.known.milestone_events |= dict.fromkeys(told for told, _ in events)
        return number

    def _told(self, number: int, event: dict[str, Any]) -> Told:
        """By what an event is known again when its milestone, under another issue, comes with it once more."""
        moment = moment_of(event.get("created_at")) or self.now
        return number, action_of(event.get("action")), self.people.author(event["author_id"]), moment

    def _milestone_iid(self, row: dict[str, Any]) -> int:
        """The number of a project's milestone, which is kept (section 6.3); of others a provisional one below 0.

        A group's milestone must not take a number that another row brings, be that the last one of the issues: so it
        gets its own when all are known.
        """
        iid = row.get("iid")
        if row.get("group_id") is not None or not is_iid(iid) or iid in self.known.milestone_iids:
            iid = self.known.provisional = self.known.provisional - 1
        self.known.milestone_iids[iid] = None
        return int(iid)

    def _issue(self, row: dict[str, Any]) -> None:
        title, iid = title_of(row), self._iid(row)
        number = next(self.ids[Issue])
        confidential = is_set(row.get("confidential"))
        audience = Audience(Kind.ISSUE, Restriction.CONFIDENTIAL if confidential else Restriction.NONE, number)
        milestone_id = self._milestone(row.get("milestone"))
        self._links(row, IssueLabel, number)
        self._assignees(row, number)
        self._events(row.get("events"), issues.TARGET, number, audience)
        counted = self._notes(row.get("notes"), issues.TARGET, number, audience)
        if row.get("designs"):
            self._designs(row["designs"], number, audience)
            self._sign(listed(row["designs"]), DEEPEST)  # which are kept with their issue as well
        closed = row.get("state") == issues.CLOSED
        weight = row.get("weight")
        extra = self._extra(row, ISSUE_COLUMNS, ISSUE_USUAL)
        unheld = [name for name, holds in ISSUE_HOLDS if (said := row.get(name)) is not None and not holds(said)]
        if unheld:
            extra = (extra or {}) | {name: self.people.settle(row[name]) for name in unheld}
        self.batch.add(
            Issue,
            (
                number,
                self.project_id,
                iid,
                title,
                text_of(row.get("description")),
                issues.CLOSED if closed else issues.OPENED,
                issue_type_of(row),
                row["severity"] if row.get("severity") in issues.SEVERITIES else issues.UNKNOWN,
                confidential,
                row["discussion_locked"] if isinstance(row.get("discussion_locked"), bool) else None,
                day_of(row.get("due_date")),
                weight if is_number(weight) else None,
                counted,
                self.people.author(row.get("author_id")),
                moment_of(row.get("closed_at")),
                self.people.find(row.get("closed_by_id")),
                milestone_id,
                extra,
                *self._moments(row),
            ),
        )

    def _merge_request(self, row: dict[str, Any]) -> None:
        title, iid = title_of(row), self._iid(row)
        for name in ("source_branch", "target_branch"):
            if not row.get(name) or not isinstance(row[name], str):
                raise invalid(f"{name.replace('_', ' ').capitalize()} can't be blank")
        number = next(self.ids[others.MergeRequest])
        audience = Audience(Kind.MERGE_REQUEST)
        milestone_id = self._milestone(row.get("milestone"))
        self._links(row, others.MergeRequestLabel, number)
        self._events(row.get("events"), others.MERGE_REQUEST, number, audience)
        self._notes(row.get("notes"), others.MERGE_REQUEST, number, audience)
        extra = self._extra(row, MERGE_REQUEST_COLUMNS, MERGE_REQUEST_USUAL) or {}
        extra.pop("merge_when_pipeline_succeeds", None)
        for name in layout.OF_PERSONS & extra.keys():
            extra[name] = _each_once(extra[name])
        from_fork = row.get("source_project_id") != row.get("target_project_id")
        if from_fork and not row.get("diff_head_sha"):
            extra["source_project_id"] = None
        state = row.get("state")
        self.batch.add(
            others.MergeRequest,
            (
                number,
                self.project_id,
                iid,
                title,
                text_of(row.get("description")),
                state if state in ("opened", "closed", "merged", "locked") else "opened",
                row["source_branch"],
                row["target_branch"],
                self.people.author(row.get("author_id")),
                milestone_id,
                extra or None,
                *self._moments(row),
            ),
        )

    def _snippet(self, row: dict[str, Any]) -> None:
        title = title_of(row)
        number = next(self.ids[others.Snippet])
        level = row.get("visibility_level")
        visibility = Visibility(level) if level in tuple(Visibility) else Visibility.PRIVATE
        self._notes(row.get("notes"), others.SNIPPET, number, Audience(Kind.SNIPPET, SNIPPETS[visibility]))
        self.batch.add(
            others.Snippet,
            (
                number,
                self.project_id,
                title,
                text_of(row.get("file_name")),
                text_of(row.get("content")),
                visibility,
                self.people.author(row.get("author_id")),
                self._extra(row, SNIPPET_COLUMNS, SNIPPET_USUAL),
                *self._moments(row),
            ),
        )

    def _notes(self, rows: Any, noteable_type: str, noteable_id: int | None, audience: Audience) -> int:
        """Add the notes under something; how many of them people wrote."""
        if not rows:
            return 0
        written = 0
        number_of, added = self.ids[Note], self.batch.rows[Note]
        extra_of, author_of = self._extra, self.people.author
        for row in listed(rows):
            read = row.get
            kind, position = text_of(read("type")), read("position")
            if kind == notes.DIFF_NOTE and not isinstance(position, dict | str):
                raise invalid("Position can't be blank")
            number = next(number_of)
            system = read("system") is True
            confidential = read("confidential")
            # the second is what it is called since release 15
            internal = is_set(confidential) or is_set(read("internal"))
            author_id, created_at = read("author_id"), moment_of(read("created_at")) or self.now
            commit_id, attachment = read("commit_id"), read("attachment")
            if isinstance(attachment, dict):
                attachment = attachment.get("url")
            if isinstance(attachment, str) and _is_elsewhere(attachment):
                attachment = None
            extra = extra_of(row, NOTE_COLUMNS, NOTE_USUAL)
            place = None if position is None else position_of(position)
            if position is not None and place is None:  # it may say something to others
                extra = {**(extra or {}), "position": position}
            if confidential is False:  # mostly nothing is said
                extra = {**(extra or {}), "confidential": False}
            added.append(
                (
                    number,
                    self.project_id,
                    noteable_type,
                    noteable_id,
                    None if commit_id is None else text_of(commit_id),
                    kind,
                    self._body(row, author_id),
                    None if attachment is None else text_of(attachment),
                    system,
                    internal,
                    place,
                    author_of(author_id),
                    extra,
                    created_at,
                    moment_of(read("updated_at")) or created_at,
                )
            )
            written += not system
            if read("events"):
                seen = Audience(audience.kind, Restriction.INTERNAL, audience.issue_id) if internal else audience
                # of whatever kind the archive says, it is a note that they are about
                self._events(row["events"], kind if kind in NOTE_TYPES else notes.TARGET, number, seen)
        return written

    def _body(self, row: dict[str, Any], author_id: Any) -> str:
        """The text of a note; one of somebody who is not known here says who wrote it (section 6.2)."""
        body = text_of(row.get("note")) or ""
        if self.people.knows(author_id):
            return body
        author = row.get("author")
        name = text_of(author.get("name")) if isinstance(author, dict) else None
        moment = (text_of(row.get("updated_at")) or "").partition(".")[0]
        return f"{body or BLANK_NOTE}\n\n *By {name or ''} on {moment} (imported from GitLab)*"

    def _events(self, rows: Any, target_type: str, target_id: int, audience: Audience) -> None:
        for row in listed(rows):
            if row.get("author_id") is None:
                continue
            payload = row.get("push_event_payload")
            extra = self._extra(row, EVENT_COLUMNS, EVENT_USUAL)
            if payload is not None and not isinstance(payload, dict):
                extra = (extra or {}) | {"push_event_payload": self.people.settle(payload)}
            if row.get("updated_at") not in (None, row.get("created_at")):  # mostly they are the same
                extra = (extra or {}) | {"updated_at": row["updated_at"]}
            self.batch.add(
                Event,
                (
                    next(self.ids[Event]),
                    action_of(row.get("action")),
                    audience.kind,
                    audience.restriction,
                    self.people.author(row["author_id"]),
                    self.project_id,
                    audience.issue_id,
                    target_type_of(row, target_type),
                    target_id,
                    payload if isinstance(payload, dict) else None,
                    extra,
                    moment_of(row.get("created_at")) or self.now,
                ),
            )

    def _designs(self, rows: Any, issue_id: int, audience: Audience) -> None:
        for row in listed(rows):
            filename = text_of(row.get("filename"))
            if not filename:
                raise invalid("Filename can't be blank")
            number = next(self.ids[others.Design])
            iid = row.get("iid")
            self.batch.add(
                others.Design, (number, self.project_id, issue_id, iid if is_number(iid) else None, filename)
            )
            self._events(row.get("events"), others.DESIGN, number, audience)
            self._notes(row.get("notes"), others.DESIGN, number, audience)

    def _links(self, row: dict[str, Any], model: type[Base], number: int) -> None:
        if row.get("label_links"):
            titles = [self._linked_label(link) for link in listed(row["label_links"])]
            for title in dict.fromkeys(titles):
                if title is not None:
                    self.batch.add(model, (number, title))
        self._mention_labels(row.get("resource_label_events"))

    def _linked_label(self, link: dict[str, Any]) -> str | None:
        label = link.get("label")
        if not isinstance(label, dict):
            return None
        self._label(label)
        return title_of(label)

    def _mention_labels(self, rows: Any) -> None:
        """Make the labels of rows that are kept as they are, whatever becomes of these."""
        for row in listed(rows):
            with suppress(Refused):
                self._linked_label(row)

    def _assignees(self, row: dict[str, Any], issue_id: int) -> None:
        named = [link.get("user_id") for link in listed(row.get("issue_assignees"))] or [row.get("assignee_id")]
        known = [self.people.author(old) for old in named if old is not None]
        for user_id in dict.fromkeys(known):
            self.batch.add(IssueAssignee, (issue_id, user_id))

    def _moments(self, row: dict[str, Any]) -> tuple[dt.datetime, dt.datetime]:
        created_at = moment_of(row.get("created_at")) or self.now
        return created_at, moment_of(row.get("updated_at")) or created_at

    def _extra(self, row: dict[str, Any], columns: frozenset[str], usual: frozenset[str]) -> dict[str, Any] | None:
        """What a row says beside its columns; what archives usually say and here is empty is not kept."""
        names = tuple(row)
        beside = self._beside.get(columns)
        if beside is None or beside.names != names:
            beside = self._beside[columns] = Beside.of(names, columns, usual)
        extra = {name: value for name in beside.usual if (value := row[name]) is not None and (value or value != [])}
        if beside.others:
            extra |= {name: row[name] for name in beside.others if row[name] is None or not layout.DROPPED.search(name)}
        for name, value in extra.items():
            if name in beside.people:
                extra[name] = self.people.find(value)
            elif isinstance(value, NESTED) and name not in FREE.get(columns, layout.NOT_FREE):
                extra[name] = self.people.settle(value, name)
        return extra or None


NESTED = (dict, list)
FALSE = ("", "false", "f", "0", "off")
NOTES = frozenset({"notes", "commit_notes"})  # what they are called where they stand
FOREIGN = ("_id", "_ids", "_html")
_MOMENTS = frozenset({"id", "created_at", "updated_at", "project_id", "cached_markdown_version"})
LABEL_COLUMNS = _MOMENTS | {"title", "color", "description"}
MILESTONE_COLUMNS = _MOMENTS | {"title", "description", "state", "iid", "start_date", "due_date", "events"}
ISSUE_COLUMNS = _MOMENTS | {
    "title",
    "description",
    "iid",
    "state",
    "state_id",
    "issue_type",
    "severity",
    "confidential",
    "discussion_locked",
    "due_date",
    "weight",
    "author_id",
    "assignee_id",
    "closed_at",
    "closed_by_id",
    "milestone",
    "events",
    "notes",
    "issue_assignees",
}
MERGE_REQUEST_COLUMNS = _MOMENTS | {
    "title",
    "description",
    "iid",
    "state",
    "state_id",
    "source_branch",
    "target_branch",
    "source_project_id",
    "target_project_id",
    "author_id",
    "milestone",
    "events",
    "notes",
}
SNIPPET_COLUMNS = _MOMENTS | {"title", "file_name", "content", "visibility_level", "author_id", "notes"}
NOTE_COLUMNS = _MOMENTS | {
    "note",
    "noteable_type",
    "noteable_id",
    "commit_id",
    "type",
    "attachment",
    "system",
    "confidential",
    "position",
    "author_id",
    "author",
    "events",
}
EVENT_COLUMNS = _MOMENTS | {"author_id", "action", "target_type", "push_event_payload"}
FREE = {MERGE_REQUEST_COLUMNS: layout.FREE["merge_requests"], NOTE_COLUMNS: layout.FREE["notes"]}
LABEL_USUAL = frozenset(layout.LABEL)
MILESTONE_USUAL = frozenset(layout.MILESTONE)
ISSUE_USUAL = frozenset(layout.ISSUE + layout.ISSUE_NESTED)
MERGE_REQUEST_USUAL = frozenset(layout.MERGE_REQUEST + layout.MERGE_REQUEST_NESTED)
SNIPPET_USUAL = frozenset(layout.SNIPPET + layout.SNIPPET_NESTED)
NOTE_USUAL = frozenset(layout.NOTE + layout.NOTE_NESTED)
EVENT_USUAL = frozenset(layout.EVENT)


def read(raw: bytes | TooLarge) -> Any:
    """A row of a line, or why it is none."""
    if isinstance(raw, TooLarge):
        return unreadable(raw.text)
    try:
        row = reader.loads(raw)
    except BadArchive:
        if reader.is_nested_too_deeply(raw):  # for whoever reads it, too
            return too_deep()
        raise
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and reader.too_deep(row):
        return too_deep()
    if b"\\" in raw and b"\\u0000" in raw:  # the first is found much quicker
        try:
            refuse_unstorable(row)
        except Refused as refused:
            return refused
    return row


def refuse_unstorable(row: Any, left: int = DEEPEST) -> None:
    """Raise ``Refused`` for text with a NUL, which no database of ours takes."""
    if isinstance(row, str):
        if "\0" in row:
            raise unreadable("string contains null byte")
    elif isinstance(row, NESTED):
        if left == 0:
            raise too_deep()
        for value in (*row, *row.values()) if isinstance(row, dict) else row:
            refuse_unstorable(value, left - 1)


def listed(rows: Any) -> Iterable[dict[str, Any]]:
    """The objects of an array that may be missing."""
    return [row for row in rows if isinstance(row, dict)] if rows and isinstance(rows, list) else ()


def text_of(value: Any) -> str | None:
    """Text; numbers are taken for theirs."""
    if value is None or isinstance(value, str):
        return value
    return bigint_json.dumps(value).decode()


def title_of(row: dict[str, Any]) -> str:
    """The title of a record, which has to have one of at most 255 characters."""
    title = text_of(row.get("title"))
    if title is None or not title.strip():
        raise invalid("Title can't be blank")
    if len(title) > LONGEST_TITLE:
        raise invalid(f"Title is too long (maximum is {LONGEST_TITLE} characters)")
    return title


def _each_once(rows: Any) -> Any:
    """Rows of which each names a person, without those that name one who was named before."""
    if not isinstance(rows, list):
        return rows
    once: dict[Any, Any] = {}
    for place, row in enumerate(rows):
        person = row.get("user_id") if isinstance(row, dict) else None
        once.setdefault((place,) if person is None else person, row)
    return list(once.values())


def _is_elsewhere(address: str) -> bool:
    """Whether a browser would go to another server for it, or take it for a script (section 7)."""
    return REMOTE.match(BLANKS.sub("", address).replace("\\", "/")) is not None


def is_set(value: Any) -> bool:
    """Whether a flag holds; who sees something may hang on it, so all does that is not plainly false."""
    return value not in (None, False, 0) if not isinstance(value, str) else value.lower() not in FALSE


def is_number(value: Any) -> TypeGuard[int]:
    """A whole number that a column holds."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER


def is_iid(value: Any) -> TypeGuard[int]:
    """A number within a project."""
    return is_number(value) and 0 < value <= LARGEST_IID


def moment_of(value: Any) -> dt.datetime | None:
    """A moment; nothing where there is none to be read."""
    if isinstance(value, str):
        return _known_moment(value) if len(value) <= LONGEST_KNOWN_MOMENT else _moment(value)
    return _known_moment(value) if is_number(value) else None


@functools.lru_cache(maxsize=1024)
def _known_moment(value: str | int) -> dt.datetime | None:
    # what happened together has the same moment, so that most are known
    return _moment(value)


def _moment(value: str | int) -> dt.datetime | None:
    if isinstance(value, int):
        return _since_epoch(value)
    try:
        moment = dt.datetime.fromisoformat(value.removesuffix(" UTC"))
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        # as mail and others write it; without a year it would become one of these days
        return read_time(value) if YEAR.search(value) else None


def _since_epoch(value: int) -> dt.datetime | None:
    """A number of seconds, or one so large that it has to be of milliseconds; small ones count something else."""
    seconds = value / 1000 if value >= MILLISECONDS else value
    return dt.datetime.fromtimestamp(seconds, dt.UTC) if FIRST_SECOND <= seconds < MILLISECONDS else None


def day_of(value: Any) -> dt.date | None:
    """A day; nothing where there is none to be read."""
    try:
        return dt.date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def issue_type_of(row: dict[str, Any]) -> str:
    """Whether an issue is an incident; since release 16 its type stands beside it."""
    said, beside = row.get("issue_type"), row.get("work_item_type")
    if said is None and isinstance(beside, dict):
        said = beside.get("base_type")
    return issues.INCIDENT if said == issues.INCIDENT else issues.ISSUE


def target_type_of(row: dict[str, Any], usual: str) -> str:
    """What an event says it is about; of notes there are several kinds."""
    named = row.get("target_type")
    return named if isinstance(named, str) and usual in NOTE_TYPES and named in NOTE_TYPES else usual


def action_of(value: Any) -> int:
    """What was done, as a word or as a number (section 4.1)."""
    try:
        return Action[value.upper()] if isinstance(value, str) else Action(value)
    except (KeyError, ValueError, TypeError):
        raise unreadable(f"'{str(value)[:50]}' is not a valid action") from None


def position_of(value: Any) -> dict[str, Any] | None:
    """Where in a change a note stands; older archives have it as text."""
    if isinstance(value, str):
        if len(value) > LONGEST_POSITION:
            return None
        try:
            value = bigint_json.loads(value)
        except ValueError:
            return None
        if reader.too_deep(value, DEEPEST - LEVELS_ABOVE):
            return None  # as nested data no row could have it
        refuse_unstorable(value)
    return value if isinstance(value, dict) and not reader.too_deep(value) else None


# which values the columns of issues hold: of others they have what they have of none, and ``extra`` the value itself
ISSUE_HOLDS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("issue_type", (issues.ISSUE, issues.INCIDENT).__contains__),
    ("severity", issues.SEVERITIES.__contains__),
    ("weight", is_number),
    ("due_date", lambda value: not value or day_of(value) is not None),
)
