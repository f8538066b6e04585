"""Signatures of requests as Standard Webhooks defines them."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode

SIGNING_PREFIX = "whsec_"
SIGNING_KEY_BYTES = 32


def signature(signing_token: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of ``webhook-signature``."""
    key = b64decode(signing_token.removeprefix(SIGNING_PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def is_signing_token(token: str) -> bool:
    """Whether a text is the prefix and ``SIGNING_KEY_BYTES`` bytes in Base64."""
    try:
        key = b64decode(token.removeprefix(SIGNING_PREFIX), validate=True)
    except ValueError:
        return False
    return token.startswith(SIGNING_PREFIX) and len(key) == SIGNING_KEY_BYTES
