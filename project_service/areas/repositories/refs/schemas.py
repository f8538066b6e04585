"""Branches and tags as clients read them (repositories reference, sections 4.1 and 4.2)."""

from __future__ import annotations

from project_service.areas.repositories.content.schemas import CommitSchema, moment
from project_service.domain.schemas import project_url
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Schema


class BranchSchema(Schema):
    """A branch."""

    name = fields.String()
    commit = Embedded(CommitSchema)
    merged = fields.Boolean()
    protected = fields.Boolean()
    developers_can_push = fields.Boolean()
    developers_can_merge = fields.Boolean()
    can_push = fields.Boolean()
    default = fields.Boolean()
    web_url = fields.Computed(lambda row: f"{project_url(row.project)}/-/tree/{urls.encode_path(row.name)}")


class TagSchema(Schema):
    """A tag; ``message`` is null for one without an object of its own."""

    name = fields.String()
    message = fields.String()
    target = fields.String()
    commit = Embedded(CommitSchema, keep_none=True)
    protected = fields.Boolean()
    release = fields.Computed(
        lambda row: (
            None if row.release is None else {"tag_name": row.release.tag, "description": row.release.description}
        ),
        type="object",
    )
    created_at = fields.Computed(
        lambda row: None if row.tagger is None else moment(row.tagger.time), metadata={"format": "date-time"}
    )


class TagCreateSchema(Schema):
    """A tag to create."""

    tag_name = fields.String(required=True)
    ref = fields.String(required=True, metadata={"description": "An object id, a branch or a tag."})
    message = fields.String(metadata={"description": "Creates an annotated tag."})


class BranchCreateSchema(Schema):
    """A branch to create."""

    branch = fields.String(required=True)
    ref = fields.String(required=True, metadata={"description": "An object id, a branch or a tag."})


class BranchProtectSchema(Schema):
    """Which roles besides maintainers may push to a branch and merge into it."""

    developers_can_push = fields.Boolean()
    developers_can_merge = fields.Boolean()


class BranchListSchema(Schema):
    """Which branches, and their order."""

    search = fields.String(metadata={"description": "A part of the name; ^a begins and b$ ends with it."})
    regex = fields.String(metadata={"description": "Not supported: refused."})
    sort = fields.String(default="name_asc", choices=("name_asc", "updated_asc", "updated_desc"))


class TagListSchema(Schema):
    """Which tags, and their order."""

    search = fields.String(metadata={"description": "A part of the name; ^a begins and b$ ends with it."})
    order_by = fields.String(default="updated", choices=("updated", "name", "version"))
    sort = fields.String(default="desc", choices=("asc", "desc"))
