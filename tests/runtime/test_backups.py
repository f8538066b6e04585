"""Back-up while the service goes on, restoration into either database, and what is refused."""

from __future__ import annotations

import contextvars
import datetime as dt
import gzip
import itertools
import shutil
import threading
from contextlib import suppress

import pytest
from sqlalchemy import Boolean, Date, DateTime, Integer, LargeBinary, delete, func, insert, select, text

from project_service.areas.variables.models import Variable
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.kit import clock
from project_service.kit.db import migrations
from project_service.kit.db.base import MIGRATIONS, Base
from project_service.kit.db.revisions import newest_revision
from project_service.kit.db.session import db, snapshot, unit_of_work
from project_service.kit.security import encryption, key_ring
from project_service.kit.storage import storage
from project_service.runtime.backups import archive, service, tables
from project_service.runtime.backups.archive import BackupError
from tests.conftest import POSTGRESQL, SQLITE, Client, make_app
from tests.support import sample_data
from tests.support.git_repositories import keep_repository
from tests.support.route_survey import addresses, api_rules, survey
from tests.support.sample_data import ADA

WRITTEN_TABLES = {"variables", "audit_events", "rate_limits"}  # during a back-up, or by reading
OTHER = {SQLITE: POSTGRESQL, POSTGRESQL: SQLITE}
BUSY = "/projects/acme%2Fbusy/variables"


@pytest.fixture(autouse=True)
def _keep_the_keys(app, monkeypatch):
    for name in ("keyring", "settings", "changed_at"):
        monkeypatch.setattr(key_ring._Current, name, getattr(key_ring._Current, name))


@pytest.fixture
def filled(app, project, group, people, client_of, tmp_path):
    """A client of an administrator in an instance that has something in every table and every tree of files."""
    client = client_of(people[ADA])
    sample_data.fill_lists(project, group, people, client)
    sample_data.make_project("busy", group)
    client.put("/user/quiet_hours", json={"enabled": True, "time_zone": "UTC", "from": "22:00", "to": "07:00"})
    encryption.leave_proof()
    fill_empty_tables()
    for name in ("uploads/1/archive.tar.gz", "exports/deep/er/ö"):
        with storage().write(name) as file:
            file.write(name.encode() * 10_000)
    keep_repository(project, tmp_path / "repository", "v1", files={"README.md": b"# Shop\n"})
    return client


@pytest.fixture(autouse=True)
def _no_files_stay(app):
    yield
    for tree in service._trees().values():
        for found in list(tree.listing()):
            tree.delete(found.name)


EMPTY_COLUMNS = {  # of tables whose rows have one owner
    "invitations": {"namespace_id"},
    "notification_channels": {"group_id", "user_id"},
    "notification_rules": {"group_id"},
    "notification_settings": {"group_id"},
}


def fill_empty_tables():
    """Give every table that has no row yet one, made from the types of its columns: no table is forgotten."""
    for table in Base.metadata.sorted_tables:
        with unit_of_work():
            if db.session.execute(select(table).limit(1)).first() is None:
                empty = EMPTY_COLUMNS.get(table.name, ())
                columns = [each for each in table.columns if not is_counted(each) and each.name not in empty]
                row = {each.name: value_for(each) for each in columns}
                db.session.execute(insert(table).values(row))


def is_counted(column):
    return column.primary_key and column.name == "id" and column.autoincrement is not False


def value_for(column):
    for key in column.foreign_keys:
        return db.session.scalar(select(key.column).limit(1))
    if isinstance(column.type, DateTime) or "Timestamp" in type(column.type).__name__:
        return clock.now() + dt.timedelta(days=1)
    if isinstance(column.type, Date):
        return clock.today()
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, Integer):
        return 7
    if isinstance(column.type, LargeBinary):
        return b"\x00\xff"
    return ["text", None, 'quotes "'] if type(column.type).__name__ == "JSON" else "tëxt\n"


@pytest.fixture
def another(tmp_path_factory):
    """Makes another, empty instance."""
    made = []

    def make(backend, **changes):
        app = make_app(backend, tmp_path_factory.mktemp("restored"), **changes)
        made.append(app)
        return app

    yield make
    for app in made:
        with app.app_context():
            db.session.remove()
            db.engine.dispose()


def elsewhere(app, act):
    """Do something in another instance, as its own process would."""

    def inside():
        with app.app_context():
            try:
                return act()
            finally:
                db.session.remove()

    return contextvars.Context().run(inside)


def rows():
    """Every table of the instance, as a back-up has it."""
    with snapshot() as connection:
        return {
            table.name: sorted(line for _, chunk in tables.dump(connection, table) for line in chunk.splitlines()[1:])
            for table in tables.tables(connection)
        }


class Writer:
    """Creates variables, each after a file that belongs to it, until it is told to stop."""

    def __init__(self, app, client):
        self.app, self.client = app, client
        self.written, self.stop = 0, threading.Event()
        self.thread = threading.Thread(target=self.write)

    def write(self):
        with self.app.app_context():
            for number in itertools.count():
                if self.stop.is_set():
                    return
                with storage().write(f"busy/{number}") as file:
                    file.write(b"x" * 1000)
                response = self.client.post(BUSY, json={"key": f"KEY_{number}", "value": "v"})
                assert response.status_code == 201
                self.written = number + 1

    def __enter__(self):
        self.thread.start()
        while not self.written and self.thread.is_alive():
            self.stop.wait(0.01)
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def busy_id():
    with unit_of_work(write=False):
        return db.session.scalar(select(Project.id).where(Project.path == "busy"))


@pytest.mark.both_databases
@pytest.mark.parametrize("same", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["other", "same"])
def test_every_response_is_the_same_after_a_restore(same, backend, app, filled, another, tmp_path):
    settings, path = app.config["SETTINGS"], tmp_path / "backup"
    before, held = survey(app, filled), rows()
    written = (f"/projects/{busy_id()}/variables", f"/projects/{busy_id()}/audit_events", "/audit_events")

    with Writer(app, filled) as writer:
        at_first = writer.written
        service.back_up(settings, path)
        at_last = writer.written + 1
    new = another(backend if same else OTHER[backend])
    elsewhere(new, lambda: service.restore(new.config["SETTINGS"], path))
    restored = elsewhere(new, lambda: (survey(new, Client(new.test_client(), filled.token)), rows(), names(new)))
    answers, found, files = restored

    kept = answers.keys() - {address for address in answers if address.startswith(written)}
    assert {address: answers[address] for address in kept} == {
        address: told for address, told in before.items() if not address.startswith(written)
    }
    assert all(held.values())
    assert {name: lines for name, lines in found.items() if name not in WRITTEN_TABLES} == {
        name: lines for name, lines in held.items() if name not in WRITTEN_TABLES
    }
    keys = busy_keys(found["variables"])
    assert keys == {f"KEY_{number}" for number in range(len(keys))}
    assert at_first <= len(keys) <= at_last
    assert {f"busy/{number}" for number in range(len(keys))} <= set(files)


def busy_keys(lines):
    return {line.split(b'"KEY_')[1].split(b'"')[0].join([b"KEY_", b""]).decode() for line in lines if b'"KEY_' in line}


def names(app):
    return [found.name for found in storage().listing()]


def answers_something(app, rule):
    """Whether a route has an answer at all: some only tell that an address has another name."""
    responses = app.view_functions[rule.endpoint]._apidoc["response"]["responses"]
    return any(said["schema"] != {} for each in responses.values() for said in each)


@pytest.mark.both_databases
def test_every_read_route_is_surveyed(app, filled):
    answers = survey(app, filled)

    def read(address):
        status, found = answers.get(address, (0, None))
        return found if status == 200 else None

    unseen = [
        path
        for _, path, rule in api_rules(app, "GET")
        if answers_something(app, rule)
        and not path.endswith("/access_tokens/self")  # answers tokens of the place only; the lists have them all
        and not any(answers.get(address, (0,))[0] == 200 for address in addresses(path, read))
    ]
    assert (unseen, len(answers) > 50) == ([], True)


@pytest.mark.both_databases
def test_ids_continue_after_a_restore(app, filled, another, tmp_path, project):
    settings, path = app.config["SETTINGS"], tmp_path / "backup"
    gone = filled.post(f"/projects/{project.id}/variables", json={"key": "LAST", "value": "v"})
    with unit_of_work():
        last = db.session.scalar(select(Variable.id).where(Variable.key == "LAST"))
        db.session.execute(delete(Variable).where(Variable.id == last))

    service.back_up(settings, path)
    new = another(OTHER[db.engine.dialect.name])
    elsewhere(new, lambda: service.restore(new.config["SETTINGS"], path))

    def add():
        with unit_of_work():
            made = Variable(project_id=project.id, key="NEXT", value="v")
            db.session.add(made)
            db.session.flush()
            return made.id

    assert (gone.status_code, elsewhere(new, add)) == (201, last + 1)


def test_files_and_repositories_are_restored(app, filled, another, tmp_path, project):
    path = tmp_path / "backup"

    summary = service.back_up(app.config["SETTINGS"], path)
    new = another(SQLITE)
    elsewhere(new, lambda: service.restore(new.config["SETTINGS"], path))

    def look():
        with storage().open("exports/deep/er/ö") as file:
            content = file.read()
        return content, contents.tag_names(db.session.get_one(Project, project.id))

    assert elsewhere(new, look) == ("exports/deep/er/ö".encode() * 10_000, ["v1"])
    assert summary.files["storage"] == 14  # a pack and its index, two files, and the pictures of everybody
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_snapshot_of_a_back_up_is_taken_after_its_first_copy(app, filled, tmp_path, project, monkeypatch):
    """Else a file might go before it is copied that a row of that moment refers to."""
    real, copies = service._copy, []

    def copy(*given):
        count = real(*given)
        if not copies:
            filled.post(f"/projects/{project.id}/variables", json={"key": "MEANWHILE", "value": "written"})
        copies.append(count)
        return count

    before = db.session.scalar(select(func.count()).select_from(Variable))
    monkeypatch.setattr(service, "_copy", copy)
    summary = service.back_up(app.config["SETTINGS"], tmp_path / "backup")

    assert (len(copies), summary.rows["variables"]) == (2, before + 1)


def test_a_back_up_contains_no_key_and_no_plain_secret(app, filled, tmp_path, project):
    filled.post(f"/projects/{project.id}/variables", json={"key": "S", "value": "a-value-nobody-sees"})

    service.back_up(app.config["SETTINGS"], tmp_path / "backup")

    content = gzip.decompress((tmp_path / "backup").read_bytes())
    assert b"a-value-nobody-sees" not in content
    assert not any(key.encode() in content for key in key_ring.keyring().keys)
    assert filled.token.encode() not in content


@pytest.fixture(scope="module")
def backups():
    """The content of a back-up of each database, for tests that only read it: filling an instance takes seconds."""
    return {}


@pytest.fixture
def backup(request, backend, app, backups, tmp_path):
    """A back-up of a filled instance."""
    path = tmp_path / "backup"
    if backend not in backups:
        request.getfixturevalue("filled")
        service.back_up(app.config["SETTINGS"], path)
        backups[backend] = path.read_bytes()
    path.write_bytes(backups[backend])
    return path


def refusal(app, path):
    with pytest.raises(BackupError) as caught:
        elsewhere(app, lambda: service.restore(app.config["SETTINGS"], path))
    return str(caught.value)


def is_untouched(app):
    def look():
        with snapshot() as connection:
            full = [found.name for found in tables.tables(connection) if not tables.is_empty(connection, found)]
        return full, names(app)

    return elsewhere(app, look) == ([], [])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: b"no back-up at all",
        lambda content: gzip.compress(gzip.decompress(content).replace(b"The till", b"The bill")),
        lambda content: gzip.compress(gzip.decompress(content)[:20480] + b"\0" * 10240),
    ],
)
def test_a_damaged_back_up_is_refused_before_any_write(spoil, backup, another):
    backup.write_bytes(spoil(backup.read_bytes()))
    new = another(SQLITE)

    assert str(backup) in refusal(new, backup)
    assert is_untouched(new)


def test_any_changed_bit_is_detected(backup):
    content, unnoticed = backup.read_bytes(), []

    for position in range(0, len(content), max(1, len(content) // 300)):
        changed = bytes([content[position] ^ 1 << position % 8])
        backup.write_bytes(content[:position] + changed + content[position + 1 :])
        with suppress(BackupError):
            archive.verified(backup)
            unnoticed.append(backup.read_bytes())

    # a few bits of the compressed form mean nothing
    assert len(unnoticed) < 10
    assert all(gzip.decompress(each) == gzip.decompress(content) for each in unnoticed)


def test_another_key_is_refused_before_any_write(backup, another):
    new = another(SQLITE, SECRET_KEY="the key of another instance that is long enough")

    assert "encrypted with another key" in refusal(new, backup)
    assert is_untouched(new)


def test_a_back_up_of_a_newer_release_is_refused(backup, another, monkeypatch, app, tmp_path):
    monkeypatch.setattr(service, "current_revision", lambda _connection: "9999")
    service.back_up(app.config["SETTINGS"], backup)
    new = another(SQLITE)

    assert "newer: install that one first" in refusal(new, backup)


@pytest.mark.parametrize("what", ["row", "file"])
def test_a_restore_into_a_non_empty_instance_is_refused(what, backup, another):
    new = another(SQLITE)

    def use():
        if what == "row":
            sample_data.make_user()
        else:
            with storage().write("a/b") as file:
                file.write(b"x")

    elsewhere(new, use)

    assert "is not empty" in refusal(new, backup)
    assert elsewhere(new, lambda: names(new)) == (["a/b"] if what == "file" else [])


def test_a_failed_restore_writes_nothing_and_can_be_repeated(backup, another, monkeypatch):
    new = another(SQLITE)
    load, chunks = tables.load, itertools.count()

    def fail(*args):
        if next(chunks) == 10:
            raise OSError("the disk is full")
        load(*args)

    monkeypatch.setattr(tables, "load", fail)
    with pytest.raises(OSError, match="disk"):
        elsewhere(new, lambda: service.restore(new.config["SETTINGS"], backup))
    untouched = is_untouched(new)
    monkeypatch.setattr(tables, "load", load)

    summary = elsewhere(new, lambda: service.restore(new.config["SETTINGS"], backup))

    assert (untouched, all(summary.rows.values())) == (True, True)


NEXT_MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9000", "{head}"


def upgrade():
    op.add_column("users", sa.Column("colour", sa.String(), server_default="red", nullable=False))
"""


def test_a_back_up_of_an_older_release_is_upgraded(backend, another, tmp_path, project, app, monkeypatch):
    next_release = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, next_release)
    (next_release / "versions/9000_next.py").write_text(NEXT_MIGRATION.format(head=newest_revision()))
    db.session.remove()
    service.back_up(app.config["SETTINGS"], tmp_path / "backup")
    new = another(backend)
    monkeypatch.setattr(new.extensions[migrations.EXTENSION].migrate, "directory", str(next_release))

    elsewhere(new, lambda: service.restore(new.config["SETTINGS"], tmp_path / "backup"))

    colour = text("SELECT colour FROM users ORDER BY id LIMIT 1")
    assert elsewhere(new, lambda: db.session.scalar(colour)) == "red"
    assert elsewhere(new, lambda: db.session.get_one(Project, project.id).path) == "shop"
