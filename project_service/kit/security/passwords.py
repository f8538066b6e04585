"""Passwords, hashed with argon2id."""

from __future__ import annotations

import functools
import secrets
import threading

import argon2

MAX_CHECKS = 2  # at once in a process: each takes 64 MiB and a processor
_hasher = argon2.PasswordHasher()
_checks = threading.BoundedSemaphore(MAX_CHECKS)


def hash_password(password: str) -> str:
    """Hash a password; slow on purpose, so never during an API request with a token."""
    with _checks:
        return _hasher.hash(password)


def password_matches(stored: str | None, password: str) -> bool:
    """Check a password; a user without one takes the same time."""
    try:
        known = stored or _unused_hash()
        with _checks:
            return _hasher.verify(known, password) and stored is not None
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


@functools.cache
def _unused_hash() -> str:
    return _hasher.hash(secrets.token_hex())
