"""Serialization of releases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sqlalchemy import select

from project_service.domain.repositories.releases import Release, ReleaseLink
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.templates import Line

RELATION = "releases"


def serialize_releases(context: ExportContext) -> Iterator[Line]:
    """Generate the releases with their links; those that an import brought as they were, until they change."""
    columns = (
        Release.id,
        Release.tag,
        Release.name,
        Release.description,
        Release.sha,
        Release.author_id,
        Release.extra,
        context.iso(Release.released_at),
        context.iso(Release.created_at),
        context.iso(Release.updated_at),
    )
    statement = select(*columns).where(Release.project_id == context.project.id)
    at_once = context.rows_at_once(Release, Release.description, Release.extra)
    for rows in context.portions(statement, Release.id, at_once):
        links = _links_of(context, [row[0] for row in rows])
        for number, tag, name, description, sha, author_id, extra, released_at, created_at, updated_at in rows:
            if extra and "tag" in extra:
                yield extra
                continue
            yield {
                "id": number,
                "tag": tag,
                "description": description,
                "project_id": context.project.id,
                "created_at": created_at,
                "updated_at": updated_at,
                "author_id": author_id,
                "name": name,
                "sha": sha,
                "released_at": released_at,
                "links": links[number],
                **(extra or {}),
            }
    yield from context.archived(RELATION)


def _links_of(context: ExportContext, numbers: Sequence[int]) -> dict[int, list[Line]]:
    links: dict[int, list[Line]] = defaultdict(list)
    columns = (
        ReleaseLink.id,
        ReleaseLink.release_id,
        ReleaseLink.url,
        ReleaseLink.name,
        ReleaseLink.filepath,
        ReleaseLink.link_type,
        context.iso(ReleaseLink.created_at).label("created_at"),
        context.iso(ReleaseLink.updated_at).label("updated_at"),
    )
    statement = select(*columns).where(ReleaseLink.release_id.in_(numbers)).order_by(ReleaseLink.id)
    for row in context.execute(statement):
        links[row.release_id].append(row._asdict())
    return links
