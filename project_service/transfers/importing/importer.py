"""The import of an archive, step by step; whoever takes it over goes on where the last step ended.

Everything the archive brings is written in batches, each with its checkpoint, and stays hidden (``Project.loading``)
until one short step publishes it. A failed import takes all of it away again.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import func, select, update

from project_service.domain import instance_settings, removal, repositories
from project_service.domain.events.models import Event
from project_service.domain.projects import Project, folder_of
from project_service.domain.repositories import BadBundle, Repository
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.labels import Label
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.others import Design, MergeRequest, Snippet
from project_service.domain.users import User
from project_service.kit import clock, jobs
from project_service.kit.db.base import Base
from project_service.kit.db.bulk import Writer
from project_service.kit.db.session import allow_asynchronous_commit, db, insert, unit_of_work
from project_service.kit.http.errors import FULL
from project_service.kit.security.outgoing_http.client import RequestFailed
from project_service.kit.security.outgoing_http.rules import Blocked
from project_service.kit.storage import storage
from project_service.transfers.archive import extraction, layout, reader
from project_service.transfers.archive.extraction import BadArchive, TooLarge, Unpacked
from project_service.transfers.importing import publishing
from project_service.transfers.importing.refusals import Refused, unreadable
from project_service.transfers.importing.rows import (
    COLUMNS,
    LONGEST_MESSAGE,
    Batch,
    Known,
    Translator,
    is_iid,
    read,
)
from project_service.transfers.importing.user_mapping import is_only_asked, people_of
from project_service.transfers.models import (
    ENDED,
    FAILED,
    FAILING,
    LOADING,
    SCHEDULED,
    STARTED,
    UNDER_WAY,
    WAITING,
    ArchivedRow,
    ImportFailure,
    ProjectFile,
    ProjectImport,
)
from project_service.transfers.outcomes import error_text
from project_service.transfers.remote import downloads
from project_service.transfers.workdir import now_and_then, remove_leftovers, version_of, workplace

LINES_AT_ONCE, LINES_IN_CACHE = 2000, 50
BYTES_AT_ONCE = 5 << 20
FILES_AT_ONCE = 50
SOURCE_PROJECT, TARGET_PROJECT = (
    re.compile(rb'"%s_project_id":\s*(\d+)[,}]' % side) for side in (b"source", b"target")
)
STOPPED = "The import was stopped"
NUMBERED_BY_IID: dict[str, type[Issue] | type[MergeRequest]] = {"issues": Issue, "merge_requests": MergeRequest}
# in the order in which nothing points to what is gone already
CONTENT: tuple[type[Base], ...] = (
    Event,
    Note,
    Design,
    Issue,
    MergeRequest,
    Snippet,
    Milestone,
    Label,
    ArchivedRow,
    ProjectFile,
    Repository,
)

Raw = tuple[int, bytes | TooLarge]  # a line with its number
Rows = Mapping[type[Base], Sequence[tuple[Any, ...]]]
log = structlog.get_logger(__name__)


def run(import_id: int, project_id: int) -> None:
    """Bring an import to its end: finished, failed, or gone with its project."""
    phase = _start(import_id)
    if phase == LOADING:
        try:
            with workplace(f"import-{import_id}") as folder:
                _import(import_id, project_id, folder)
        except (BadArchive, BadBundle, Blocked, RequestFailed, publishing.NotPermitted) as error:
            start_failing(import_id, str(error))
            phase = FAILING
        except OSError as error:
            if error.errno not in FULL:
                raise
            start_failing(import_id, "No space left on device")
            phase = FAILING
    if phase == FAILING:
        _take_back(import_id, project_id)
    _clear_up(import_id, project_id)


def start_failing(import_id: int, *texts: str) -> None:
    """Say why an import failed; what it brought is taken away from then on."""
    with jobs.step():
        found = _stored(import_id)
        if found is not None and found.phase in UNDER_WAY:
            found.phase = FAILING
            found.project.import_error = error_text(found.project, texts)


def _stored(import_id: int) -> ProjectImport | None:
    """The row as it is stored now; nothing when the project was removed meanwhile."""
    return db.session.get(ProjectImport, import_id, populate_existing=True)


def _start(import_id: int) -> str:
    with jobs.step():
        found = _stored(import_id)
        if found is None or found.project.deleting_since is not None:
            return ENDED
        if found.phase == WAITING:
            found.phase = LOADING
        if found.project.import_status == SCHEDULED:
            found.project.import_status = STARTED
        return found.phase


def _import(import_id: int, project_id: int, folder: Path) -> None:
    check = now_and_then(functools.partial(_check_wanted, import_id))
    archive = _fetch(import_id, folder, check)
    unpacked = extraction.unpack(archive, folder / "unpacked", check=check)
    archive.unlink()
    unpacked.check()
    reader.split_legacy(unpacked)
    plan = _plan(import_id, project_id, unpacked)
    with ThreadPoolExecutor(max_workers=1) as pool:  # git works while rows are read
        restored = {
            kind: pool.submit(_restore, repositories.root(), f"{project_id}-{kind}", bundle)
            for kind, bundle in unpacked.bundles.items()
        }
        try:
            _load(import_id, plan.portions(), plan.writers)
        except BadArchive:
            for future in restored.values():  # a bad bundle is what is told first
                future.result()
            raise
        _keep_repositories(project_id, unpacked, restored)
    _keep_files(project_id, unpacked)
    _check_snippets(project_id, unpacked)
    with jobs.step():
        _tell_of_files(project_id, unpacked)
        found = _stored(import_id)
        if found is None:
            raise BadArchive(STOPPED)
        publishing.publish(found, unpacked, plan.translator.people)


def _fetch(import_id: int, folder: Path, check: Callable[[], None]) -> Path:
    with unit_of_work(write=False):
        found = db.session.get_one(ProjectImport, import_id)
        storage_name, url = found.storage_name, found.url
        policy = instance_settings.outgoing_policy()
    archive = folder / "archive.tar.gz"
    if storage_name is not None:
        storage().lend(storage_name, archive)
    else:
        downloads.download(url or "", archive, policy, check)
    return archive


def _check_wanted(import_id: int) -> None:
    with unit_of_work(write=False):
        _still_wanted(import_id)


def _still_wanted(import_id: int) -> None:
    """Raise ``BadArchive`` when the project is being removed, or the import has been stopped."""
    wanted = select(ProjectImport.id).join(ProjectImport.project)
    wanted = wanted.where(ProjectImport.phase == LOADING, Project.deleting_since.is_(None))
    if db.session.scalar(wanted.where(ProjectImport.id == import_id)) is None:
        raise BadArchive(STOPPED)


@dataclass(frozen=True, slots=True)
class Portion:
    """What some lines of a relation become: rows by table, and how far they reach."""

    relation: str
    line: int
    count: int
    rows: Rows
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is left to import, behind the checkpoint."""

    unpacked: Unpacked
    translator: Translator
    relations: list[str]
    line: int
    by_admin: bool
    writers: dict[type[Base], Writer]

    def portions(self) -> Iterator[Portion]:
        """The portions; each has to be written before the next is made."""
        return itertools.chain.from_iterable(map(self._of_relation, self.relations))

    def _of_relation(self, relation: str) -> Iterator[Portion]:
        self.translator.known.start_relation(*self._iids_of(relation))
        after = self.line if relation == self.relations[0] else 0
        only = self._only_line(relation)
        for lines in _some_at_once(reader.rows_of(self.unpacked, relation, after)):
            yield Portion(relation, lines[-1][0], len(lines), self._translated(relation, lines, only))
        yield Portion(relation, LAST_LINE, 0, {}, is_last=True)

    def _only_line(self, relation: str) -> int | None:
        """The line that counts of what is a single object (section 3); nothing where many rows are."""
        if relation not in layout.OBJECTS:
            return None
        return next((line for line, _ in reader.rows_of(self.unpacked, relation)), None)

    def _translated(self, relation: str, lines: Sequence[Raw], only: int | None) -> Rows:
        self.translator.known.iids.clear()
        for rows in _a_few_at_once(lines):
            self._see_numbers(relation, rows)
            for line, row in rows:
                if isinstance(row, Refused):
                    self.translator.fail(relation, line, row)
                elif only is not None and line != only:
                    self.translator.fail(relation, line, unreadable("There can be one row only"))
                elif relation != layout.MEMBERS or (self.by_admin and is_only_asked(row)):
                    self.translator.take(relation, line, row)
        batch, self.translator.batch = self.translator.batch, Batch()
        return batch.rows

    def _iids_of(self, relation: str) -> tuple[int, int]:
        """The highest number that rows of a relation have here, and the lowest of the provisional ones."""
        model = NUMBERED_BY_IID.get(relation)
        if model is None:
            return 0, 0
        with unit_of_work(write=False):
            here = model.project_id == self.translator.project_id
            highest, lowest = db.session.execute(select(func.max(model.iid), func.min(model.iid)).where(here)).one()
            return max(highest or 0, 0), min(lowest or 0, 0)

    def _see_numbers(self, relation: str, rows: Iterable[tuple[int, Any]]) -> None:
        """See which numbers of these rows are taken already."""
        model, known = NUMBERED_BY_IID.get(relation), self.translator.known
        given = [row["iid"] for _, row in rows if isinstance(row, dict) and is_iid(row.get("iid"))]
        # mostly they rise, and none can be taken
        if model is None or not given or min(given) > known.highest_iid:
            return
        here = model.project_id == self.translator.project_id
        with unit_of_work(write=False):
            taken = db.session.scalars(select(model.iid).where(here, model.iid.in_(given))).all()
        known.iids |= dict.fromkeys(taken)


def _plan(import_id: int, project_id: int, unpacked: Unpacked) -> _Plan:
    relations = [name for name in reader.relations_of(unpacked) if name not in layout.SETTLED_AT_THE_END]
    members, rows = _parsed(unpacked, layout.MEMBERS), reader.count_rows(unpacked)
    with jobs.step():
        found = _stored(import_id)
        if found is None:
            raise BadArchive(STOPPED)
        importer = db.session.get(User, found.user_id or 0)
        if importer is None:
            raise BadArchive("The user who started the import is gone")
        people, by_admin = people_of(importer, members), importer.admin
        # of all attempts the same, so that what has no moment of its own is known again
        translator = Translator(project_id, people, _known(project_id), found.created_at)
        relation, line = found.relation, found.line
        done = relations.index(relation) if relation in relations else 0
        found.rows_total, found.relations_total, found.relations_done = rows, len(relations), done
        line = line if relation in relations else 0
    writers = {model: Writer(model, *columns) for model, columns in COLUMNS.items()}
    return _Plan(unpacked, translator, relations[done:], line, by_admin, writers)


def _load(import_id: int, portions: Iterable[Portion], writers: Mapping[type[Base], Writer]) -> None:
    """Write the rows, each portion with its checkpoint."""
    for portion in portions:
        with jobs.step():
            allow_asynchronous_commit()
            _still_wanted(import_id)
            for model, writer in writers.items():  # first what others point to, whichever row brought it
                writer.write(portion.rows.get(model, ()))
            reached = (
                update(ProjectImport)
                .where(ProjectImport.id == import_id)
                .values(
                    relation=portion.relation,
                    line=portion.line,
                    rows_done=ProjectImport.rows_done + portion.count,
                    relations_done=ProjectImport.relations_done + int(portion.is_last),
                )
            )
            db.session.execute(reached, execution_options={"synchronize_session": False})


LAST_LINE = 2**62


def _some_at_once(rows: Iterator[Raw]) -> Iterator[list[Raw]]:
    lines: list[Raw] = []
    size = 0
    for line, raw in rows:
        lines.append((line, raw))
        size += 0 if isinstance(raw, TooLarge) else len(raw)
        if len(lines) == LINES_AT_ONCE or size > BYTES_AT_ONCE:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def _a_few_at_once(lines: Sequence[Raw]) -> Iterator[list[tuple[int, Any]]]:
    """The rows of lines, so few at a time that all that is made of them stays in the processor's cache."""
    for start in range(0, len(lines), LINES_IN_CACHE):
        yield [(line, read(raw)) for line, raw in lines[start : start + LINES_IN_CACHE]]


def _parsed(unpacked: Unpacked, relation: str) -> Iterator[Any]:
    for _, raw in reader.rows_of(unpacked, relation):
        row = read(raw)
        if not isinstance(row, Refused):
            yield row


def _known(project_id: int) -> Known:
    """What a project has already, for whoever goes on with its import."""
    rows = db.session.execute(select(Label.title, Label.id).where(Label.project_id == project_id))
    labels: dict[str, int] = dict(rows.all())
    milestones = db.session.execute(
        select(Milestone.title, Milestone.id, Milestone.iid).where(Milestone.project_id == project_id)
    ).all()
    told = select(Event.target_id, Event.action, Event.author_id, Event.created_at).where(
        Event.target_type == "Milestone", Event.target_id.in_([number for _, number, _ in milestones])
    )
    return Known(
        labels=labels,
        milestones={title: number for title, number, _ in milestones},
        milestone_iids={iid: None for _, _, iid in milestones},
        milestone_events={(of or 0, action, by, at): None for of, action, by, at in db.session.execute(told)},
    )


def _restore(root: Path, name: str, bundle: Path) -> tuple[str, Path]:
    version = version_of(bundle)
    target = root / f"{name}-{version}.git"
    if not target.exists():
        repositories.unbundle(bundle, target)
    repositories.check(target)
    return version, target


def _keep_repositories(project_id: int, unpacked: Unpacked, restored: dict[str, Future[tuple[str, Path]]]) -> None:
    for kind, future in restored.items():
        (version, target), bundle = future.result(), unpacked.bundles[kind]
        branch = None
        if kind == repositories.CODE:
            branch = repositories.default_branch(target)
            if (made := _with_branches_of_forks(unpacked, target)) is not None:
                bundle, version = made, version_of(made)
        name = f"{folder_of(project_id)}/{kind}-{version}.bundle"
        storage().keep(bundle, name)
        size = bundle.stat().st_size
        with jobs.step():
            row = insert(Repository).values(
                project_id=project_id,
                kind=kind,
                version=version,
                storage_name=name,
                size=size,
                created_at=clock.now(),
                updated_at=clock.now(),
            )
            db.session.execute(row.on_conflict_do_nothing(index_elements=["project_id", "kind"]))
            if branch:
                db.session.get_one(Project, project_id).default_branch = branch


def _with_branches_of_forks(unpacked: Unpacked, restored: Path) -> Path | None:
    """The bundle of the code made anew with branches of forks; nothing when none are missing."""
    wanted = _branches_of_forks(unpacked)
    return repositories.with_branches(restored, wanted, unpacked.folder) if wanted else None


def _branches_of_forks(unpacked: Unpacked) -> dict[str, str]:
    """The branches of open merge requests whose forks stayed behind, and the commits they are at (section 6.3)."""
    branches: dict[str, str] = {}
    for _, raw in reader.rows_of(unpacked, "merge_requests"):
        if isinstance(raw, TooLarge) or _is_of_one_project(raw):
            continue
        row = read(raw)
        if isinstance(row, dict) and row.get("source_project_id") != row.get("target_project_id"):
            name, commit = row.get("source_branch"), row.get("diff_head_sha")
            if row.get("state") == "opened" and isinstance(name, str) and isinstance(commit, str):
                branches.setdefault(name, commit)
    return branches


def _is_of_one_project(raw: bytes) -> bool:
    # nearly all are, and reading a row whole takes much longer
    source, target = SOURCE_PROJECT.search(raw), TARGET_PROJECT.search(raw)
    return source is not None and target is not None and source[1] == target[1]


def _keep_files(project_id: int, unpacked: Unpacked) -> None:
    types = reader.lfs_types_of(unpacked)
    carried = list(unpacked.carried.values())
    for start in range(0, len(carried), FILES_AT_ONCE):
        rows = []
        for one in carried[start : start + FILES_AT_ONCE]:
            name = f"{folder_of(project_id)}/files/{hashlib.sha256(one.path.encode()).hexdigest()}"
            storage().keep(one.place, name)
            values = {"project_id": project_id, "path": one.path, "storage_name": name, "size": one.size}
            rows.append(values | {"data": types.get(one.path.removeprefix("lfs-objects/"))})
        with jobs.step():
            statement = insert(ProjectFile).on_conflict_do_nothing(index_elements=["project_id", "path"])
            db.session.execute(statement, rows)


def _check_snippets(project_id: int, unpacked: Unpacked) -> None:
    """Raise ``BadBundle`` when the repository of a snippet is none (import reference, section 7).

    It is named after what its snippet says (archive format, section 1). One that is named after no snippet is nobody's,
    and is carried along whatever it is.
    """
    bad = bad_snippet_bundles(unpacked)
    if not bad:
        return
    found = select(Snippet.id, Snippet.title, Snippet.extra, Snippet.created_at, Snippet.updated_at)
    found = (
        found.where(Snippet.project_id == project_id).order_by(Snippet.id).execution_options(yield_per=FILES_AT_ONCE)
    )
    with unit_of_work(write=False):
        for number, title, extra, *moments in db.session.execute(found):
            if bundle_of_snippet(title, extra, *moments) in bad:
                raise BadBundle(f"Invalid repository bundle for snippet with id {number}")


def bad_snippet_bundles(unpacked: Unpacked) -> set[str]:
    """The files that stand where repositories of snippets do, and are none."""
    return {path for path, one in unpacked.carried.items() if _is_bad_bundle(path, one.place)}


def bundle_of_snippet(title: str, extra: dict[str, Any] | None, *moments: dt.datetime) -> str:
    """Where the repository of a snippet stands."""
    said = [title, (extra or {}).get("description") or "", *(f"{one:%Y-%m-%d %H:%M:%S} UTC" for one in moments)]
    return layout.snippet_bundle("".join(map(str, said)))


def _is_bad_bundle(path: str, place: Path) -> bool:
    if not layout.SNIPPET_BUNDLE.fullmatch(path):
        return False
    try:
        repositories.check_head(place)
    except BadBundle:
        return True
    return False


def _tell_of_files(project_id: int, unpacked: Unpacked) -> None:
    """List the files that are left out for their names, once, whoever takes the import over."""
    for name in unpacked.left_out:
        refused = unreadable(f"The file is left out for its name: {name!r}"[:LONGEST_MESSAGE])
        failure = ImportFailure(
            project_id=project_id,
            exception_class=refused.kind,
            exception_message=str(refused),
            source=refused.source,
            relation_name=name.partition("/")[0],
        )
        db.session.add(failure)


def _take_back(import_id: int, project_id: int) -> None:
    """Remove what a failed import has brought; the project stays, empty."""
    for model in CONTENT:
        removal.empty_table(model, project_id, *((Event.target_type.is_not(None),) if model is Event else ()))
    repositories.forget(project_id)
    with jobs.step():
        found = _stored(import_id)
        if found is None:  # the project was removed meanwhile
            return
        found.phase, found.ended_at = ENDED, clock.now()
        found.project.import_status, found.project.loading = FAILED, False
        found.project.default_branch = None


def _clear_up(import_id: int, project_id: int) -> None:
    with unit_of_work(write=False):
        found = _stored(import_id)
        storage_name, url = (found.storage_name, found.url) if found else (None, None)
    if storage_name:
        storage().delete(storage_name)
    if storage_name or url:
        with jobs.step():  # an address may carry a signature, and has done its work
            forgotten = update(ProjectImport).where(ProjectImport.id == import_id).values(storage_name=None, url=None)
            db.session.execute(forgotten)
    remove_leftovers(project_id)
