"""How long importing and exporting a big project takes, against what no program can save, and what memory it takes.

``python -m benchmarks.transfers [--database sqlite|postgresql]`` takes an archive of 100,000 issues with three notes
each (made on first use and kept) through, each in a process of its own and in turn: the floor of an import (gunzip,
parse, insert of the same values into tables without indexes), the import, the export, and ``tar czf`` of its tree. An
import of 10,000 issues shows whether memory grows; the same archive with a repository of 200 MB is compared with what
git takes for a copy and a check of it, and for a bundle, on top.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import orjson
import psycopg
from flask import Flask
from sqlalchemy import make_url
from zlib_ng import gzip_ng_threaded

from benchmarks.cache import CACHE, application_on, home, key_of, new_database, once, plain, settle
from benchmarks.figures import Effort, Figure, Target, conclude, effort_of, parser
from benchmarks.load import memory_of
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import UserNamespace
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note
from project_service.kit.db.base import Base
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.storage import storage
from project_service.transfers import jobs
from project_service.transfers.archive import layout
from project_service.transfers.importing.mapping.tables import COLUMNS
from project_service.transfers.models import ProjectExport, ProjectImport
from tests.contract.service import REPOSITORY

SMALL, LARGE = 10_000, 100_000
MOMENT = "2021-02-15T15:56:00.645Z"
WORDS = [
    "lorem",
    "ipsum",
    "dolor",
    "sit",
    "amet",
    "consectetur",
    "adipiscing",
    "elit",
    "sed",
    "do",
    "eiusmod",
    "tempor",
    "incididunt",
    "ut",
    "labore",
    "et",
    "dolore",
]
NOTES = 3
ROUNDS_IN_ONE = 5  # a round takes half a minute: there is one for five of the others
IMPORT_TARGET = Target(3.0, 2.0, at_most=True)
PEAK_TARGET = Target(200, 150, "MiB", at_most=True)
GROWTH_TARGET = Target(1.25, 1.15, at_most=True)
EXPORT_TARGET = Target(0.8, 0.5, at_most=True)
SIZE_TARGET = Target(1.2, 1.15, at_most=True)
EXPORT_MEMORY_TARGET = Target(60, 40, "MiB", at_most=True)
BUNDLE_TARGET = Target(1.5, 1.25, at_most=True)
STEPS = ("floor", "import", "export", "tar")
STEPS_WITH_BUNDLE = ("floor", "clone", "import", "export", "tar", "bundle")
COMMITS, BYTES_OF_A_COMMIT = 2000, 100_000
MIB = 1 << 20

Told = dict[str, float]


def main() -> None:
    """Measure; or, as a child, do one thing and tell what it took."""
    arguments = parser(__doc__)
    arguments.add_argument("--do", choices=STEPS_WITH_BUNDLE, help=argparse.SUPPRESS)
    arguments.add_argument("--archive", type=Path, help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments.add_argument("--url", default="", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.do:
        _tell(options.do, options.archive, options.folder, options.url)
    else:
        sys.exit(conclude(measure(options.database, effort_of(options))))


def measure(database: str, effort: Effort) -> list[Figure]:
    """The large project there and back, with a repository too, and the small one there."""
    small, large, bundled = archive_of(SMALL), archive_of(LARGE), archive_of(LARGE, with_bundle=True)
    little = _round(database, small, STEPS[:2])["import"]["memory"]
    turns = range(max(1, effort.rounds // ROUNDS_IN_ONE))
    rounds = [_round(database, large, STEPS) for _ in turns]
    with_bundle = [_round(database, bundled, STEPS_WITH_BUNDLE) for _ in turns]
    name = f"{LARGE:,} issues, {LARGE * NOTES:,} notes"

    def each(step: str, what: str, over: str = "") -> tuple[float, ...]:
        return tuple(told[step][what] / (told[over][what] if over else 1) for told in rounds)

    def both(step: str, over: str) -> str:
        return f"{min(each(step, 'seconds')):.1f} / {min(each(over, 'seconds')):.1f} s"

    def with_git(title: str, step: str, target: Target, *over: str) -> Figure:
        pairs = [(told[step]["seconds"], sum(told[other]["seconds"] for other in over)) for told in with_bundle]
        took = " / ".join(f"{min(some):.1f}" for some in zip(*pairs, strict=True))
        return Figure(title, database, tuple(one / other for one, other in pairs), target, f"{took} s")

    peaks = tuple(memory / MIB for memory in each("import", "memory"))
    growth = tuple(memory / little for memory in each("import", "memory"))
    above = tuple(memory / MIB for memory in each("export", "above"))
    return [
        Figure(
            f"import of {name} vs. floor",
            database,
            each("import", "seconds", "floor"),
            IMPORT_TARGET,
            both("import", "floor"),
        ),
        Figure(f"import of {name}: most memory", database, peaks, PEAK_TARGET),
        Figure(f"import: memory at {LARGE:,} issues vs. {SMALL:,}", database, growth, GROWTH_TARGET),
        Figure(
            "export vs. tar czf: time", database, each("export", "seconds", "tar"), EXPORT_TARGET, both("export", "tar")
        ),
        Figure("export vs. tar czf: size", database, each("export", "bytes", "tar"), SIZE_TARGET),
        Figure("export: memory above idle", database, above, EXPORT_MEMORY_TARGET),
        with_git("import with 200 MB of git vs. floor, clone and fsck", "import", BUNDLE_TARGET, "floor", "clone"),
        with_git("export with 200 MB of git vs. tar czf and git bundle", "export", EXPORT_TARGET, "tar", "bundle"),
    ]


def archive_of(issues: int, *, with_bundle: bool = False) -> Path:
    """An archive of so many issues, made if it is missing."""
    path = home("archives") / f"issues-{issues}{'-with-bundle' if with_bundle else ''}.tar.gz"
    key = key_of(make_archive, _issues, _make_bundle, str(layout.ISSUE), str(layout.NOTE), layout.FORMAT, str(WORDS))
    once(path, key, lambda: make_archive(path, issues, with_bundle=with_bundle))
    return path


def make_archive(path: Path, issues: int, *, with_bundle: bool) -> None:
    """An archive of so many issues, the same in every run."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree" / "project"
        tree.mkdir(parents=True)
        (Path(folder) / "VERSION").write_text(layout.FORMAT)
        (Path(folder) / "tree" / "project.json").write_text('{"description":"big"}')
        with (tree / "issues.ndjson").open("wb") as file:
            for row in _issues(issues):
                file.write(orjson.dumps(row) + b"\n")
        if with_bundle:
            _make_bundle(Path(folder) / "project.bundle")
        subprocess.run(["tar", "czf", str(path.resolve()), "."], cwd=folder, check=True)


def _make_bundle(bundle: Path) -> None:
    """A repository of files that cannot be compressed, a new version of one of a hundred with each commit."""
    draw = random.Random(2)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", folder], check=True)
        command = ["git", "-C", folder, "fast-import", "--quiet"]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as git:
            for number in range(COMMITS):
                content, message = draw.randbytes(BYTES_OF_A_COMMIT), f"Commit {number}"
                head = f"commit refs/heads/main\ncommitter Ann <ann@example.org> {1613404560 + number} +0000\n"
                head += f"data {len(message)}\n{message}\nM 644 inline file-{number % 100}\ndata {len(content)}\n"
                assert git.stdin is not None
                git.stdin.write(head.encode() + content + b"\n")
        subprocess.run(["git", "-C", folder, "bundle", "create", "--quiet", str(bundle), "--all"], check=True)


def _issues(count: int) -> Iterator[dict[str, Any]]:
    draw = random.Random(1)
    issue = dict.fromkeys(layout.ISSUE) | {name: [] for name in layout.ISSUE_NESTED}
    note = dict.fromkeys(layout.NOTE) | {name: [] for name in layout.NOTE_NESTED}
    moments = {"created_at": MOMENT, "updated_at": MOMENT}

    def text(words: int) -> str:
        return " ".join(draw.choices(WORDS, k=words))

    for iid in range(1, count + 1):
        notes = [
            note
            | moments
            | {"id": iid * 10 + number, "note": text(25), "author_id": iid % 5, "noteable_type": "Issue"}
            | {"discussion_id": f"{iid * 10 + number:040x}", "system": False, "author": {"name": "Administrator"}}
            for number in range(NOTES)
        ]
        yield (
            issue
            | moments
            | {"id": iid, "iid": iid, "title": text(6), "description": text(40), "author_id": iid % 5}
            | {"confidential": False, "relative_position": iid * 513, "issue_type": "issue", "state": "opened"}
            | {"notes": notes}
        )


def _round(database: str, archive: Path, steps: tuple[str, ...]) -> dict[str, Told]:
    """What each step took, one after the other, on an empty database."""
    url = new_database("transfers_run") if database == "postgresql" else ""
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name)
        _prepare(archive, folder, url)
        return {step: _child(step, archive, folder, url) for step in steps}


def _child(step: str, archive: Path, folder: Path, url: str) -> Told:
    """Do one step in a process of its own."""
    settle("postgresql" if url else "sqlite")
    command = [sys.executable, "-m", "benchmarks.transfers", "--do", step]
    command += ["--archive", str(archive), "--folder", str(folder), "--url", url]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=REPOSITORY)
    told: Told = json.loads(done.stdout.splitlines()[-1])
    return told


def _prepare(archive: Path, folder: Path, url: str) -> None:
    """A user, an empty project and its waiting import."""
    app = _app(folder, url)
    with app.app_context(), unit_of_work():
        Base.metadata.create_all(db.engine)
        user = User(username="root", name="Root", email="admin@example.com", admin=True)
        db.session.add(user)
        db.session.flush()
        namespace = UserNamespace(name="Root", path="root", owner=user)
        path_registry.store_namespace(namespace, None, AssertionError())
        project = Project(name="big", path="big", namespace=namespace, namespace_id=namespace.id, loading=True)
        path_registry.store_project(project, AssertionError())
        with storage().write("imports/big.tar.gz") as target, archive.open("rb") as source:
            shutil.copyfileobj(source, target)
        row = ProjectImport(project_id=project.id, project=project, user_id=user.id, storage_name="imports/big.tar.gz")
        db.session.add(row)


def _app(folder: Path, url: str) -> Flask:
    return application_on(folder / "data", url)


def _tell(step: str, archive: Path, folder: Path, url: str) -> None:
    """Do one step and print what it took: seconds, bytes made, the most memory, and how far above idle that is."""
    above = 0
    if step == "floor":
        seconds, size = _floor(archive, folder, url)
    elif step == "tar":
        seconds, size = _tar(folder)
    elif step == "import":
        seconds, size = _import(folder, url)
    elif step == "clone":
        seconds, size = _clone(archive, folder)
    elif step == "bundle":
        seconds, size = _bundle(folder)
    else:
        seconds, size, above = _export(folder, url)
    print(json.dumps({"seconds": seconds, "bytes": size, "memory": most_memory(), "above": above}))


def most_memory() -> int:
    """The most memory that this process, or any it has forked, ever had, in bytes."""
    forked = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return max(memory_of("self", "VmHWM"), forked)


def _floor(archive: Path, folder: Path, url: str) -> tuple[float, int]:
    """Gunzip, parse and insert, with nothing of the program."""
    began = time.perf_counter()
    insert: Any
    if url:
        connection: Any = psycopg.connect(plain(url))
        insert, dialect = _copy, make_url(url).get_dialect()()
    else:
        connection = sqlite3.connect(folder / "floor.db")
        connection.execute("PRAGMA journal_mode=WAL")
        insert, dialect = _executemany, make_url("sqlite://").get_dialect()()
    for model in (Issue, Note):
        columns = [model.__table__.c[name] for name in COLUMNS[model]]
        kinds = (f"{column.name} {column.type.compile(dialect)}" for column in columns)
        connection.execute(f"CREATE TABLE f_{model.__tablename__} ({', '.join(kinds)})")
    unpacked: IO[bytes] = gzip_ng_threaded.open(str(archive), "rb")  # type: ignore[no-untyped-call]  # it has no types
    with unpacked as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            if member.name.endswith("issues.ndjson"):
                _floor_rows(connection, insert, tar.extractfile(member))
    connection.commit()
    connection.close()
    return time.perf_counter() - began, 0


def _floor_rows(connection: Any, insert: Any, file: Any) -> None:
    issues, notes = [], []
    for line in file:
        row = orjson.loads(line)
        issues.append(
            (
                *(row["id"], 1, row["iid"], row["title"], row["description"], row["state"], row["issue_type"]),
                *("unknown", False, None, row["due_date"], row["weight"], 3, row["author_id"], None, None, None),
                *("{}", MOMENT, MOMENT),
            )
        )
        notes += [
            (
                *(note["id"], 1, "Issue", row["id"], None, None, note["note"], None, False, False, None, 1),
                *(f'{{"discussion_id":"{note["discussion_id"]}"}}', note["created_at"], note["updated_at"]),
            )
            for note in row["notes"]
        ]
        if len(issues) == 1000:
            insert(connection, "f_issues", issues)
            insert(connection, "f_notes", notes)
            issues, notes = [], []
    insert(connection, "f_issues", issues)
    insert(connection, "f_notes", notes)


def _executemany(connection: Any, table: str, rows: list[Any]) -> None:
    if rows:
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _copy(connection: Any, table: str, rows: list[Any]) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _import(folder: Path, url: str) -> tuple[float, int]:
    app = _app(folder, url)
    with app.app_context():
        began = time.perf_counter()
        jobs.import_project(1)
        seconds = time.perf_counter() - began
        status = db.session.get_one(Project, 1).import_status
        if status != "finished":
            raise SystemExit(f"the import is {status}: {db.session.get_one(Project, 1).import_error}")
    return seconds, 0


def _clone(archive: Path, folder: Path) -> tuple[float, int]:
    """Copy the repository of an archive out of its bundle, and check it."""
    subprocess.run(["tar", "xzf", str(archive), "-C", str(folder), "./project.bundle"], check=True)
    began = time.perf_counter()
    clone = folder / "clone.git"
    subprocess.run(["git", "clone", "--quiet", "--mirror", str(folder / "project.bundle"), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "fsck", "--no-dangling", "--no-progress"], check=True)
    return time.perf_counter() - began, 0


def _bundle(folder: Path) -> tuple[float, int]:
    """Make a bundle of that copy."""
    began = time.perf_counter()
    bundle = folder / "again.bundle"
    subprocess.run(
        ["git", "-C", str(folder / "clone.git"), "bundle", "create", "--quiet", str(bundle), "--all"], check=True
    )
    return time.perf_counter() - began, bundle.stat().st_size


def _export(folder: Path, url: str) -> tuple[float, int, int]:
    app = _app(folder, url)
    with app.app_context():
        with unit_of_work():
            db.session.add(ProjectExport(project_id=1, user_id=1))
        idle = memory_of("self")
        began = time.perf_counter()
        jobs.export_project(1)
        seconds = time.perf_counter() - began
        forked = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        above = memory_of("self", "VmHWM") - idle + max(0, forked - idle)
        export = db.session.get_one(ProjectExport, 1)
        shutil.copyfile(folder / "data" / "storage" / str(export.storage_name), folder / "export.tar.gz")
        return seconds, export.size or 0, above


def _tar(folder: Path) -> tuple[float, int]:
    """``tar czf`` of the finished tree of the export."""
    tree = folder / "tree"
    tree.mkdir()
    subprocess.run(["tar", "xzf", str(folder / "export.tar.gz"), "-C", str(tree)], check=True)
    began = time.perf_counter()
    subprocess.run(["tar", "czf", str(folder / "tar.tar.gz"), "-C", str(tree), "."], check=True)
    return time.perf_counter() - began, (folder / "tar.tar.gz").stat().st_size


if __name__ == "__main__":
    main()
