"""Fingerprints and uuids, which identify a finding across pipelines (findings reference, section 10)."""

from __future__ import annotations

import hashlib
import uuid

# the namespace of GitLab, so that both give a finding the same uuid
NAMESPACE = uuid.UUID("58dc0f06-936c-43b3-93bb-71693f1b6570")
EMPTY = hashlib.sha1(b"", usedforsecurity=False).hexdigest()


def fingerprint(text: str) -> str:
    """Return the SHA-1 of a text in hex: an identifier, not a protection."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def finding_uuid(report_type: str, identifier: str, location: str, project_id: int) -> str:
    """Return the uuid of a finding in a project, from the fingerprints of its first identifier and its location."""
    name = f"{report_type}-{identifier}-{location}-{project_id}"
    return str(uuid.uuid5(NAMESPACE, name))
