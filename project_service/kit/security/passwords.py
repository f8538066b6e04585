"""Passwords, hashed with argon2id."""

from __future__ import annotations

import functools
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import argon2

from project_service.kit.http.errors import Unavailable

MAX_CHECKS = 1  # at once in a process: each takes 64 MiB and several processors
MAX_WAITING = 4  # threads that wait for an attempt; each of them could answer others
WAIT_SECONDS = 5.0
_hasher = argon2.PasswordHasher()
_checks = threading.BoundedSemaphore(MAX_CHECKS)
_attempts = threading.BoundedSemaphore(MAX_CHECKS)
_waiting = threading.BoundedSemaphore(MAX_WAITING)


@contextmanager
def attempt() -> Iterator[None]:
    """Run the block as one of the few attempts to guess a password that a process serves at once.

    Raises:
        Unavailable: too many others wait, or none ended in time.

    """
    if not _attempts.acquire(blocking=False):
        if not _waiting.acquire(blocking=False):
            raise Unavailable
        try:
            if not _attempts.acquire(timeout=WAIT_SECONDS):
                raise Unavailable
        finally:
            _waiting.release()
    try:
        yield
    finally:
        _attempts.release()


def hash_password(password: str) -> str:
    """Hash a password; slow on purpose, so never during an API request with a token."""
    with _checks:
        return _hasher.hash(password)


def password_matches(stored: str | None, password: str) -> bool:
    """Check a password; a user without one takes the same time."""
    try:
        password_hash = stored or _unused_hash()
        with _checks:
            return _hasher.verify(password_hash, password) and stored is not None
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


@functools.cache
def _unused_hash() -> str:
    return _hasher.hash(secrets.token_hex())
