"""Releases as clients read and write them (repositories reference, section 4.6)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.areas.repositories.content.schemas import CommitSchema
from project_service.areas.repositories.releases.queries import ReleaseRow
from project_service.domain.projects import Project
from project_service.domain.repositories.releases import LINK_TYPES, Release, ReleaseLink
from project_service.domain.schemas import UserBasicSchema, project_url
from project_service.domain.tracker.schemas import MilestoneSchema
from project_service.kit import clock
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Nested, Schema

SOURCE_FORMATS = ("zip", "tar.gz", "tar.bz2", "tar")


def release_url(project: Project, tag: str) -> str:
    """The page of a release."""
    return f"{project_url(project)}/-/releases/{urls.encode_path(tag)}"


def _path(project: Project, page: str, name: str) -> str:
    return f"/{urls.encode_path(project.full_path)}/-/{page}/{urls.encode_path(name)}"


class LinkedAsset(Schema):
    """A link of a release."""

    id = fields.Integer()
    name = fields.String()
    url = fields.String()
    direct_asset_url = fields.Computed(lambda link: link.url)
    link_type = fields.String()


def sources_of(project: Project, tag: str) -> list[dict[str, str]]:
    """The archives of a tag, by their formats."""
    name = f"{project.path}-{tag.replace('/', '-')}"
    begin = f"{project_url(project)}/-/archive/{urls.encode_path(tag)}/{urls.encode_path(name)}"
    return [{"format": kind, "url": f"{begin}.{kind}"} for kind in SOURCE_FORMATS]


def newest_links(release: Release) -> list[ReleaseLink]:
    """The links of a release, the newest first."""
    return list(reversed(release.links))


def _assets(row: ReleaseRow) -> dict[str, Any]:
    # without its tag a release has no archives
    sources = [] if row.commit is None else sources_of(row.project, row.release.tag)
    links = [LinkedAsset.dump_value(link) for link in newest_links(row.release)]
    return {"count": len(sources) + len(links), "sources": sources, "links": links}


def _links(row: ReleaseRow) -> dict[str, str]:
    address = release_url(row.project, row.release.tag)
    edits = allowed(caller(), Ability.PUSH_CODE, row.project)
    return {"self": address, **({"edit_url": f"{address}/edit"} if edits else {})}


class ReleaseSchema(Schema):
    """A release."""

    tag_name = fields.Computed(lambda row: row.release.tag)
    name = fields.Computed(lambda row: row.release.name or row.release.tag)
    description = fields.Computed(lambda row: row.release.description)
    created_at = fields.Computed(lambda row: clock.isoformat(row.release.created_at), metadata={"format": "date-time"})
    released_at = fields.Computed(
        lambda row: clock.isoformat(row.release.released_at), metadata={"format": "date-time"}
    )
    upcoming_release = fields.Computed(lambda row: row.release.is_upcoming, type="boolean")
    author = fields.Computed(
        lambda row: None if row.release.author is None else UserBasicSchema.dump_value(row.release.author),
        type="object",
    )
    commit = Embedded(CommitSchema, keep_none=True)
    milestones = fields.Computed(
        lambda row: [MilestoneSchema.dump_value(milestone) for milestone in row.release.milestones],
        type="array",
        metadata={"items": {"type": "object"}},
    )
    commit_path = fields.Computed(
        lambda row: None if row.commit is None else _path(row.project, "commit", row.commit.commit.id)
    )
    tag_path = fields.Computed(lambda row: _path(row.project, "tags", row.release.tag))
    assets = fields.Computed(_assets, type="object")
    evidences = fields.Constant([], metadata={"items": {"type": "object"}})
    _links = fields.Computed(_links, type="object")


class ReleaseListSchema(Schema):
    """The order of releases."""

    order_by = fields.String(default="released_at", choices=("released_at", "created_at"))
    sort = fields.String(default="desc", choices=("desc", "asc"))


class LinkFields(Schema):
    """What a link of a release may have besides its name and URL."""

    filepath = fields.String(metadata={"description": "A path for a permanent address of the file."})
    direct_asset_path = fields.String(metadata={"description": "The newer name of filepath."})


class LinkCreateSchema(LinkFields):
    """A link to add."""

    name = fields.String(required=True)
    url = fields.String(required=True)
    link_type = fields.String(default="other", choices=LINK_TYPES)


class LinkUpdateSchema(LinkFields):
    """What changes of a link."""

    name = fields.String()
    url = fields.String()
    link_type = fields.String(choices=LINK_TYPES)


class AssetsSchema(Schema):
    """The links of a new release."""

    links = fields.Array(Nested(LinkCreateSchema))


class ReleaseFields(Schema):
    """What a release has besides its tag."""

    name = fields.String(metadata={"description": "By default the tag."})
    description = fields.String(allow_blank=True, metadata={"description": "The release notes in Markdown."})
    released_at = fields.DateTime()
    milestones = fields.Array(fields.String(), metadata={"description": "Titles of milestones of the project."})


class ReleaseCreateSchema(ReleaseFields):
    """A release to create."""

    tag_name = fields.String(required=True)
    ref = fields.String(metadata={"description": "Where the tag is created if it does not exist."})
    tag_message = fields.String(metadata={"description": "Creates an annotated tag."})
    assets = Nested(AssetsSchema)


class ReleaseUpdateSchema(ReleaseFields):
    """What changes of a release."""
