"""The keys of the instance, and the column type that encrypts with them.

Values that must be read again (CI/CD variables, tokens of other services) are encrypted with the first key; all keys
decrypt, so that keys can be rotated while the service runs.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hmac
import os
import secrets
from collections.abc import Iterator
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

from project_service.kit import file_locks
from project_service.kit.security.private_files import write_private
from project_service.settings import Settings

KEY_FILE = "secret_key"
MISSING_FILE = 0
NONCE_BYTES = 12
KEY_ID_BYTES = 6


class SecretKeyMissing(Exception):
    """The stored secrets cannot be read with the keys at hand; the text says what to do."""


class KeyRing:
    """The keys of this instance: the first encrypts, all of them decrypt.

    Texts are encrypted with AES-256-GCM. A stored text is ``<key id>.<base64 of nonce and ciphertext>``; the id tells
    which key decrypts it, and is derived from the key.
    """

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self._key_id = key_id(keys[0])
        self._ciphers = {key_id(key): AESGCM(_derive(key, b"encryption")) for key in keys}

    @functools.cached_property
    def signing_key(self) -> bytes:
        """The key that signs browser sessions and form tokens."""
        return _signing_key(self.keys[0])

    @functools.cached_property
    def signing_key_fallbacks(self) -> list[bytes]:
        """Older keys whose signatures still count during a rotation."""
        return [_signing_key(key) for key in self.keys[1:]]

    def encrypt(self, text: str) -> str:
        """Encrypt a text for storage."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = nonce + self._ciphers[self._key_id].encrypt(nonce, text.encode(), None)
        return f"{self._key_id}.{base64.urlsafe_b64encode(sealed).decode()}"

    def decrypt(self, stored: str) -> str:
        """Read a stored text; ``SecretKeyMissing`` when it was written with another key, or changed since."""
        identifier, _, encoded = stored.partition(".")
        try:
            sealed = base64.urlsafe_b64decode(encoded)
            return self._ciphers[identifier].decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None).decode()
        except (KeyError, ValueError, InvalidTag) as error:
            raise SecretKeyMissing(
                "a stored secret was encrypted with another key: set PROJECT_SERVICE_SECRET_KEY to the key it was "
                f"written with, or put the {KEY_FILE} file of its data directory back"
            ) from error

    def renew(self, stored: str) -> str:
        """Encrypt a stored text again with the first key; ``SecretKeyMissing`` as above."""
        return self.encrypt(self.decrypt(stored))


def key_id(key: str) -> str:
    """Return the id of a key: the same key has the same id everywhere, and the id does not reveal the key."""
    return _derive(key, b"key id")[:KEY_ID_BYTES].hex()


class _Current:
    """The key ring of this process: column types have no application context."""

    keyring: KeyRing | None = None
    settings: Settings | None = None
    changed_at: int = 0


def init(settings: Settings) -> KeyRing:
    """Read the keys, or generate the first one into the data directory, readable by this user only."""
    changed_at = _changed_at(settings)  # before reading the keys: a change right after is noticed by the next call
    keyring = KeyRing(read_keys(settings))
    _Current.settings, _Current.changed_at, _Current.keyring = settings, changed_at, keyring
    return keyring


def keyring() -> KeyRing:
    """The current keys: a key file that a rotation has changed is read again.

    A missing key file does not generate a new key here: stored secrets could not be decrypted with it.
    """
    if _Current.keyring is None or _Current.settings is None:
        raise SecretKeyMissing("the keys have not been read yet")
    if _changed_at(_Current.settings) not in (_Current.changed_at, MISSING_FILE):
        return init(_Current.settings)
    return _Current.keyring


def decrypt(stored: str) -> str:
    """Read a stored text with the keys that this process has.

    ``keyring`` looks for changed keys once per request; here only a text of an unknown key is a reason to look again.
    """
    current = _Current.keyring or keyring()
    try:
        return current.decrypt(stored)
    except SecretKeyMissing:
        return keyring().decrypt(stored)


def _changed_at(settings: Settings) -> int:
    if settings.secret_key:
        return 0
    try:
        return (settings.data_dir / KEY_FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return MISSING_FILE


def read_keys(settings: Settings) -> list[str]:
    """The configured key, or those in the key file, newest first."""
    if settings.secret_key:
        return settings.secret_key.split(",")
    path = settings.data_dir / KEY_FILE
    if not path.exists():
        write_private(path, f"{secrets.token_urlsafe(48)}\n", exclusive=True)
    keys = path.read_text().split()
    if not keys:
        raise SecretKeyMissing(f"{path} is empty: put the key back that this data directory was made with")
    return keys


@contextlib.contextmanager
def changing_keys(settings: Settings) -> Iterator[None]:
    """Lock the key file: of two concurrent changes, one could drop the key the other encrypts with."""
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file_locks.locked(settings.data_dir / f"{KEY_FILE}.lock"):
        yield


def add_key(settings: Settings) -> list[str]:
    """Prepend a new key to those in the key file."""
    keys = [secrets.token_urlsafe(48), *read_keys(settings)]
    write_private(settings.data_dir / KEY_FILE, "\n".join(keys) + "\n")
    return keys


def drop_old_keys(settings: Settings) -> None:
    """Remove all keys of the key file but the first."""
    write_private(settings.data_dir / KEY_FILE, read_keys(settings)[0] + "\n")


class Encrypted(TypeDecorator[str]):
    """A text column that is ciphertext at rest and text in Python."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Encrypt."""
        return None if value is None else keyring().encrypt(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:
        """Decrypt."""
        return None if value is None else decrypt(value)


def _signing_key(key: str) -> bytes:
    return base64.urlsafe_b64encode(_derive(key, b"signing"))


def _derive(key: str, purpose: bytes) -> bytes:
    return hmac.digest(key.encode(), b"project-service " + purpose, "sha256")
