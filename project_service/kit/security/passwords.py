"""Passwords, hashed with argon2id."""

from __future__ import annotations

import functools
import secrets

import argon2

_hasher = argon2.PasswordHasher()


def hash_password(password: str) -> str:
    """Hash a password; slow on purpose, so never during an API request with a token."""
    return _hasher.hash(password)


def password_matches(stored: str | None, password: str) -> bool:
    """Check a password; a user without one takes the same time."""
    try:
        return _hasher.verify(stored or _unused_hash(), password) and stored is not None
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


@functools.cache
def _unused_hash() -> str:
    return _hasher.hash(secrets.token_hex())
