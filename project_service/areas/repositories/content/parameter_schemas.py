"""Parameters of the API of repositories (repositories reference, section 4)."""

from __future__ import annotations

from marshmallow.validate import Length

from project_service.domain.repositories.reading.history import MAX_SEARCH_LENGTH
from project_service.kit.http import fields
from project_service.kit.http.schemas import Nested, Schema


class CommitListSchema(Schema):
    """Which commits."""

    ref_name = fields.String(metadata={"description": "A branch, tag, commit, or two of them: a..b."})
    path = fields.String(metadata={"description": "Only commits that changed this file or folder."})
    since = fields.DateTime()
    until = fields.DateTime()
    author = fields.String(
        validate=Length(max=MAX_SEARCH_LENGTH), metadata={"description": "A part of the name or address of the author."}
    )
    all = fields.Boolean(default=False, metadata={"description": "The commits of all branches and tags."})
    first_parent = fields.Boolean(default=False)
    order = fields.String(default="default", choices=("default", "topo"))
    with_stats = fields.Boolean(default=False)


class CommitShowSchema(Schema):
    """Options for showing a commit."""

    stats = fields.Boolean(default=True)


class CommitRefsSchema(Schema):
    """Which refs contain a commit."""

    type = fields.String(default="all", choices=("branch", "tag", "all"))


class CommitSequenceSchema(Schema):
    """How commits are counted."""

    first_parent = fields.Boolean(default=False)


class TreeListSchema(Schema):
    """Which folder."""

    path = fields.String()
    ref = fields.String()
    recursive = fields.Boolean(default=False)
    pagination = fields.String(default="legacy", choices=("legacy", "keyset", "none"))
    page_token = fields.String()


class FileShowSchema(Schema):
    """The revision of a file."""

    ref = fields.String(required=True, allow_blank=False)


class FileRawSchema(Schema):
    """The revision of a file, by default that of the default branch."""

    ref = fields.String()


class LineRangeSchema(Schema):
    """A range of lines, from 1."""

    start = fields.Integer(required=True)
    end = fields.Integer(required=True)


class FileBlameSchema(FileShowSchema):
    """The revision of a file and the lines of it."""

    range = Nested(LineRangeSchema)


class ArchiveSchema(Schema):
    """What an archive contains."""

    sha = fields.String()
    path = fields.String()
    format = fields.String()


class CompareSchema(Schema):
    """What to compare."""

    start = fields.String(required=True, data_key="from")
    to = fields.String(required=True)
    straight = fields.Boolean(
        default=False, metadata={"description": "Compare with the revision itself, not with the common ancestor."}
    )


class ContributorListSchema(Schema):
    """The order of contributors."""

    ref = fields.String()
    order_by = fields.String(default="commits", choices=("commits", "name", "email"))
    sort = fields.String(default="asc", choices=("asc", "desc"))


class MergeBaseSchema(Schema):
    """The revisions whose common ancestor is wanted."""

    refs = fields.Array(fields.String(), required=True)
