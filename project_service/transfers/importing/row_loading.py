"""Loading of the rows of an archive, in portions with a checkpoint each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, or_, select, update

from project_service.domain.accounts.users import User
from project_service.domain.events.models import Event
from project_service.domain.namespaces import groups_above
from project_service.domain.projects import Project
from project_service.domain.repositories.releases import Release
from project_service.domain.tracker import milestones
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.labels import Label
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.kit import jobs
from project_service.kit.db.base import Base
from project_service.kit.db.bulk import Writer
from project_service.kit.db.session import allow_asynchronous_commit, db, unit_of_work
from project_service.transfers.archive import layout, reader
from project_service.transfers.archive.contents import BadArchive, Unpacked, UnreadRow
from project_service.transfers.importing.mapping import map_row
from project_service.transfers.importing.mapping.context import ImportContext, ProjectState
from project_service.transfers.importing.mapping.parsing import parse_row
from project_service.transfers.importing.mapping.tables import COLUMNS
from project_service.transfers.importing.mapping.values import is_iid
from project_service.transfers.importing.refusals import RowRefused, unreadable
from project_service.transfers.importing.state import STOPPED, check_in_progress, stored_import
from project_service.transfers.importing.user_mapping import UserMapping, is_invitation, map_users
from project_service.transfers.models import ProjectImport

MAX_LINES_AT_ONCE = 2000
MAX_BYTES_AT_ONCE = 5 << 20
LINES_PARSED_AT_ONCE = 50  # bounds memory: parsed rows take several times the size of their lines
END_OF_RELATION = 2**62  # the checkpoint behind the last line
MODELS_WITH_IIDS: dict[str, type[Issue] | type[MergeRequest]] = {"issues": Issue, "merge_requests": MergeRequest}

Line = tuple[int, bytes | UnreadRow]  # with its number


@dataclass(frozen=True, slots=True)
class Portion:
    """The rows that some lines of a relation are mapped to, by table, and the checkpoint behind them."""

    relation: str
    line: int
    line_count: int
    rows: Mapping[type[Base], Sequence[tuple[Any, ...]]]
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class RowLoader:
    """Loads the rows behind the checkpoint of an import."""

    import_id: int
    unpacked: Unpacked
    context: ImportContext
    relations: list[str]
    first_line: int  # of the first relation
    is_by_admin: bool

    def load(self) -> None:
        """Insert the rows, each portion in one transaction with its checkpoint."""
        writers = {model: Writer(model, *columns) for model, columns in COLUMNS.items()}
        for portion in itertools.chain.from_iterable(map(self._portions, self.relations)):
            with jobs.step():
                allow_asynchronous_commit()
                check_in_progress(self.import_id)
                for model, writer in writers.items():  # referenced tables come first
                    writer.write(portion.rows.get(model, ()))
                checkpoint = update(ProjectImport).where(ProjectImport.id == self.import_id)
                checkpoint = checkpoint.values(
                    relation=portion.relation,
                    line=portion.line,
                    rows_done=ProjectImport.rows_done + portion.line_count,
                    relations_done=ProjectImport.relations_done + int(portion.is_last),
                )
                db.session.execute(checkpoint, execution_options={"synchronize_session": False})

    def _portions(self, relation: str) -> Iterator[Portion]:
        self.context.state.start_relation(*self._stored_iids(relation))
        after = self.first_line if relation == self.relations[0] else 0
        object_line = self._object_line(relation)
        for lines in _batched(reader.rows_of(self.unpacked, relation, after)):
            yield Portion(relation, lines[-1][0], len(lines), self._map(relation, lines, object_line))
        yield Portion(relation, END_OF_RELATION, 0, {}, is_last=True)

    def _object_line(self, relation: str) -> int | None:
        """The line that counts of a relation that is a single object (archive format reference, section 3)."""
        if relation not in layout.OBJECTS:
            return None
        return next((line for line, _ in reader.rows_of(self.unpacked, relation)), None)

    def _map(
        self, relation: str, lines: Sequence[Line], object_line: int | None
    ) -> Mapping[type[Base], Sequence[tuple[Any, ...]]]:
        self.context.state.iids.clear()
        for start in range(0, len(lines), LINES_PARSED_AT_ONCE):
            rows = [(line, parse_row(raw)) for line, raw in lines[start : start + LINES_PARSED_AT_ONCE]]
            self._look_up_iids(relation, rows)
            for line, row in rows:
                if isinstance(row, RowRefused):
                    self.context.record_failure(relation, line, row)
                elif object_line is not None and line != object_line:
                    self.context.record_failure(relation, line, unreadable("There can be one row only"))
                elif relation != layout.MEMBERS or (self.is_by_admin and is_invitation(row)):
                    map_row(self.context, relation, line, row)
        return self.context.take_batch().rows

    def _stored_iids(self, relation: str) -> tuple[int, int]:
        """The highest iid of the rows of a relation that are stored, and the lowest provisional one."""
        model = MODELS_WITH_IIDS.get(relation)
        if model is None:
            return 0, 0
        of_project = model.project_id == self.context.project_id
        with unit_of_work(write=False):
            highest, lowest = db.session.execute(
                select(func.max(model.iid), func.min(model.iid)).where(of_project)
            ).one()
        return max(highest or 0, 0), min(lowest or 0, 0)

    def _look_up_iids(self, relation: str, rows: Iterable[tuple[int, Any]]) -> None:
        """Find out which iids of these rows are stored already."""
        model, state = MODELS_WITH_IIDS.get(relation), self.context.state
        iids = [row["iid"] for _, row in rows if isinstance(row, dict) and is_iid(row.get("iid"))]
        if model is None or not iids or min(iids) > state.highest_iid:  # mostly they ascend
            return
        of_project = model.project_id == self.context.project_id
        with unit_of_work(write=False):
            stored = db.session.scalars(select(model.iid).where(of_project, model.iid.in_(iids))).all()
        state.iids |= dict.fromkeys(stored)


def prepare_loading(import_id: int, project_id: int, unpacked: Unpacked) -> RowLoader:
    """Return the loader of what is left to import; raises ``BadArchive`` if the import has been stopped."""
    relations = [name for name in reader.relations_of(unpacked) if name not in layout.IMPORTED_AT_THE_END]
    members, row_count = _parsed_rows(unpacked, layout.MEMBERS), reader.count_rows(unpacked)
    with jobs.step():
        record = stored_import(import_id)
        if record is None:
            raise BadArchive(STOPPED)
        importer = db.session.get(User, record.user_id or 0)
        if importer is None:
            raise BadArchive("The user who started the import is gone")
        users, is_by_admin = map_users(importer, members), importer.admin
        context = _new_context(project_id, users, record)
        done = relations.index(record.relation) if record.relation in relations else 0
        first_line = record.line if record.relation in relations else 0
        record.rows_total, record.relations_total, record.relations_done = row_count, len(relations), done
    return RowLoader(import_id, unpacked, context, relations[done:], first_line, is_by_admin)


def _batched(rows: Iterator[Line]) -> Iterator[list[Line]]:
    lines: list[Line] = []
    size = 0
    for line, raw in rows:
        lines.append((line, raw))
        size += 0 if isinstance(raw, UnreadRow) else len(raw)
        if len(lines) == MAX_LINES_AT_ONCE or size > MAX_BYTES_AT_ONCE:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def _parsed_rows(unpacked: Unpacked, relation: str) -> Iterator[Any]:
    for _, raw in reader.rows_of(unpacked, relation):
        row = parse_row(raw)
        if not isinstance(row, RowRefused):
            yield row


def _new_context(project_id: int, users: UserMapping, record: ProjectImport) -> ImportContext:
    # the same moment in every attempt, so that rows without a timestamp are recognized
    return ImportContext(project_id, users, _stored_state(project_id), record.created_at)


def _stored_state(project_id: int) -> ProjectState:
    """What former attempts have stored of the project."""
    namespace_id = select(Project.namespace_id).where(Project.id == project_id).scalar_subquery()
    usable = or_(Label.project_id == project_id, Label.group_id.in_(groups_above(namespace_id)))
    labels = db.session.execute(
        select(Label.title, Label.id).where(usable).order_by(Label.project_id.nulls_first())
    ).all()
    stored = db.session.execute(
        select(Milestone.title, Milestone.id, Milestone.iid).where(Milestone.project_id == project_id)
    ).all()
    inherited = db.session.execute(
        select(Milestone.title, Milestone.id).where(Milestone.group_id.in_(groups_above(namespace_id)))
    ).all()
    tags = db.session.scalars(select(Release.tag).where(Release.project_id == project_id))
    events = select(Event.target_id, Event.action, Event.author_id, Event.created_at).where(
        Event.target_type == milestones.TARGET, Event.target_id.in_([milestone_id for _, milestone_id, _ in stored])
    )
    return ProjectState(
        labels=dict(labels),
        milestones=dict(inherited) | {title: milestone_id for title, milestone_id, _ in stored},
        group_milestones=frozenset(milestone_id for _, milestone_id in inherited),
        release_tags=dict.fromkeys(tags),
        milestone_iids={iid: None for _, _, iid in stored},
        milestone_events={
            (target_id or 0, action, author_id, moment): None
            for target_id, action, author_id, moment in db.session.execute(events)
        },
    )
