"""Random tokens: stored as digests, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets

TOKEN_BYTES = 15  # 20 characters of URL-safe text


def new_token(prefix: str = "") -> str:
    """A random token."""
    return prefix + secrets.token_urlsafe(TOKEN_BYTES)


def digest(token: str) -> str:
    """The digest that is stored in place of a token.

    Tokens are random, so an unsalted hash cannot be reversed by search; looking up a digest leaks nothing by timing.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def same(first: str, second: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(first.encode(), second.encode())
