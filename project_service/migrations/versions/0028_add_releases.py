"""Add releases; rows of archives that were stored only for the next export become releases."""

from __future__ import annotations

import datetime as dt
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MAX_NAME_LENGTH, MAX_INDEXED_BYTES, MAX_TEXT_LENGTH = 255, 1024, 1_000_000
LINK_TYPES = ("other", "runbook", "image", "package")
ARCHIVED = sa.table(
    "archived_rows",
    sa.column("id", KEY),
    sa.column("project_id", KEY),
    sa.column("relation", sa.String()),
    sa.column("data", sa.JSON()),
)


def _timestamps() -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.DateTime(timezone=True), nullable=False) for name in ("created_at", "updated_at")]


def upgrade() -> None:
    """Add the tables and fill them."""
    releases = op.create_table(
        "releases",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("sha", sa.String(), nullable=True),
        sa.Column("released_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("author_id", KEY, nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        *_timestamps(),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_releases_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name="fk_releases_author_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_releases"),
        sa.UniqueConstraint("project_id", "tag", name="uq_releases_project_id_tag"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_releases_project_id", "releases", ["project_id", "id"])
    op.create_index("ix_releases_released_at", "releases", ["project_id", "released_at", "id"])
    op.create_index("ix_releases_created_at", "releases", ["project_id", "created_at", "id"])
    op.create_index("ix_releases_author_id", "releases", ["author_id"])
    links = op.create_table(
        "release_links",
        sa.Column("id", KEY, nullable=False),
        sa.Column("release_id", KEY, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("filepath", sa.String(), nullable=True),
        sa.Column("link_type", sa.String(), nullable=False),
        *_timestamps(),
        sa.ForeignKeyConstraint(
            ["release_id"], ["releases.id"], name="fk_release_links_release_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_release_links"),
        sa.UniqueConstraint("release_id", "url", name="uq_release_links_release_id_url"),
        sa.UniqueConstraint("release_id", "name", name="uq_release_links_release_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "release_milestones",
        sa.Column("id", KEY, nullable=False),
        sa.Column("release_id", KEY, nullable=False),
        sa.Column("milestone_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["release_id"], ["releases.id"], name="fk_release_milestones_release_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["milestone_id"], ["milestones.id"], name="fk_release_milestones_milestone_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_release_milestones"),
        sa.UniqueConstraint("release_id", "milestone_id", name="uq_release_milestones_release_id_milestone_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_release_milestones_milestone_id", "release_milestones", ["milestone_id"])
    _convert(op.get_bind(), releases, links)


def downgrade() -> None:
    """Drop the tables."""
    for name in ("release_milestones", "release_links", "releases"):
        op.drop_table(name)


def _convert(connection: sa.Connection, releases: sa.Table, links: sa.Table) -> None:
    now = dt.datetime.now(dt.UTC)
    stored = sa.select(ARCHIVED.c.id, ARCHIVED.c.project_id).where(ARCHIVED.c.relation == "releases")
    users = set(connection.scalars(sa.text("SELECT id FROM users")))
    known: set[tuple[int, str]] = set()
    for number, project_id in connection.execute(stored.order_by(ARCHIVED.c.id)).all():
        row: Any = connection.scalar(sa.select(ARCHIVED.c.data).where(ARCHIVED.c.id == number))
        release = _release(row, now)
        links_of_release = None if release is None else _links(row, release["created_at"])
        if release is None or links_of_release is None or (project_id, release["tag"]) in known:
            continue  # it stays as it is, for the next export
        known.add((project_id, release["tag"]))
        if release["author_id"] not in users:
            release["author_id"] = None
        statement = sa.insert(releases).values(project_id=project_id, **release).returning(releases.c.id)
        release_id = connection.scalar(statement)
        if links_of_release:
            connection.execute(sa.insert(links), [{"release_id": release_id, **link} for link in links_of_release])
        connection.execute(sa.delete(ARCHIVED).where(ARCHIVED.c.id == number))


def _release(row: Any, now: dt.datetime) -> dict[str, Any] | None:
    tag = row.get("tag") if isinstance(row, dict) else None
    if not isinstance(tag, str) or not tag.strip() or len(tag.encode()) > MAX_INDEXED_BYTES:
        return None
    texts = {name: row.get(name) for name in ("name", "description", "sha")}
    if any(value is not None and not isinstance(value, str) for value in texts.values()):
        return None
    if any(len(value or "") > MAX_TEXT_LENGTH for value in texts.values()):
        return None
    created_at = _moment(row.get("created_at")) or now
    return texts | {
        "tag": tag,
        "author_id": row.get("author_id") if type(row.get("author_id")) is int else None,
        "created_at": created_at,
        "updated_at": _moment(row.get("updated_at")) or created_at,
        "released_at": _moment(row.get("released_at")) or created_at,
        "extra": row,
    }


def _links(row: dict[str, Any], created_at: dt.datetime) -> list[dict[str, Any]] | None:
    links = row.get("links") or []
    if not isinstance(links, list):
        return None
    found = [_link(link, created_at) for link in links]
    valid = [link for link in found if link is not None]
    distinct = all(len({link[name] for link in valid}) == len(valid) for name in ("name", "url"))
    return valid if len(valid) == len(found) and distinct else None


def _link(link: Any, created_at: dt.datetime) -> dict[str, Any] | None:
    if not isinstance(link, dict):
        return None
    name, url, filepath = link.get("name"), link.get("url"), link.get("filepath")
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_LENGTH or not _is_url(url):
        return None
    if filepath is not None and not isinstance(filepath, str):
        return None
    made_at = _moment(link.get("created_at")) or created_at
    return {
        "name": name,
        "url": url,
        "filepath": filepath,
        "link_type": link.get("link_type") if link.get("link_type") in LINK_TYPES else "other",
        "created_at": made_at,
        "updated_at": _moment(link.get("updated_at")) or made_at,
    }


def _is_url(url: Any) -> bool:
    if not isinstance(url, str) or len(url.encode()) > MAX_INDEXED_BYTES:
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https", "ftp") and bool(parts.hostname)


def _moment(text: Any) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)
