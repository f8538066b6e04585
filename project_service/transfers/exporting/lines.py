"""What our rows become in an archive: the lines of its relations (archive format reference, section 4).

Rows are read as they are stored, some hundred at a time, with what hangs on them; what an archive once said and no
column holds (``extra``) comes back where it was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    Connection,
    LargeBinary,
    String,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.orm import InstrumentedAttribute

from project_service.areas.error_tracking.models import ErrorTrackingSetting
from project_service.areas.protected_tags.models import ProtectedTag
from project_service.domain.events.models import Action, Event
from project_service.domain.memberships import Membership, alive
from project_service.domain.namespaces import NamespaceAncestor
from project_service.domain.projects import DISABLED, ENABLED, FEATURES, Project
from project_service.domain.tracker import issues, milestones, others
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.domain.tracker.labels import DEFAULT_COLOR, LONGEST_TITLE, Label, text_color
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import NOTE_TYPES, Note
from project_service.domain.tracker.others import MergeRequest, Snippet
from project_service.domain.users import User
from project_service.kit import bigint_json
from project_service.transfers.archive import layout
from project_service.transfers.importing.publishing import LEVELS, access_of, levels_of
from project_service.transfers.importing.rows import LARGEST_INTEGER, issue_type_of
from project_service.transfers.models import ArchivedRow
from project_service.transfers.project_settings import (
    AUTO_DEVOPS,
    CI_CD,
    MERGE_METHODS,
    TAGS,
    WHERE_BROUGHT,
    changed_settings,
    merge_method_of,
    settings_in,
    tags_in,
)

NUMBERS_AT_ONCE = 10_000
AT_ONCE = 100  # issues, with their notes, events, labels and assignees
NOTES_AT_ONCE = 2000
BYTES_AT_ONCE, BYTES_OF_NOTES = 8 << 20, 32 << 20  # the largest note may have a megabyte, and most are small
BYTES_NESTED, LARGEST_NESTED = 16 << 20, 64 << 10  # of the labels and milestones that stay in memory, and of one
BYTES_OF_EVENT = 512  # about
READ_TOGETHER = 64 << 10  # characters
IN_MEMORY = 25  # bytes that one of nested data may take there: of an empty object, seventy in place of three
NO_ATTACHMENT = {"url": None}
PLACE_OF_EXTRA = -3  # among the columns of issues and notes: the moments are the last
Line = dict[str, Any]
Range = tuple[int, int]  # of numbers of issues: above the first, up to the second
WORDS = {int(action): action.name.lower() for action in Action}
REGISTRY = "container_registry_access_level"  # what the registry's switch is called since release 14


def usual(names: tuple[str, ...], nested: tuple[str, ...] = (), defaults: Line = layout.NOTHING) -> Line:
    """A row that says nothing yet, with all the keys that archives have."""
    return dict.fromkeys(("id", *names)) | dict.fromkeys(nested, EMPTY) | defaults


def filled(usually: Line, extra: Line | None) -> Line:
    """A row with what an archive once said of it."""
    return usually | extra if extra else usually.copy()


EMPTY: list[Line] = []  # in many rows; whoever has something to say puts a list of their own in its place
LABEL = usual(layout.LABEL)
MILESTONE = usual(layout.MILESTONE)
ISSUE = usual(layout.ISSUE, layout.ISSUE_NESTED, layout.ISSUE_DEFAULTS)
MERGE_REQUEST = usual(layout.MERGE_REQUEST, layout.MERGE_REQUEST_NESTED, layout.MERGE_REQUEST_DEFAULTS)
SNIPPET = usual(layout.SNIPPET, layout.SNIPPET_NESTED)
NOTE = usual(layout.NOTE, layout.NOTE_NESTED)
EVENT = usual(layout.EVENT)
MADE = {"milestones": MILESTONE, "issues": ISSUE, "merge_requests": MERGE_REQUEST, "snippets": SNIPPET}
INSIDE = {"notes": NOTE, "events": EVENT}
# by what one that stands elsewhere is known again
BRIEF_LABEL = ("id", "title", "project_id", "created_at", "updated_at", "type")
BRIEF_MILESTONE = ("id", "title", "project_id", "due_date", "created_at", "updated_at", "state", "iid", "start_date")


def brief(relation: str, line: Any) -> Any:
    """A row that is too much, without the usual names of which it says nothing: whoever reads it takes it for the same.

    Rows that are kept as they came have none.
    """
    if relation not in MADE:
        return line
    said = _said(line, MADE[relation])
    if isinstance(said.get("milestone"), dict):
        said["milestone"] = _said(said["milestone"], MILESTONE)
    return said


def _said(row: Any, usually: Line) -> Any:
    if not isinstance(row, dict):
        return row
    said = {name: value for name, value in row.items() if name not in usually or value != usually[name]}
    for name in INSIDE.keys() & said.keys():
        if isinstance(said[name], list):
            said[name] = [_said(each, INSIDE[name]) for each in said[name]]
    return said


def read_json(stored: str | None) -> Any:
    """Nested data; nothing where none is stored."""
    return bigint_json.loads(stored) if stored else None


def read_each(stored: Iterable[str | None]) -> Iterator[Any]:
    """The same of many rows; small ones are read together, for one by one they take four times as long."""
    together: list[str] = []
    size = 0
    for text in stored:
        together.append(text or "null")
        size += len(together[-1])
        if size > READ_TOGETHER:
            yield from bigint_json.loads(f"[{','.join(together)}]")
            together, size = [], 0
    yield from bigint_json.loads(f"[{','.join(together)}]")


class Notes(dict[int, list[Line]]):
    """The notes under things, a part of them at a time: those of things whose ids follow one another."""

    def __init__(self, reader: Reader, noteable_type: str, ids: Iterable[int], rows: Sequence[Any]) -> None:
        super().__init__()
        self.reader = reader
        self.noteable_type = noteable_type
        self.left = set(ids)  # whose notes have not been read yet
        self.here: set[int] = set()
        self._take(rows)

    def __missing__(self, number: int) -> list[Line]:
        if number in self.here:
            return []
        if number not in self.left:  # the order of ids is mostly that of what is asked for, but not always
            return self.reader.lines_of_notes(self.noteable_type, self._all_of(number)).get(number, [])
        while number in self.left:
            self._take(self.reader.rows("some notes", noteable_type=self.noteable_type, ids=sorted(self.left)))
        return self.get(number, [])

    def _take(self, rows: Sequence[Any]) -> None:
        """Have the notes of all things that these rows are complete of; they come in the order of the things' ids."""
        before, self.left = self.left, set()
        if len(rows) > self.reader.notes_at_once:
            first, last = rows[0][0], rows[-1][0]
            if first == last:
                rows = self._all_of(first)
                self.left = {number for number in before if number > last}
            else:
                rows = [row for row in rows if row[0] != last]
                self.left = {number for number in before if number >= last}
        self.here = before - self.left
        self.clear()
        self.update(self.reader.lines_of_notes(self.noteable_type, rows))

    def _all_of(self, number: int) -> Sequence[Any]:
        return self.reader.rows("notes", noteable_type=self.noteable_type, ids=[number])


class Reader:
    """Reads a project as lines, all from one moment: the transaction of the connection."""

    def __init__(self, connection: Connection, project: Project, *, with_group_members: bool) -> None:
        self.connection = connection
        self.project = project
        self.with_group_members = with_group_members
        self.sqlite = connection.dialect.name == "sqlite"
        # as they are nested in other rows
        self.labels: dict[str, Line] = {}
        self.milestones: dict[int, Line] = {}
        self.left_for_nested = BYTES_NESTED
        self.readers: dict[str, Callable[[], Iterator[Line]]] = {
            "labels": self._labels,
            "milestones": self._milestones,
            "issues": self._issues,
            "snippets": self._snippets,
            "project_members": self._members,
            "merge_requests": self._merge_requests,
            "protected_tags": self._protected_tags,
            "error_tracking_setting": self._error_tracking,
            "project_feature": self._features,
            "auto_devops": self._auto_devops,
            "ci_cd_settings": self._ci_cd,
        }
        self.notes_at_once = self._at_once(
            Note, Note.body, Note.position, Note.extra, most=NOTES_AT_ONCE, size=BYTES_OF_NOTES
        )
        self.statements = self._statements()
        of_notes = exists().where(Event.project_id == project.id, Event.target_type.in_(NOTE_TYPES))
        self.notes_have_events = bool(connection.scalar(select(of_notes)))
        self._load()

    def rows(self, name: str, **values: Any) -> Sequence[Any]:
        """The rows of one of the statements that are executed for every portion."""
        return self.connection.execute(self.statements[name], values).all()

    def relations(self) -> list[str]:
        """The relations to write: those of the format, and what else an archive brought."""
        brought = select(ArchivedRow.relation).where(ArchivedRow.project_id == self.project.id).distinct()
        others_too = set(self.connection.scalars(brought)) - {*layout.RELATIONS, layout.PROJECT}
        return [*layout.RELATIONS, *sorted(others_too)]

    def lines(self, relation: str) -> Iterator[Line]:
        """The rows of a relation."""
        reader = self.readers.get(relation)
        return reader() if reader is not None else self._archived(relation)

    def count(self) -> int:
        """How many rows there are, nested ones not counted; for the progress."""
        tables: tuple[Any, ...] = (Label, Milestone, Issue, MergeRequest, Snippet, ArchivedRow)
        counted = (select(func.count()).where(model.project_id == self.project.id) for model in tables)
        return sum(self.connection.scalar(statement) or 0 for statement in counted)

    def attributes(self, description: str | None) -> Line:
        """The project itself: as it came, with what it is now."""
        project = self.project
        line = self._only(layout.PROJECT)
        if project.tag_list != tags_in(line):
            line |= {name: project.tag_list for name in TAGS if name in line}
        for name in ("name", "path", "namespace_id", "creator_id", "id", "default_branch"):
            line.pop(name, None)
        settings = project.attributes or {}
        line |= {
            "description": description or project.description,
            "visibility_level": int(project.visibility),
            "archived": project.archived,
        }
        line |= {name: now for name, now in self.changed.items() if name in line or name not in WHERE_BROUGHT}
        method = settings.get("merge_method")
        # of several ways to say the same, the one that an archive had stays
        is_said = not line.keys().isdisjoint(MERGE_METHODS) and (merge_method_of(line) or "merge") == method
        if method is not None and not is_said:
            line |= dict(zip(MERGE_METHODS, (method == "ff", method in ("ff", "rebase_merge")), strict=True))
        if "build_git_strategy" in settings:
            line["build_allow_git_fetch"] = settings["build_git_strategy"] == "fetch"
        return line

    @functools.cached_property
    def changed(self) -> Line:
        """The settings that are not those of the archive the project came from, if it came from one."""
        brought = settings_in(*map(self._only, (layout.PROJECT, layout.AUTO_DEVOPS, layout.CI_CD)))
        return changed_settings(self.project.attributes or {}, brought)

    def _only(self, relation: str) -> Line:
        # the last: what an archive had as a relation named as the project was once kept before its attributes
        kept = ArchivedRow.project_id == self.project.id, ArchivedRow.relation == relation
        return self._brought(self.connection.scalar(select(func.max(ArchivedRow.id)).where(*kept)))

    def _load(self) -> None:
        """What other rows are nested with: labels and milestones."""
        for line in self._label_lines():
            del line["textColor"]
            self.labels[line["title"]] = self._nested(line, BRIEF_LABEL)
        self.plain_labels = list(self._plain_labels())
        self.labels |= {line["title"]: line for line in self.plain_labels}
        self.milestones = {line["id"]: self._nested(line, BRIEF_MILESTONE) for line in self._milestones()}

    def _nested(self, line: Line, names: tuple[str, ...]) -> Line:
        """A row as other rows have it; one that is large stands whole among its own kind only, which is read first."""
        # what every transfer makes anew must not decide, or the next archive would say it in another way
        measured = bigint_json.dumps(line | dict.fromkeys(("id", "project_id", "events")))
        size = len(measured) + BYTES_OF_EVENT * len(line.get("events", ()))
        if size <= min(LARGEST_NESTED, self.left_for_nested):
            self.left_for_nested -= size
            return line
        return {name: line[name] for name in names}

    def _label_lines(self) -> Iterator[Line]:
        """The labels as they stand by themselves: nested ones do not say the color of their text."""
        columns = (Label.id, Label.title, Label.color, Label.description, Label.extra)
        statement = select(*columns, self._iso(Label.created_at), self._iso(Label.updated_at))
        statement = statement.where(Label.project_id == self.project.id)
        at_once = self._at_once(Label, Label.color, Label.description, Label.extra)
        for rows in self._portions(statement, Label.id, at_once):
            for number, title, color, description, extra, created_at, updated_at in rows:
                yield (
                    {"textColor": text_color(color)}
                    | filled(LABEL, extra)
                    | {
                        "id": number,
                        "title": title,
                        "color": color,
                        "project_id": self.project.id,
                        "created_at": created_at,
                        "updated_at": updated_at,
                        "template": bool((extra or {}).get("template")),
                        "description": description,
                        "type": "ProjectLabel",
                        "priorities": (extra or {}).get("priorities", []),
                    }
                )

    def _plain_labels(self) -> Iterator[Line]:
        """The words that issues are marked with and nobody has described: whoever imports them makes labels of them."""
        described = select(Label.title).where(Label.project_id == self.project.id)
        statement = (
            select(IssueLabel.title, self._iso(func.min(Issue.created_at)))
            .join(Issue, Issue.id == IssueLabel.issue_id)
            .where(
                Issue.project_id == self.project.id,
                IssueLabel.title.not_in(described),
                func.length(IssueLabel.title) <= LONGEST_TITLE,  # nobody would take in issues that have others
            )
            .group_by(IssueLabel.title)
            .order_by(IssueLabel.title)
        )
        for title, created_at in self._execute(statement):
            yield LABEL | {
                "title": title,
                "color": DEFAULT_COLOR,
                "project_id": self.project.id,
                "created_at": created_at,
                "updated_at": created_at,
                "template": False,
                "type": "ProjectLabel",
                "priorities": [],
            }

    def _labels(self) -> Iterator[Line]:
        yield from self._label_lines()
        for line in self.plain_labels:
            yield line | {"textColor": text_color(DEFAULT_COLOR)}

    def _milestones(self) -> Iterator[Line]:
        statement = select(
            Milestone.iid,
            Milestone.id,
            Milestone.title,
            Milestone.description,
            Milestone.state,
            cast(Milestone.start_date, String),
            cast(Milestone.due_date, String),
            Milestone.extra,
            self._iso(Milestone.created_at),
            self._iso(Milestone.updated_at),
        ).where(Milestone.project_id == self.project.id)
        at_once = self._at_once(Milestone, Milestone.description, Milestone.extra)
        for rows in self._portions(statement, Milestone.iid, at_once):
            events = self._events_of("milestone_events", [row[1] for row in rows])
            for iid, number, title, description, state, start_date, due_date, extra, created_at, updated_at in rows:
                yield filled(MILESTONE, extra) | {
                    "id": number,
                    "title": title,
                    "project_id": self.project.id,
                    "description": description,
                    "due_date": due_date,
                    "created_at": created_at,
                    "updated_at": updated_at,
                    "state": state,
                    "iid": iid,
                    "start_date": start_date,
                    "events": events.get(number, []),
                }

    def _issues(self) -> Iterator[Line]:
        for after, until in self._ranges_of_issues():
            rows = self.rows("issues", after=after, until=until)
            ids = [row[1] for row in rows]
            noted = self._notes(issues.TARGET, ids)
            events = self._events_of("issue_events", ids)
            labelled, assigned = (_grouped(self.rows(name, ids=ids)) for name in ("labels", "assignees"))
            yield from self._issue_lines(rows, noted, events, labelled, assigned)

    def _ranges_of_issues(self) -> list[Range]:
        """As many issues in each as ``_at_once`` would read, but that large ones do not count for others."""
        sizes = select(Issue.iid, self._bytes_of(Issue.description, Issue.extra))
        sizes = sizes.where(Issue.project_id == self.project.id).order_by(Issue.iid)
        ranges: list[Range] = []
        begin = last = -1
        count = size = 0
        for iid, bytes_of_one in self.connection.execute(sizes, execution_options={"yield_per": NUMBERS_AT_ONCE}):
            if count == AT_ONCE or (count and size + bytes_of_one > BYTES_AT_ONCE):
                ranges.append((begin, last))
                begin, count, size = last, 0, 0
            last, count, size = iid, count + 1, size + bytes_of_one
        return [*ranges, (begin, LARGEST_INTEGER)]

    def _issue_lines(
        self,
        rows: Sequence[Any],
        noted: Mapping[int, list[Line]],
        events: dict[int, list[Line]],
        labelled: dict[int, list[Any]],
        assigned: dict[int, list[Any]],
    ) -> Iterator[Line]:
        extras = read_each(row[PLACE_OF_EXTRA] for row in rows)
        for said, (
            iid,
            number,
            title,
            description,
            state,
            issue_type,
            severity,
            confidential,
            locked,
            due_date,
            weight,
            author_id,
            closed_at,
            closed_by_id,
            milestone_id,
            _,
            created_at,
            updated_at,
        ) in zip(extras, rows, strict=True):
            line = filled(ISSUE, said)
            line["id"] = number
            line["title"] = title
            line["author_id"] = author_id
            line["project_id"] = self.project.id
            line["created_at"] = created_at
            line["updated_at"] = updated_at or created_at
            line["description"] = description
            line["iid"] = iid
            line["confidential"] = bool(confidential)
            line["discussion_locked"] = None if locked is None else bool(locked)
            line["closed_at"] = closed_at
            line["closed_by_id"] = closed_by_id
            # what an archive said and no column held stays until something else is said
            if issue_type != issues.ISSUE or line["issue_type"] is None:
                line["issue_type"] = issue_type
            beside = {"work_item_type": line.get("work_item_type")}
            if beside["work_item_type"] and issue_type_of(beside) != issue_type:
                line["work_item_type"] = {"base_type": issue_type}
            if weight is not None:
                line["weight"] = weight
            if due_date is not None:
                line["due_date"] = due_date
            if severity != issues.UNKNOWN:
                line["severity"] = severity
            line["state"] = state
            line["events"] = events.get(number, [])
            line["notes"] = noted[number]
            line["label_links"] = self._label_links(line["label_links"], labelled.get(number, []), line)
            line["issue_assignees"] = [{"user_id": user_id} for user_id in assigned.get(number, ())]
            if milestone_id in self.milestones:
                line["milestone"] = self.milestones[milestone_id]
            yield line

    def _merge_requests(self) -> Iterator[Line]:
        statement = select(
            MergeRequest.iid,
            MergeRequest.id,
            MergeRequest.title,
            MergeRequest.description,
            MergeRequest.state,
            MergeRequest.source_branch,
            MergeRequest.target_branch,
            MergeRequest.author_id,
            MergeRequest.milestone_id,
            MergeRequest.extra,
            self._iso(MergeRequest.created_at),
            self._iso(MergeRequest.updated_at),
        ).where(MergeRequest.project_id == self.project.id)
        at_once = self._at_once(MergeRequest, MergeRequest.description, MergeRequest.extra)
        for rows in self._portions(statement, MergeRequest.iid, at_once):
            ids = [row[1] for row in rows]
            noted = self._notes(others.MERGE_REQUEST, ids)
            events = self._events_of("merge_request_events", ids)
            for (
                iid,
                number,
                title,
                description,
                state,
                source,
                target,
                author_id,
                milestone_id,
                extra,
                *moments,
            ) in rows:
                line = filled(MERGE_REQUEST, extra)
                line |= {
                    "id": number,
                    "target_branch": target,
                    "source_branch": source,
                    "author_id": author_id,
                    "title": title,
                    "created_at": moments[0],
                    "updated_at": moments[1],
                    "target_project_id": self.project.id,
                    "iid": iid,
                    "description": description,
                    "merge_when_pipeline_succeeds": False,
                    "state": state,
                    "events": events.get(number, []),
                    "notes": noted[number],
                }
                if "source_project_id" not in (extra or {}):
                    line["source_project_id"] = self.project.id
                if milestone_id in self.milestones:
                    line["milestone"] = self.milestones[milestone_id]
                yield line

    def _snippets(self) -> Iterator[Line]:
        statement = select(
            Snippet.id,
            Snippet.title,
            Snippet.file_name,
            Snippet.content,
            Snippet.visibility,
            Snippet.author_id,
            Snippet.extra,
            self._iso(Snippet.created_at),
            self._iso(Snippet.updated_at),
        ).where(Snippet.project_id == self.project.id)
        for rows in self._portions(statement, Snippet.id, self._at_once(Snippet, Snippet.content, Snippet.extra)):
            noted = self._notes(others.SNIPPET, [row[0] for row in rows])
            for number, title, file_name, content, visibility, author_id, extra, created_at, updated_at in rows:
                yield filled(SNIPPET, extra) | {
                    "id": number,
                    "title": title,
                    "content": content,
                    "author_id": author_id,
                    "project_id": self.project.id,
                    "created_at": created_at,
                    "updated_at": updated_at,
                    "file_name": file_name,
                    "type": "ProjectSnippet",
                    "visibility_level": int(visibility),
                    "notes": noted[number],
                }

    def _members(self) -> Iterator[Line]:
        """Direct members; those of the groups above as well when whoever exports administers these."""
        above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == self.project.namespace_id)
        here = Membership.project_id == self.project.id
        place = or_(here, Membership.namespace_id.in_(above)) if self.with_group_members else here
        statement = (
            select(
                Membership.id,
                Membership.access_level,
                Membership.user_id,
                Membership.created_by_id,
                cast(Membership.expires_at, String),
                self._iso(Membership.created_at),
                self._iso(Membership.updated_at),
                User.email,
                User.username,
            )
            .join(User, User.id == Membership.user_id)
            .where(place, User.deleting_since.is_(None))
            # a role that has ended names somebody whom rows may speak of, and counts where there is no other
            .order_by(alive().desc(), Membership.project_id.is_(None), Membership.access_level.desc(), Membership.id)
        )
        seen: set[int] = set()
        for number, level, user_id, made_by, expires_at, created_at, updated_at, email, username in self._execute(
            statement
        ):
            if user_id in seen:
                continue
            seen.add(user_id)
            yield {
                "id": number,
                "access_level": level,
                "source_type": "Project",
                "user_id": user_id,
                "notification_level": 3,
                "created_at": created_at,
                "updated_at": updated_at,
                "created_by_id": made_by,
                "invite_email": None,
                "invite_token": None,
                "invite_accepted_at": None,
                "requested_at": None,
                "expires_at": expires_at,
                "ldap": False,
                "override": False,
                "user": {"id": user_id, "email": email, "username": username},
            }
        yield from self._archived(layout.MEMBERS)

    def _protected_tags(self) -> Iterator[Line]:
        # the rows themselves may be large
        brought = {line.get("name"): number for number, line in self._archived_rows(layout.PROTECTED_TAGS)}
        columns = (ProtectedTag.id, ProtectedTag.name, ProtectedTag.create_access_levels)
        for number, name, levels, created_at, updated_at in self._all(ProtectedTag, *columns):
            moments = {"created_at": created_at, "updated_at": updated_at}
            line = {
                "create_access_levels": [
                    {"access_level": level, **moments, "user_id": None, "group_id": None} for level in levels
                ]
            }
            said = self._brought(brought[name]) if name in brought else {}
            # else the tag was protected anew
            if levels_of(said) == levels and said.get("created_at") in (None, created_at):
                line |= said
            yield {"id": number, "project_id": self.project.id, "name": name, **moments} | line

    def _error_tracking(self) -> Iterator[Line]:
        setting = ErrorTrackingSetting
        beside = next(self._archived(layout.ERROR_TRACKING), {})
        statement = select(setting.api_url, setting.project_name, setting.organization_name, setting.integrated)
        for api_url, name, organization, integrated in self._execute(
            statement.where(setting.project_id == self.project.id)
        ):
            # releases before 14 know no such key
            now = {"integrated": integrated} if integrated or "integrated" in beside else {}
            yield (
                beside
                | now
                | {
                    "project_id": self.project.id,
                    "api_url": api_url,
                    "project_name": name,
                    "organization_name": organization,
                }
            )

    def _features(self) -> Iterator[Line]:
        numbers = {word: number for number, word in LEVELS.items()}
        line = next(self._archived(layout.FEATURES), {"project_id": self.project.id})
        for feature in FEATURES:
            name = f"{feature}_access_level"
            access = getattr(self.project, name)
            if line.get(name) is None or access_of(feature, line[name]) != access:  # else it is as it was brought
                line[name] = numbers[access]
        has_registry = self.changed.get("container_registry_enabled")
        if has_registry is not None and line.get(REGISTRY) is not None and bool(line[REGISTRY]) != has_registry:
            line[REGISTRY] = numbers[ENABLED if has_registry else DISABLED]
        yield line

    def _auto_devops(self) -> Iterator[Line]:
        now = {theirs: self.changed[ours] for ours, theirs in AUTO_DEVOPS.items() if ours in self.changed}
        brought = next(self._archived(layout.AUTO_DEVOPS), None)
        if brought is not None:
            yield brought | now
        elif now:
            yield {"project_id": self.project.id, **now}

    def _ci_cd(self) -> Iterator[Line]:
        now = {theirs: self.changed[ours] for ours, theirs in CI_CD.items() if ours in self.changed}
        for line in self._archived(layout.CI_CD):
            # writers say nothing of these but with the project (section 4)
            yield line | {name: value for name, value in now.items() if name in line}

    def _brought(self, number: int | None) -> Line:
        found: Line = self.connection.scalar(select(ArchivedRow.data).where(ArchivedRow.id == number)) or {}
        return found

    def _archived(self, relation: str) -> Iterator[Line]:
        for _, line in self._archived_rows(relation):
            yield line

    def _archived_rows(self, relation: str) -> Iterator[tuple[int, Line]]:
        these = ArchivedRow.relation == relation
        statement = select(ArchivedRow.id, ArchivedRow.data).where(ArchivedRow.project_id == self.project.id, these)
        for rows in self._portions(
            statement, ArchivedRow.id, self._at_once(ArchivedRow, ArchivedRow.data, these=these)
        ):
            yield from rows

    def _notes(self, noteable_type: str, ids: Sequence[int]) -> Notes:
        """The notes under things, by what they are under."""
        return Notes(self, noteable_type, ids, self.rows("some notes", noteable_type=noteable_type, ids=ids))

    def lines_of_notes(self, noteable_type: str, rows: Sequence[Any]) -> dict[int, list[Line]]:
        """The notes that rows become, by what they are under."""
        found: dict[int, list[Line]] = {}
        by_id: dict[int, Line] = {}
        authors: dict[str | None, Line] = {}  # of a few people there are many notes
        project_id = self.project.id
        extras = read_each(row[PLACE_OF_EXTRA] for row in rows)
        for said, (
            noteable_id,
            number,
            body,
            commit_id,
            kind,
            attachment,
            system,
            confidential,
            position,
            author_id,
            author,
            _,
            created_at,
            updated_at,
        ) in zip(extras, rows, strict=True):
            line = filled(NOTE, said)
            line["id"] = number
            line["note"] = body
            line["noteable_type"] = noteable_type
            line["author_id"] = author_id
            line["created_at"] = created_at
            line["updated_at"] = updated_at or created_at
            line["project_id"] = project_id
            line["attachment"] = NO_ATTACHMENT if attachment is None else {"url": attachment}
            line["commit_id"] = commit_id
            line["system"] = bool(system)
            if position:
                line["position"] = read_json(position)
            if confidential:
                line["confidential"] = True
            line["type"] = kind
            line["author"] = authors.get(author) or authors.setdefault(author, {"name": author})
            by_id[number] = line
            found.setdefault(noteable_id, []).append(line)
        if self.notes_have_events:
            for number, events in self._events_of("note_events", list(by_id)).items():
                by_id[number]["events"] = events
        return found

    def _events_of(self, statement: str, ids: Sequence[int]) -> dict[int, list[Line]]:
        """The events of things, by what they are about."""
        found: dict[int, list[Line]] = {}
        rows = self.rows(statement, ids=ids)
        for project_id, target_id, number, author_id, kind, action, data, extra, created_at in rows:
            if project_id != self.project.id:
                continue  # whatever its target is said to be, it is nothing of this project
            line = {
                "id": number,
                "project_id": project_id,
                "author_id": author_id,
                "created_at": created_at,
                "updated_at": created_at,
                "target_type": kind,
                "group_id": None,
                "fingerprint": None,
                "action": WORDS.get(action, action),
            }
            line |= read_json(extra) or {}
            if data := read_json(data):
                line["push_event_payload"] = data
            found.setdefault(target_id, []).append(line)
        return found

    def _statements(self) -> dict[str, Any]:
        """The statements that are executed for every portion of rows."""
        ids: Any = bindparam("ids", expanding=True)
        issue_rows = select(
            Issue.iid,
            Issue.id,
            Issue.title,
            Issue.description,
            Issue.state,
            Issue.issue_type,
            Issue.severity,
            Issue.confidential,
            Issue.discussion_locked,
            cast(Issue.due_date, String),
            Issue.weight,
            Issue.author_id,
            self._iso(Issue.closed_at),
            Issue.closed_by_id,
            Issue.milestone_id,
            self._text(Issue.extra),
            self._iso(Issue.created_at),
            self._iso_of_change(Issue),
        )
        note_rows = select(
            Note.noteable_id,
            Note.id,
            Note.body,
            Note.commit_id,
            Note.type,
            Note.attachment,
            Note.system,
            Note.confidential,
            self._text(Note.position),
            Note.author_id,
            User.name,
            self._text(Note.extra),
            self._iso(Note.created_at),
            self._iso_of_change(Note),
        ).outerjoin(User, User.id == Note.author_id)
        event_rows = select(
            Event.project_id,
            Event.target_id,
            Event.id,
            Event.author_id,
            Event.target_type,
            Event.action,
            self._text(Event.data),
            self._text(Event.extra),
            self._iso(Event.created_at),
        ).order_by(Event.created_at, Event.id)
        # in the order they were written in, which is not always that of their dates
        notes = note_rows.where(Note.noteable_type == bindparam("noteable_type"), Note.noteable_id.in_(ids)).order_by(
            Note.noteable_id, Note.id
        )
        about = Event.target_id.in_(ids)
        return {
            "issues": issue_rows.where(
                Issue.project_id == self.project.id, Issue.iid > bindparam("after"), Issue.iid <= bindparam("until")
            ).order_by(Issue.iid),
            "notes": notes,
            "some notes": notes.limit(self.notes_at_once + 1),
            "milestone_events": event_rows.where(Event.target_type == milestones.TARGET, about),
            "issue_events": event_rows.where(Event.target_type == issues.TARGET, about),
            "merge_request_events": event_rows.where(Event.target_type == others.MERGE_REQUEST, about),
            "note_events": event_rows.where(or_(*(Event.target_type == kind for kind in NOTE_TYPES)), about),
            "labels": select(IssueLabel.issue_id, IssueLabel.title)
            .where(IssueLabel.issue_id.in_(ids))
            .order_by(IssueLabel.title),
            "assignees": select(IssueAssignee.issue_id, IssueAssignee.user_id)
            .where(IssueAssignee.issue_id.in_(ids))
            .order_by(IssueAssignee.user_id),
        }

    def _label_links(self, brought: Any, titles: Sequence[str], issue: Line) -> list[Line]:
        """The labels of an issue now: a link as it was brought, or one of ours."""
        known: dict[str, Line] = {}
        for link in brought if isinstance(brought, list) else ():
            if isinstance(link, dict) and isinstance(link.get("label"), dict):
                known.setdefault(str(link["label"].get("title")), link)
        links = []
        for title in filter(self.labels.__contains__, titles):
            link = known.get(title) or {
                "target_type": issues.TARGET,
                "created_at": issue["updated_at"],
                "updated_at": issue["updated_at"],
            }
            links.append(link | {"label": self.labels[title]})
        return links

    def _iso(self, column: Any) -> Any:
        """A moment as archives have it, made by the database: that is quicker than by us, and there are many."""
        if self.sqlite:
            return func.replace(func.substr(type_coerce(column, String), 1, 23), " ", "T") + literal("Z")
        return func.to_char(func.timezone("UTC", column), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')

    def _iso_of_change(self, model: Any) -> Any:
        """When a row was last changed; nothing, which is made sooner, for those that never were."""
        return case((model.updated_at != model.created_at, self._iso(model.updated_at)))

    def _all(self, model: Any, *columns: Any) -> Iterator[Any]:
        """All rows of a small table that belong to the project, with the moments at the end."""
        statement = select(*columns, self._iso(model.created_at), self._iso(model.updated_at))
        return iter(self._execute(statement.where(model.project_id == self.project.id).order_by(model.id)))

    def _at_once(
        self, model: Any, *columns: Any, these: Any = None, most: int = AT_ONCE, size: int | None = None
    ) -> int:
        """How many rows of the project are read together: no more than fit if all were as large as the largest."""
        bytes_of_one = self._bytes_of(*columns)
        conditions = [model.project_id == self.project.id, *(() if these is None else (these,))]
        largest = self.connection.scalar(select(func.max(bytes_of_one)).where(*conditions)) or 1
        return max(1, min(most, (size or BYTES_AT_ONCE) // max(1, largest)))

    def _bytes_of(self, *columns: Any) -> Any:
        return sum((func.coalesce(self._size(column), 0) for column in columns), literal(0))

    def _size(self, column: Any) -> Any:
        """The bytes that a text takes, or nested data may take."""
        weight = IN_MEMORY if isinstance(column.type, JSON) else 1
        if self.sqlite:
            return func.length(cast(column, LargeBinary)) * weight
        return func.octet_length(cast(column, String)) * weight

    def _portions(self, statement: Any, key: InstrumentedAttribute[int], at_once: int) -> Iterator[Sequence[Any]]:
        """The rows in the order of their first column, some at a time, each portion found by the end of the last."""
        last = -1
        ordered = statement.order_by(key).limit(at_once)
        while rows := list(self._execute(ordered.where(key > last))):
            last = rows[-1][0]
            yield rows
            rows.clear()  # they are used, and two portions at once would take twice as much

    def _text(self, column: Any) -> Any:
        """Nested data as the text it is stored as."""
        return type_coerce(column, String) if self.sqlite else cast(column, String)

    def _execute(self, statement: Any) -> Sequence[Any]:
        return self.connection.execute(statement).all()


def _grouped(rows: Sequence[Any]) -> dict[int, list[Any]]:
    """The second column by the first."""
    found: dict[int, list[Any]] = {}
    for number, each in rows:
        found.setdefault(number, []).append(each)
    return found
