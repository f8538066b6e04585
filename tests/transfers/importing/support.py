"""Helpers shared by the tests of imports."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from flask import current_app
from sqlalchemy import func, select, update

from project_service.domain.projects import Project
from project_service.kit import clock, jobs
from project_service.kit.db.base import Base
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.kit.storage import storage
from tests.support.archives import MOMENT as MADE
from tests.support.archives import make_archive, make_event, make_issue, make_note, unpack

NO_NAMESPACE = {"message": "404 Namespace Not Found"}


BAD_PATH = (
    "Path can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', end in '.git' or end in '.atom'"
)


DIFFERENT = ("id", "project_id", "source_project_id", "target_project_id")


MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def known_projects():
    db.session.rollback()
    return db.session.scalar(select(func.count()).select_from(Project))


def stored():
    return storage().names("imports") + storage().names("projects")


def again():
    """Try tasks that failed again, at once."""
    db.session.rollback()
    db.session.execute(update(Task).values(run_at=clock.now() - dt.timedelta(seconds=1)))
    db.session.commit()
    waiting = list(db.session.scalars(select(Task.id).where(Task.failed_at.is_(None), Task.attempts > 0)))
    db.session.remove()
    for task_id in waiting:
        jobs.run(task_id)


def error_of(state):
    """Return the error of an import without its fixed beginning."""
    assert state["import_status"] == "failed"
    start = f"Error importing repository  into {state['path_with_namespace']} - "
    assert state["import_error"].startswith(start)
    return state["import_error"].removeprefix(start)


def at_once(*actions):
    """Call functions in concurrent threads; return their results."""
    app, start = current_app._get_current_object(), threading.Barrier(len(actions))

    def run(action):
        with app.app_context():
            start.wait()
            return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


MEMBERS = [
    {"access_level": 50, "user": {"id": 7, "email": "DEV@example.org", "username": "somebody"}},
    {"access_level": 20, "user": {"id": 8, "email": "x@example.org", "public_email": "rita@example.org"}},
    {"access_level": 30, "user": {"id": 9, "email": "unknown@example.org", "username": "gus"}},
]


def iids_of_milestones(client, number):
    return {one["title"]: one["iid"] for one in client.get(f"/projects/{number}/milestones").json}


def full_archive(**options):
    """An archive with rows of every relation."""
    moments = {"created_at": MADE, "updated_at": MADE}
    relations = {
        "labels": [{"title": f"label {number}", **moments} for number in range(3)],
        "milestones": [
            {"title": "groups", "iid": 1, "group_id": 3, **moments},
            {"title": "v1", "iid": 1, **moments, "events": [make_event(target_type="Milestone")]},
            {"title": "another group's", "iid": 2, "group_id": 4, **moments},
        ],
        "issues": [
            make_issue(
                number,
                milestone={"title": "v1", "iid": 1},
                label_links=[{"label": {"title": f"label {number % 3}"}}],
                notes=[make_note(events=[make_event("commented", target_type="Note")]), make_note(system=True)],
                events=[make_event()],
                issue_assignees=[{"user_id": 7}],
                designs=[{"filename": "a.png", "iid": 1}],
            )
            for number in range(1, 6)
        ]
        + [make_issue(9, title=None)],
        "merge_requests": [make_issue(number, source_branch="a", target_branch="b") for number in (1, 2, 3)],
        "snippets": [{"title": "s", "content": "c", "visibility_level": 0, **moments, "notes": [make_note()]}],
        "releases": [{"tag": "v1", "author_id": 7, "links": []}],
        "protected_tags": [{"name": "v*", **moments, "create_access_levels": [{"access_level": 40}]}],
        "protected_branches": [{"name": "main", **moments, "push_access_levels": [{"access_level": 40}]}],
        "project_members": [{"user": None, "invite_email": "x@example.org", "access_level": 20}, *MEMBERS],
        "boards": [{"name": "Board", "lists": []}],
        "unheard_of": [{"a": 1}],
    }
    secret = "a" * 32
    files = {
        f"uploads/{secret}/a.png": b"one",
        f"uploads/{secret}/b.png": b"two",
        "avatar/me.png": PNG,
        f"lfs-objects/{'b' * 64}": b"four",
        "lfs-objects.json": json.dumps({"b" * 64: [0]}).encode(),
        **options.pop("files", {}),
    }
    return make_archive(relations, {"description": "Full"}, files=files, **options)


PNG = b"\x89PNG\r\n\x1a\n"
NOT_BROUGHT = {
    "projects",
    "routes",
    "project_imports",
    "memberships",
    "events",
    "import_failures",
    "personal_access_tokens",
    "counters",
    "notification_rules",  # those that every project starts with
    "todos",  # one tells the importer of the failure
}


def counts():
    """How many rows each table has, without audit events, which stay."""
    db.session.rollback()
    tables = [table for table in Base.metadata.sorted_tables if table.name != "audit_events"]
    return {table.name: db.session.scalar(select(func.count()).select_from(table)) for table in tables}


def difference(before):
    now = counts()
    return {name: now[name] - number for name, number in before.items() if now[name] != number}


def export(client, number, run_jobs):
    """The files of an export of a project."""
    assert client.post(f"/projects/{number}/export").status_code == 202
    run_jobs()
    return unpack(client.get(f"/projects/{number}/export/download").data)


class Interrupted(Exception):
    """Raised to interrupt an import."""


@contextmanager
def killed_in_step(monkeypatch, wanted, *, before_commit):
    """Raise in one of the units of the import, before or right after it is committed."""
    real, passed, hit = jobs.step, itertools.count(1), []

    @contextmanager
    def step():
        number = next(passed)
        with real():
            yield
            if number == wanted and before_commit:
                hit.append(number)
                raise Interrupted
        if number == wanted:
            hit.append(number)
            raise Interrupted

    monkeypatch.setattr(jobs, "step", step)
    try:
        yield hit
    finally:
        monkeypatch.setattr(jobs, "step", real)


def canonical(files):
    """The lines of an export without what differs between two imports of one archive."""
    found = {}
    for name in files:
        if name.endswith(".ndjson"):
            lines = [settle(json.loads(line)) for line in files[name].splitlines()]
            if name == "tree/project/project_members.ndjson":  # who became a member by the import did so now
                lines = [line | {"created_at": None, "updated_at": None} for line in lines]
            found[name] = sorted(json.dumps(line, sort_keys=True) for line in lines)
        elif name == "tree/project.json":
            found[name] = settle(json.loads(files[name]))
        else:
            found[name] = files[name]
    return found


def settle(value):
    if isinstance(value, list):
        return [settle(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {name: settle(inner) for name, inner in value.items() if name not in DIFFERENT}


def folders(app):
    return {folder.name for folder in (app.config["SETTINGS"].data_dir / "transfers").glob("*")}


def leave(app, *names):
    """Leave working directories as killed workers do."""
    for name in names:
        folder = app.config["SETTINGS"].data_dir / "transfers" / name
        (folder / "unpacked").mkdir(parents=True, exist_ok=True)
        (folder / "archive.tar.gz").write_bytes(b"half")


def exported_twice(client, bring, archive, run_jobs):
    """Return the files of an export of an import, and those of a second round."""
    first = bring(archive, path="first")
    files = export(client, first["id"], run_jobs)
    second = bring(make_archive(version=None, files=files), path="second")
    assert first["failed_relations"] == second["failed_relations"] == []
    return files, export(client, second["id"], run_jobs)


def git(folder, *words):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()
