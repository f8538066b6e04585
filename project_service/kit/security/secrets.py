"""Secrets: what is stored of them, and the keys they are encrypted with.

Values that have to be read again (CI/CD variables, tokens of other services) are encrypted with the instance's key;
access tokens are stored as digests and cannot be read again; passwords are hashed with argon2id.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import functools
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import argon2
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

from project_service.settings import Settings

KEY_FILE = "secret_key"
GONE = 0
MOST_READ, LONGEST_READ = 256, 256
TOKEN_BYTES = 15  # 20 characters of URL-safe text, as the tokens of the specification's time
_passwords = argon2.PasswordHasher()


class SecretKeyMissing(Exception):
    """The stored secrets cannot be read with the keys at hand; the text says what to do."""


class Keyring:
    """The keys of this instance: the first encrypts, all of them decrypt."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        # what is encrypted never means anything else, so that what is read again and again is decrypted once
        self._read: dict[str, str] = {}
        self._fernet = MultiFernet([Fernet(_derive(key, b"encryption")) for key in keys])

    @functools.cached_property
    def signing_key(self) -> bytes:
        """The key that signs browser sessions and form tokens."""
        return _derive(self.keys[0], b"signing")

    @functools.cached_property
    def signing_key_fallbacks(self) -> list[bytes]:
        """Older keys whose signatures still count while a rotation is under way."""
        return [_derive(key, b"signing") for key in self.keys[1:]]

    def encrypt(self, text: str) -> str:
        """Encrypt a text for storage."""
        return self._fernet.encrypt(text.encode()).decode()

    def known(self, stored: str) -> str | None:
        """What a stored text says, if it was read a moment ago: whatever the keys are now, it says the same."""
        return self._read.get(stored)

    def decrypt(self, stored: str) -> str:
        """Read a stored text; ``SecretKeyMissing`` when it was written with another key."""
        known = self.known(stored)
        if known is None:
            with _told_when_missing():
                known = self._fernet.decrypt(stored.encode()).decode()
            if len(self._read) >= MOST_READ:
                self._read.clear()
            if len(stored) <= LONGEST_READ:
                self._read[stored] = known
        return known

    def renew(self, stored: str) -> str:
        """Encrypt a stored text again with the first key; ``SecretKeyMissing`` as above."""
        with _told_when_missing():
            return self._fernet.rotate(stored.encode()).decode()


@contextlib.contextmanager
def _told_when_missing() -> Iterator[None]:
    try:
        yield
    except InvalidToken as error:
        raise SecretKeyMissing(
            "a stored secret was encrypted with another key: set PROJECT_SERVICE_SECRET_KEY to the key it was written "
            f"with, or put the {KEY_FILE} file of its data directory back"
        ) from error


class _Current:
    """The keyring of this process; the type of a column has no application at hand to ask."""

    keyring: Keyring | None = None
    settings: Settings | None = None
    changed_at: int = 0


def init(settings: Settings) -> Keyring:
    """Read the keys, or make the first one; a key made here is kept in the data directory, readable by us only."""
    changed_at = _changed_at(settings)  # before the keys are read: a change right after that is noticed the next time
    keyring = Keyring(read_keys(settings))
    _Current.settings, _Current.changed_at, _Current.keyring = settings, changed_at, keyring
    return keyring


def keyring() -> Keyring:
    """The keys as they are now: a key file that was changed by a rotation is read again.

    One that has gone is no reason to make a new key here: what is stored could not be read with it.
    """
    if _Current.keyring is None or _Current.settings is None:
        raise SecretKeyMissing("the keys have not been read yet")
    if _changed_at(_Current.settings) not in (_Current.changed_at, GONE):
        return init(_Current.settings)
    return _Current.keyring


def _changed_at(settings: Settings) -> int:
    if settings.secret_key:
        return 0
    try:
        return os.stat(f"{settings.data_dir}/{KEY_FILE}").st_mtime_ns  # a path object costs more
    except FileNotFoundError:
        return GONE


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
    """Change the key file alone: of two at once, one could forget the key the other encrypts with."""
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(settings.data_dir / f"{KEY_FILE}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def add_key(settings: Settings) -> list[str]:
    """Put a new key in front of those in the key file."""
    keys = [secrets.token_urlsafe(48), *read_keys(settings)]
    write_private(settings.data_dir / KEY_FILE, "\n".join(keys) + "\n")
    return keys


def drop_old_keys(settings: Settings) -> None:
    """Forget all keys of the key file but the first."""
    write_private(settings.data_dir / KEY_FILE, read_keys(settings)[0] + "\n")


def write_private(path: Path, text: str, *, exclusive: bool = False) -> None:
    """Write a file that only we may read, whole or not at all; with ``exclusive`` an existing one is left alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if exclusive:
            with contextlib.suppress(FileExistsError):
                os.link(fresh, path)
        else:
            os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


class Encrypted(TypeDecorator[str]):
    """A text column that is ciphertext at rest and text in Python."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Encrypt."""
        return None if value is None else keyring().encrypt(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:
        """Decrypt."""
        if value is None:
            return None
        known = None if _Current.keyring is None else _Current.keyring.known(value)
        return keyring().decrypt(value) if known is None else known


def new_token(prefix: str = "") -> str:
    """A random text nobody guesses."""
    return prefix + secrets.token_urlsafe(TOKEN_BYTES)


def digest(token: str) -> str:
    """What is stored of a token: enough to find it, useless to a reader of the database.

    Tokens are random, so a plain hash cannot be searched; the look-up by digest leaks nothing through its timing.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def hash_password(password: str) -> str:
    """Hash a password with argon2id; slow on purpose, so never on the way of an API request with a token."""
    return _passwords.hash(password)


def password_matches(stored: str | None, password: str) -> bool:
    """Check a password; somebody without one costs the same time."""
    nobody = _nobody()  # made with the first password, whoever's: to hash takes long, and not every process checks any
    try:
        return _passwords.verify(stored or nobody, password) and stored is not None
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


def _derive(key: str, purpose: bytes) -> bytes:
    return base64.urlsafe_b64encode(hmac.digest(key.encode(), b"project-service " + purpose, "sha256"))


@functools.cache
def _nobody() -> str:
    return _passwords.hash(secrets.token_hex())
