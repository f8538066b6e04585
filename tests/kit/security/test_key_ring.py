"""Keys, tokens and passwords."""

from __future__ import annotations

import hashlib
import multiprocessing
import stat

import pytest

from project_service.kit.security import key_ring, passwords, private_files, tokens
from project_service.kit.security.key_ring import KeyRing, SecretKeyMissing
from project_service.settings import Settings

OLD, NEW = "the old key that is long enough for us", "the new key that is long enough for us"


def settings_in(directory, **fields):
    environment = {"DATA_DIR": str(directory)} | fields
    return Settings.from_environment({f"PROJECT_SERVICE_{name}": value for name, value in environment.items()})


@pytest.fixture
def settings(tmp_path):
    return settings_in(tmp_path)


@pytest.fixture(autouse=True)
def _keep_the_keys_of_the_process(monkeypatch):
    for name in ("keyring", "settings", "changed_at"):
        monkeypatch.setattr(key_ring._Current, name, getattr(key_ring._Current, name))


def test_the_key_is_created_once_and_private(settings):
    first = key_ring.read_keys(settings)
    second = key_ring.read_keys(settings)

    path = settings.data_dir / "secret_key"
    assert first == second
    assert (len(first), len(first[0]) >= 32) == (1, True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in settings.data_dir.iterdir()] == ["secret_key"]


def test_concurrent_processes_create_one_key(settings):
    context = multiprocessing.get_context("fork")
    together, found = context.Barrier(6), context.SimpleQueue()

    def read():
        together.wait()
        found.put(key_ring.read_keys(settings)[0])

    processes = [context.Process(target=read) for _ in range(6)]
    for process in processes:
        process.start()
    keys = {found.get() for _ in processes}
    for process in processes:
        process.join()

    assert keys == set(key_ring.read_keys(settings))


def test_a_key_of_the_environment_leaves_no_file(tmp_path):
    keys = key_ring.read_keys(settings_in(tmp_path, SECRET_KEY=OLD))

    assert (keys, list(tmp_path.iterdir())) == ([OLD], [])


def test_the_first_of_several_keys_encrypts_and_all_decrypt(tmp_path):
    stored = KeyRing([OLD]).encrypt("a value")
    both = key_ring.init(settings_in(tmp_path, SECRET_KEY=f"{NEW},{OLD}"))

    assert both.decrypt(stored) == "a value"
    assert KeyRing([NEW]).decrypt(both.encrypt("another")) == "another"
    assert KeyRing([NEW]).decrypt(both.renew(stored)) == "a value"


def test_blanks_around_commas_are_not_part_of_the_keys(tmp_path):
    assert key_ring.read_keys(settings_in(tmp_path, SECRET_KEY=f" {NEW} , {OLD} ,")) == [NEW, OLD]


@pytest.mark.parametrize("act", [KeyRing.decrypt, KeyRing.renew])
def test_a_wrong_key_is_reported_with_advice(act):
    stored = KeyRing([OLD]).encrypt("a value")

    with pytest.raises(SecretKeyMissing, match=r"PROJECT_SERVICE_SECRET_KEY.*secret_key file") as refused:
        act(KeyRing([NEW]), stored)

    assert "a value" not in str(refused.value)


def test_modified_ciphertext_is_refused():
    keyring = KeyRing([OLD])
    stored = keyring.encrypt("a value")
    tampered = stored[:20] + ("A" if stored[20] != "A" else "B") + stored[21:]

    with pytest.raises(SecretKeyMissing):
        keyring.decrypt(tampered)


def test_equal_texts_are_stored_differently_with_the_id_of_their_key():
    keyring = KeyRing([OLD])
    stored = {keyring.encrypt("a value") for _ in range(20)}

    assert (len(stored), {text.partition(".")[0] for text in stored}) == (20, {key_ring.key_id(OLD)})
    assert OLD.encode().hex()[:12] != key_ring.key_id(OLD) != key_ring.key_id(NEW)


@pytest.mark.parametrize("stored", ["", "a value", f"{key_ring.key_id(OLD)}.", f"{key_ring.key_id(OLD)}.AAAA"])
def test_what_is_no_ciphertext_is_refused(stored):
    with pytest.raises(SecretKeyMissing):
        KeyRing([OLD]).decrypt(stored)


def test_a_text_of_a_key_that_was_added_since_is_decrypted(settings):
    key_ring.init(settings)
    stored = KeyRing(key_ring.add_key(settings)).encrypt("a value")

    assert key_ring.decrypt(stored) == "a value"


def test_an_empty_key_file_is_reported_with_advice(settings):
    (settings.data_dir / "secret_key").write_text("\n")

    with pytest.raises(SecretKeyMissing, match="is empty: put the key back"):
        key_ring.init(settings)


def test_a_running_process_loads_a_new_key(settings):
    before = key_ring.init(settings)
    stored = before.encrypt("a value")
    key_ring.add_key(settings)

    after = key_ring.keyring()

    assert after.keys[1:] == before.keys
    assert after.decrypt(stored) == "a value"


def test_a_read_during_a_key_change_loads_the_new_key(settings, monkeypatch):
    key_ring.init(settings)
    read = key_ring.read_keys

    def read_and_be_overtaken(settings):
        keys = read(settings)
        monkeypatch.setattr(key_ring, "read_keys", read)
        key_ring.add_key(settings)
        return keys

    monkeypatch.setattr(key_ring, "read_keys", read_and_be_overtaken)
    key_ring.init(settings)

    assert key_ring.keyring().keys == read(settings)


def test_a_running_process_does_not_recreate_a_removed_key_file(settings):
    stored = key_ring.init(settings).encrypt("a value")
    (settings.data_dir / "secret_key").unlink()

    found = key_ring.keyring()

    assert found.decrypt(stored) == "a value"
    assert not (settings.data_dir / "secret_key").exists()


def test_only_the_newest_key_is_kept(settings):
    key_ring.add_key(settings)
    keys = key_ring.add_key(settings)
    key_ring.drop_old_keys(settings)

    assert len(keys) == 3
    assert key_ring.read_keys(settings) == keys[:1]
    assert stat.S_IMODE((settings.data_dir / "secret_key").stat().st_mode) == 0o600


def test_session_keys_follow_the_rotation_and_old_ones_stay_valid():
    old, both = KeyRing([OLD]), KeyRing([NEW, OLD])

    assert old.signing_key != both.signing_key
    assert both.signing_key_fallbacks == [old.signing_key]
    assert old.signing_key != OLD.encode()


def test_tokens_are_random_and_stored_as_digests():
    generated = {tokens.new_token() for _ in range(100)}

    assert {len(token) for token in generated} == {20}
    assert len(generated) == 100
    assert tokens.new_token("glpat-").startswith("glpat-")
    assert tokens.digest("a token") == hashlib.sha256(b"a token").hexdigest()


def test_secrets_are_compared_in_full():
    assert tokens.same("grüße", "grüße")
    assert not tokens.same("grüße", "grüßen")
    assert not tokens.same("", "a")


def test_passwords_are_hashed_with_argon2id():
    stored = passwords.hash_password("correct horse")

    assert stored.startswith("$argon2id$")
    assert "correct" not in stored
    assert stored != passwords.hash_password("correct horse")
    assert passwords.password_matches(stored, "correct horse")
    assert not passwords.password_matches(stored, "correct horse ")


@pytest.mark.parametrize("stored", [None, "", "no hash at all", "$argon2id$broken"])
def test_a_user_without_password_matches_no_password(stored):
    assert not passwords.password_matches(stored, "")
    assert not passwords.password_matches(stored, "no hash at all")


def test_a_private_file_is_written_atomically(tmp_path):
    path = tmp_path / "kept" / "private"
    private_files.write_private(path, "first")
    private_files.write_private(path, "second", exclusive=True)
    kept = path.read_text()

    with pytest.raises(UnicodeEncodeError):
        private_files.write_private(path, "half a pair: \ud800")

    assert (kept, path.read_text()) == ("first", "first")
    assert [one.name for one in path.parent.iterdir()] == ["private"]
