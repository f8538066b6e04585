"""How long importing and exporting a big project takes, against what no program can save, and what memory it takes.

``python -m benchmarks.transfers [--issues 100000] [--database sqlite|postgresql]`` makes an archive of so many issues
with three notes each (kept under ``.cache/bench``), then, each in a process of its own and in turn: the floor of an
import (gunzip, parse, insert of the same values into bare tables), the import, the export, and ``tar czf`` of its tree.
Prints seconds, ratios and the most memory of the process that did it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import psycopg
from zlib_ng import gzip_ng_threaded

from project_service.core import places
from project_service.core.namespaces import UserNamespace
from project_service.core.projects import Project
from project_service.core.users import User
from project_service.factory import create_app
from project_service.kit.database import Base, db, unit_of_work
from project_service.kit.storage import storage
from project_service.settings import Settings
from project_service.transfers import jobs, layout
from project_service.transfers.models import ProjectExport, ProjectImport
from tests.databases import create_database

CACHE = Path(".cache/bench")
SECRET_KEY = "a key that only the benchmarks have and that is long enough"
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
NOTES, ROUNDS = 3, 3
IMPORT_GOAL, EXPORT_GOAL, SIZE_GOAL = 3.0, 0.8, 1.2
MIB = 1 << 20


def main() -> None:
    """Measure; or, as a child, do one thing and tell what it took."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--issues", type=int, default=100_000)
    arguments.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    arguments.add_argument("--do", choices=("floor", "import", "export", "tar"))
    arguments.add_argument("--url", default="")
    arguments.add_argument("--folder", default="")
    options = arguments.parse_args()
    archive = CACHE / f"issues-{options.issues}.tar.gz"
    if options.do:
        _tell(options.do, archive, Path(options.folder), options.url)
        return
    if not archive.exists():
        make_archive(archive, options.issues)
    sys.exit(_measure(archive, options.issues, options.database))


def make_archive(path: Path, issues: int) -> None:
    """An archive of so many issues, the same in every run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree" / "project"
        tree.mkdir(parents=True)
        (Path(folder) / "VERSION").write_text(layout.FORMAT)
        (Path(folder) / "tree" / "project.json").write_text('{"description":"big"}')
        with (tree / "issues.ndjson").open("wb") as file:
            for row in _issues(issues):
                file.write(orjson.dumps(row) + b"\n")
        subprocess.run(["tar", "czf", str(path.resolve()), "."], cwd=folder, check=True)


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


def _measure(archive: Path, issues: int, database: str) -> int:
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            for what in ("floor", "import", "export", "tar"):
                found.setdefault(what, []).append(_child(what, issues, database, folder))
                if what == "floor":
                    _prepare(archive, Path(folder), database)
    medians = {
        what: {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
        for what, rounds in found.items()
    }
    ratios = (
        ("import vs. floor", medians["import"]["seconds"] / medians["floor"]["seconds"], IMPORT_GOAL),
        ("export vs. tar czf", medians["export"]["seconds"] / medians["tar"]["seconds"], EXPORT_GOAL),
        ("size of the export vs. tar czf", medians["export"]["bytes"] / medians["tar"]["bytes"], SIZE_GOAL),
    )
    print(f"{issues} issues with {NOTES} notes each, {database}")
    for what, figures in medians.items():
        taken = f"{what:<8}{figures['seconds']:>8.2f} s{figures['memory'] / MIB:>8.0f} MiB"
        print(f"{taken}{figures['bytes'] / MIB:>8.1f} MiB")
    for name, ratio, goal in ratios:
        print(f"{name:<32}{ratio:>6.2f}  at most {goal}: {'met' if ratio <= goal else 'MISSED'}")
    return int(any(ratio > goal for _, ratio, goal in ratios))


URL: dict[str, str] = {}


def _child(what: str, issues: int, database: str, folder: str) -> dict[str, float]:
    if database == "postgresql" and folder not in URL:
        URL[folder] = create_database(f"bench_transfers_{os.getpid()}_{len(URL)}")
    words = ["--do", what, "--issues", str(issues), "--database", database, "--folder", folder]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.transfers", *words, "--url", URL.get(folder, "")],
        check=True,
        stdout=subprocess.PIPE,
    )
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def _prepare(archive: Path, folder: Path, database: str) -> None:
    """A user, an empty project and its waiting import."""
    app = _app(folder, URL.get(str(folder), ""))
    with app.app_context(), unit_of_work():
        Base.metadata.create_all(db.engine)
        user = User(username="root", name="Root", email="admin@example.com", admin=True)
        db.session.add(user)
        db.session.flush()
        namespace = UserNamespace(name="Root", path="root", owner=user)
        places.settle_namespace(namespace, None, AssertionError())
        project = Project(name="big", path="big", namespace=namespace, namespace_id=namespace.id, loading=True)
        places.settle_project(project, AssertionError())
        with storage().write("imports/big.tar.gz") as target, archive.open("rb") as source:
            shutil.copyfileobj(source, target)
        row = ProjectImport(project_id=project.id, project=project, user_id=user.id, storage_name="imports/big.tar.gz")
        db.session.add(row)


def _app(folder: Path, url: str) -> Any:
    environment = {"DATA_DIR": str(folder / "data"), "SECRET_KEY": SECRET_KEY, "LOG_LEVEL": "ERROR"}
    if url:
        environment["DATABASE_URL"] = url
    return create_app(
        Settings.from_environment({f"PROJECT_SERVICE_{name}": value for name, value in environment.items()})
    )


def _tell(what: str, archive: Path, folder: Path, url: str) -> None:
    if what == "floor":
        seconds, size = _floor(archive, folder, url)
    elif what == "tar":
        seconds, size = _tar(folder)
    else:
        seconds, size = _import(folder, url) if what == "import" else _export(folder, url)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "bytes": size, "memory": memory}))


def _floor(archive: Path, folder: Path, url: str) -> tuple[float, int]:
    """Gunzip, parse and insert, with nothing of the program."""
    began = time.perf_counter()
    insert: Any
    if url:
        connection: Any = psycopg.connect(url.replace("+psycopg", ""))
        insert = _copy
    else:
        connection = sqlite3.connect(folder / "floor.db")
        connection.execute("PRAGMA journal_mode=WAL")
        insert = _executemany
    for table, columns in (("f_issues", 19), ("f_notes", 15)):
        kind = "text" if url else ""
        connection.execute(f"CREATE TABLE {table} ({', '.join(f'c{i} {kind}' for i in range(columns))})")
    with gzip_ng_threaded.open(str(archive), "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
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
                *(row["id"], 1, row["iid"], row["title"], row["description"], row["state"], row["issue_type"], False),
                *(None, row["due_date"], row["weight"], 3, row["author_id"], None, None, None, "{}", MOMENT, MOMENT),
            )
        )
        notes += [
            (
                *(note["id"], 1, "Issue", row["id"], None, None, note["note"], None, False, False, None, 1),
                *(note["discussion_id"], note["created_at"], note["updated_at"]),
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


def _export(folder: Path, url: str) -> tuple[float, int]:
    app = _app(folder, url)
    with app.app_context():
        with unit_of_work():
            db.session.add(ProjectExport(project_id=1, user_id=1))
        began = time.perf_counter()
        jobs.export_project(1)
        seconds = time.perf_counter() - began
        export = db.session.get_one(ProjectExport, 1)
        shutil.copyfile(folder / "data" / "storage" / str(export.storage_name), folder / "export.tar.gz")
        return seconds, export.size or 0


def _tar(folder: Path) -> tuple[float, int]:
    """``tar czf`` of the finished tree of the export."""
    tree = folder / "tree"
    tree.mkdir()
    subprocess.run(["tar", "xzf", str(folder / "export.tar.gz"), "-C", str(tree)], check=True)
    began = time.perf_counter()
    subprocess.run(["tar", "czf", str(folder / "tar.tar.gz"), "-C", str(tree), "."], check=True)
    return time.perf_counter() - began, (folder / "tar.tar.gz").stat().st_size


main()
