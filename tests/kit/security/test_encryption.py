"""Changing the key while the service goes on."""

from __future__ import annotations

import multiprocessing
import threading
import time

import pytest
from sqlalchemy import func, select, text

from project_service.areas.variables.models import Variable
from project_service.kit.db.session import db, dispose_after_fork, unit_of_work
from project_service.kit.security import encryption, key_ring
from project_service.kit.security.key_ring import KeyRing, SecretKeyMissing
from tests.conftest import make_app
from tests.support import sample_data

pytestmark = pytest.mark.both_databases


@pytest.fixture
def keys(monkeypatch):
    """The keys of this process are as before when the test is over."""
    for name in ("keyring", "settings", "changed_at"):
        monkeypatch.setattr(key_ring._Current, name, getattr(key_ring._Current, name))


@pytest.fixture
def instance(keys, backend, tmp_path):
    """An instance of its own whose keys are in a file."""
    app = make_app(backend, tmp_path, SECRET_KEY="")
    with app.app_context():
        yield app
        db.session.remove()
        db.engine.dispose()


@pytest.fixture
def settings(instance):
    return instance.config["SETTINGS"]


def store(*values):
    """Store variables; the id of their project."""
    project = sample_data.make_project()
    with unit_of_work():
        for number, value in enumerate(values):
            db.session.add(Variable(project_id=project.id, key=f"KEY_{number}", value=value))
    db.session.remove()
    return project.id


def stored():
    with unit_of_work(write=False):
        return list(db.session.execute(text("SELECT value FROM variables ORDER BY id")).scalars())


def values():
    with unit_of_work(write=False):
        found = [variable.value for variable in db.session.scalars(select(Variable).order_by(Variable.id))]
    db.session.remove()
    return found


def test_every_encrypted_column_is_found():
    names = {f"{found.name}.{one.name}" for found, one in encryption.encrypted_columns()}

    assert "variables.value" in names


def test_after_a_rotation_everything_is_encrypted_with_the_new_key(settings):
    store("one", None, "two")
    (old,) = key_ring.read_keys(settings)

    count = encryption.rotate(settings)

    new, kept = key_ring.read_keys(settings)
    assert (count, kept, new == old) == (2, old, False)
    assert [value and KeyRing([new]).decrypt(value) for value in stored()] == ["one", None, "two"]
    assert values() == ["one", None, "two"]


def test_forgetting_old_keys_leaves_one_key_that_decrypts_everything(settings):
    store("one", "two")
    encryption.rotate(settings)
    newest = key_ring.read_keys(settings)[0]

    count = encryption.forget(settings)

    assert (count, key_ring.read_keys(settings)) == (2, [newest])
    assert values() == ["one", "two"]


def test_a_rotation_processes_several_batches(settings, monkeypatch):
    monkeypatch.setattr(encryption, "BATCH", 3)
    texts = [f"value {number}" for number in range(8)]
    store(*texts)

    assert (encryption.rotate(settings), values()) == (8, texts)


def test_an_interrupted_rotation_can_be_repeated(settings, monkeypatch):
    store("one", "two", "three")
    monkeypatch.setattr(encryption, "BATCH", 1)
    renew, renewed = KeyRing.renew, []

    def renew_one(keyring, value):
        renewed.append(value)
        if len(renewed) == 2:
            raise KeyboardInterrupt
        return renew(keyring, value)

    monkeypatch.setattr(KeyRing, "renew", renew_one)
    with pytest.raises(KeyboardInterrupt):
        encryption.rotate(settings)
    half = values()

    encryption.rotate(settings)
    encryption.forget(settings)

    assert half == values() == ["one", "two", "three"]


def test_a_rotation_keeps_concurrent_writes(instance, settings):
    project_id = store("first")
    context = multiprocessing.get_context("fork")
    begun, ended = context.Event(), context.Event()

    def write():
        with instance.app_context():
            dispose_after_fork()
            number = 0
            while not ended.is_set() or number < 5:
                number += 1
                with unit_of_work():
                    db.session.add(Variable(project_id=project_id, key=f"LATER_{number}", value=f"value {number}"))
                db.session.remove()
                begun.set()
                time.sleep(0.002)

    writer = context.Process(target=write)
    writer.start()
    begun.wait(30)
    for _ in range(3):
        encryption.rotate(settings)
        encryption.forget(settings)
    ended.set()
    writer.join(30)

    with unit_of_work(write=False):
        count = db.session.scalar(select(func.count(Variable.id)))
    assert writer.exitcode == 0
    assert values() == ["first", *(f"value {number}" for number in range(1, count))]
    assert len(key_ring.read_keys(settings)) == 1


def test_concurrent_rotations_lose_no_key(instance, settings):
    store("one", "two")
    together = threading.Barrier(4)
    failures = []

    def rotate(act):
        try:
            with instance.app_context():
                together.wait()
                act(settings)
        except BaseException as error:
            failures.append(error)

    acts = (encryption.rotate, encryption.forget, encryption.rotate, encryption.forget)
    threads = [threading.Thread(target=rotate, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (failures, values()) == ([], ["one", "two"])


def test_with_keys_from_the_environment_the_operator_adds_the_new_one_first(instance, settings, tmp_path):
    store("one")
    (old,) = key_ring.read_keys(settings)
    new = "the new key that is long enough for us"
    configured = type(settings).from_environment(
        {"PROJECT_SERVICE_DATA_DIR": str(tmp_path), "PROJECT_SERVICE_SECRET_KEY": f"{new},{old}"}
    )

    count = encryption.rotate(configured)

    assert (count, KeyRing([new]).decrypt(stored()[0])) == (1, "one")
    assert key_ring.read_keys(settings) == [old]


def test_a_rotation_without_the_old_key_is_refused_with_advice(settings):
    store("one")
    before = stored()
    (settings.data_dir / "secret_key").write_text("another key than the one it was written with\n")

    with pytest.raises(SecretKeyMissing, match="put the secret_key file of its data directory back"):
        encryption.rotate(settings)

    assert stored() == before


def test_the_key_is_checked_against_the_database(instance):
    encryption.leave_proof()
    encryption.leave_proof()

    encryption.prove_key()

    assert db.session.scalar(select(func.count()).select_from(encryption.KeyProof)) == 1


def test_a_process_with_another_key_refuses_requests_and_is_not_ready(instance, monkeypatch):
    encryption.leave_proof()
    client = instance.test_client()
    right = client.get("/users/sign_in").status_code
    monkeypatch.setattr(key_ring._Current, "keyring", KeyRing(["another key than that one and long enough"]))

    wrong, ready = client.get("/users/sign_in").status_code, client.get("/-/readiness").json["secrets_check"]

    assert (right, wrong, ready) == (200, 503, [{"status": "failed", "message": "SecretKeyMissing"}])
    assert client.get("/-/liveness").status_code == 200


def test_no_proof_is_stored_for_a_key_that_cannot_decrypt_the_data(instance, monkeypatch):
    store("a value")
    monkeypatch.setattr(key_ring._Current, "keyring", KeyRing(["another key than that one and long enough"]))

    with pytest.raises(SecretKeyMissing, match="variables.value"):
        encryption.leave_proof()

    assert db.session.scalar(select(func.count()).select_from(encryption.KeyProof)) == 0


def test_a_missing_key_file_is_not_rotated(instance, settings, monkeypatch):
    store("a value")
    (settings.data_dir / key_ring.KEY_FILE).unlink()
    key_ring.init(settings)
    made = (settings.data_dir / key_ring.KEY_FILE).read_text()

    with pytest.raises(SecretKeyMissing):
        encryption.rotate(settings)

    assert (settings.data_dir / key_ring.KEY_FILE).read_text() == made
