"""Mapping of releases and their links."""

from __future__ import annotations

import datetime as dt
from typing import Any

from project_service.domain.repositories import releases
from project_service.domain.repositories.releases import Release, ReleaseLink
from project_service.transfers.importing.mapping.archived_rows import store_row
from project_service.transfers.importing.mapping.context import ImportContext
from project_service.transfers.importing.mapping.tables import ImportedRelease, ImportedReleaseLink
from project_service.transfers.importing.mapping.values import moment_of

RELATION = "releases"
MAX_SHA_LENGTH = 64


def map_release(context: ImportContext, row: dict[str, Any]) -> None:
    """Add a release with its links.

    A row that cannot be a release here, because its tag or a link is not valid or exists already, is stored as it is
    for the next export.
    """
    tag, links = row.get("tag"), _links_of(row)
    if links is None or not isinstance(tag, str) or not _is_tag(tag) or tag in context.state.release_tags:
        store_row(context, RELATION, row)
        return
    context.state.release_tags[tag] = None
    description = context.text_of(row.get("description"), "Description")
    extra = context.users.map_references(row, RELATION)
    if description is not None:
        extra["description"] = description
    created_at, updated_at = context.timestamps_of(row)
    number = next(context.ids[Release])
    context.batch.add(
        Release,
        ImportedRelease(
            id=number,
            project_id=context.project_id,
            tag=tag,
            name=_short(row.get("name"), releases.MAX_NAME_LENGTH),
            description=description,
            sha=_short(row.get("sha"), MAX_SHA_LENGTH),
            released_at=moment_of(row.get("released_at")) or created_at,
            author_id=context.users.find(row.get("author_id")),
            extra=extra,
            created_at=created_at,
            updated_at=updated_at,
        ),
    )
    for link in links:
        context.batch.add(ReleaseLink, _link_row(number, link, created_at))


def _is_tag(tag: str) -> bool:
    return bool(tag.strip()) and len(tag.encode()) <= releases.MAX_INDEXED_BYTES


def _short(value: Any, length: int) -> str | None:
    return value[:length] if isinstance(value, str) and value.strip() else None


def _links_of(row: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the links of a release; ``None`` if one is not valid, or two have the same name or URL."""
    links = row.get("links") or []
    if not isinstance(links, list) or not all(isinstance(link, dict) and _is_link(link) for link in links):
        return None
    distinct = all(len({link[name] for link in links}) == len(links) for name in ("name", "url"))
    return links if distinct else None


def _is_link(link: dict[str, Any]) -> bool:
    name, url = link.get("name"), link.get("url")
    if not isinstance(name, str) or not name.strip() or len(name) > releases.MAX_NAME_LENGTH:
        return False
    return isinstance(url, str) and releases.is_link_url(url) and isinstance(link.get("filepath"), str | None)


def _link_row(release_id: int, link: dict[str, Any], released_at: dt.datetime) -> ImportedReleaseLink:
    kind = link.get("link_type")
    created_at = moment_of(link.get("created_at")) or released_at
    updated_at = moment_of(link.get("updated_at")) or created_at
    link_type = kind if kind in releases.LINK_TYPES else "other"
    return ImportedReleaseLink(
        release_id, link["name"], link["url"], link.get("filepath"), link_type, created_at, updated_at
    )
