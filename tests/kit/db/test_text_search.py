"""Search by an index of trigrams, on SQLite, on PostgreSQL without its extension, and on one that has it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import select

from project_service.areas.alerts.models import TEXTS, Alert
from project_service.areas.instance.doctor import examine
from project_service.kit import clock
from project_service.kit.db import migrations, text_search
from project_service.kit.db.session import db, unit_of_work
from tests.conftest import make_app
from tests.support.sample_data import make_project
from tests.support.visitors import store

START_SECONDS = 60


def found(*words):
    db.session.remove()
    return list(db.session.scalars(select(Alert.iid).where(text_search.contains(TEXTS, words)).order_by(Alert.iid)))


@pytest.fixture
def make_alert(project):
    def make(iid, title, **fields):
        return store(Alert(project_id=project.id, iid=iid, title=title, started_at=clock.now(), **fields))

    return make


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Disk  FULL", ["disk", "full"]),
        ('"Disk full" now', ["disk full", "now"]),
        ('disk disk "', ["disk", '"']),
        ("a\0b", ["ab"]),
        ('  "" ', ['""']),
        (" ".join(map(str, range(20))), [str(number) for number in range(text_search.MAX_WORDS)]),
    ],
)
def test_words_of_a_query(query, words):
    assert text_search.words_of(query) == words


@pytest.mark.both_databases
def test_all_words_are_found_anywhere_in_any_case(make_alert):
    make_alert(1, "Größe der Platte", hosts=["web1", "düsseldorf"])
    make_alert(2, 'Disk "sda" is 100% full', service="Backup_Server")
    make_alert(3, "Disk is fine")

    for words, iids in (
        (["disk"], [2, 3]),
        (["disk", "fu"], [2]),
        (["grösse"], []),
        (["größe", "üssel"], [1]),
        (['"sda"'], [2]),
        (["0% f"], [2]),
        (["p_s"], [2]),
        (["k", "i"], [2, 3]),
        (["and"], []),
        (["disk", "or", "fine"], []),
    ):
        assert (words, found(*words)) == (words, iids)


def test_the_index_follows_changes_in_their_transaction(make_alert):
    alert = make_alert(1, "Disk is full")
    with unit_of_work():
        row = db.session.get_one(Alert, alert.id)
        row.title, row.events = "Network is slow", 2
    changed = found("disk"), found("network")

    with pytest.raises(RuntimeError), unit_of_work():
        db.session.get_one(Alert, alert.id).title = "Undone"
        db.session.flush()
        raise RuntimeError
    undone = found("undone"), found("network")
    with unit_of_work():
        db.session.delete(db.session.get_one(Alert, alert.id))

    assert (changed, undone, found("network")) == (([], [1]), ([], [1]), [])


def test_an_upgrade_creates_triggers_that_the_copy_of_a_table_has_lost(make_alert):
    make_alert(1, "Disk is full")
    db.session.remove()  # gives back the lock of the database
    with db.engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER alerts_search_insert")
    make_alert(2, "Disk is slow")
    lost = found("disk")
    db.session.remove()
    with db.engine.begin() as connection:
        text_search.create_missing(connection)
    make_alert(3, "Disk is fine")

    assert (lost, found("disk")) == ([1], [1, 2, 3])


def test_every_index_has_its_triggers_after_all_migrations(app):
    with db.engine.connect() as connection:
        names = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars())

    assert {f"{one.name}_{event}" for one in text_search.INDEXES for event in ("insert", "delete", "update")} <= names


def test_a_frequent_word_is_found_by_comparison(make_alert, monkeypatch):
    for iid in (1, 2, 3):
        make_alert(iid, "Disk is full" if iid < 3 else "Disk is fine")
    monkeypatch.setattr(text_search, "MAX_MATCHES", 1)

    assert (found("disk"), found("disk", "fine")) == ([1, 2, 3], [3])


@pytest.mark.both_databases
def test_short_words_need_a_scan_and_others_only_without_an_index(app, backend):
    needed = [text_search.needs_scan(TEXTS, words) for words in (["ab"], ["ab", "abc"])]

    assert needed == [True, backend == "postgresql"]


@pytest.fixture(scope="module")
def contrib_url():
    """The address of an empty database of a PostgreSQL of the system that has the extension."""
    [*_, programs] = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [None]
    if programs is None or not Path(f"/usr/share/postgresql/{programs.parent.name}/extension/pg_trgm.control").exists():
        pytest.skip("no PostgreSQL of the system with pg_trgm (Debian: postgresql-contrib)")
    user = pwd.getpwnam("postgres").pw_name if os.getuid() == 0 else None
    directory = Path(tempfile.mkdtemp(prefix="pg-contrib-"))
    if user is not None:
        shutil.chown(directory, user)
    data = directory / "data"
    initdb = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
    subprocess.run(initdb, user=user, check=True, stdout=subprocess.DEVNULL, cwd=directory)
    options = ("-cfsync=off", "-clisten_addresses=", f"-cunix_socket_directories={directory}")
    server = subprocess.Popen(
        [programs / "postgres", "-D", data, *options], user=user, cwd=directory, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(f"host={directory} user=postgres dbname=postgres")
        yield f"postgresql+psycopg://postgres@/postgres?host={directory}"
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(directory)


def wait_for(address):
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_an_upgrade_creates_the_index_where_the_server_has_the_extension(contrib_url, tmp_path):
    app = make_app("sqlite", tmp_path, DATABASE_URL=contrib_url)
    with app.app_context():
        project = make_project()
        rows = [{"title": "Disk is full", "hosts": ["Düsseldorf"]}, {"title": "Slow network", "service": "full_backup"}]
        for iid, row in enumerate(rows, start=1):
            store(Alert(project_id=project.id, iid=iid, started_at=clock.now(), **row))
        migrations.upgrade()  # once more

        results = found("full"), found("full", "disk"), found("l_b"), found("düssel"), found("k")
        assert results == ([1, 2], [1], [2], [1], [1, 2])
        assert not text_search.needs_scan(TEXTS, ["disk"])
        assert plan_of("disk").count("alerts_search") == 1
        [finding] = [one for one in examine(app.config["SETTINGS"]) if one.part == "search"]
        assert (finding.well, finding.text) == (True, f"{len(text_search.INDEXES)} indexes of texts")
        db.session.remove()
        db.engine.dispose()


def plan_of(word):
    db.session.execute(db.text("SET enable_seqscan = off"))
    statement = select(Alert.id).where(text_search.contains(TEXTS, [word]))
    compiled = statement.compile(db.engine, compile_kwargs={"render_postcompile": True})
    rows = db.session.connection().exec_driver_sql(f"EXPLAIN {compiled}", compiled.params)
    return "\n".join(row[0] for row in rows)
