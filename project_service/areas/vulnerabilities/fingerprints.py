"""What makes a finding the same one in the next pipeline (findings reference, section 10)."""

from __future__ import annotations

import hashlib
import uuid

# the product's namespace, so that identities made by either are the same
NAMESPACE = uuid.UUID("58dc0f06-936c-43b3-93bb-71693f1b6570")
EMPTY = hashlib.sha1(b"", usedforsecurity=False).hexdigest()


def fingerprint(text: str) -> str:
    """SHA-1 of a text, in hex: a name for it, not a protection."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def finding_uuid(report_type: str, identifier: str, location: str, project_id: int) -> str:
    """The identity of a finding in a project, from the fingerprints of its first identifier and of its place."""
    name = f"{report_type}-{identifier}-{location}-{project_id}"
    return str(uuid.uuid5(NAMESPACE, name))
