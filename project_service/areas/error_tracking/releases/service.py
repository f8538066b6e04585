"""Writes of releases (source maps reference, section 19)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select

from project_service.areas.error_tracking.releases.models import ErrorRelease, SourceMapBundle
from project_service.kit import clock
from project_service.kit.db.session import db, insert

VERSION = re.compile(r"[^/\r\n\t\f\v]{1,250}")


def is_version(text: Any) -> bool:
    """Whether a text can name a release."""
    return isinstance(text, str) and bool(VERSION.fullmatch(text)) and text == text.strip() and text not in (".", "..")


def ensure_release(project_id: int, version: str) -> bool:
    """Create a release of a project unless it exists; return whether it was created."""
    row = insert(ErrorRelease).values(project_id=project_id, version=version, status="open", created_at=clock.now())
    return db.session.scalar(row.on_conflict_do_nothing().returning(ErrorRelease.id)) is not None


def releases_named(project_ids: Sequence[int], version: str) -> list[ErrorRelease]:
    """Return the releases of a version, one for each project."""
    statement = select(ErrorRelease).where(ErrorRelease.project_id.in_(project_ids), ErrorRelease.version == version)
    return list(db.session.scalars(statement.order_by(ErrorRelease.project_id)))


def update_release(release: ErrorRelease, fields: dict[str, Any], *, keeps_date: bool) -> None:
    """Change what is given; ``keeps_date``: an existing date of the release stays."""
    for name in ("ref", "url", "status"):
        if fields.get(name) is not None:
            setattr(release, name, fields[name])
    released: dt.datetime | None = fields.get("released_at")
    if released is not None and not (keeps_date and release.released_at):
        release.released_at = released
    release.started_at = fields.get("started_at") or release.started_at


def delete_releases(releases: Sequence[ErrorRelease]) -> None:
    """Remove releases with their uploads."""
    for release in releases:
        mine = (SourceMapBundle.project_id == release.project_id, SourceMapBundle.release == release.version)
        db.session.execute(delete(SourceMapBundle).where(*mine))
        db.session.delete(release)
    db.session.flush()
