"""Schemas of what is committed by the API."""

from __future__ import annotations

from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class CommitAboutSchema(Schema):
    """The branch and the message of a commit, and who wrote it."""

    branch = fields.String(metadata={"description": "Required."})
    commit_message = fields.String(metadata={"description": "Required."})
    start_branch = fields.String(metadata={"description": "Where a new branch begins."})
    author_name = fields.String()
    author_email = fields.String()


class CommitCreateSchema(CommitAboutSchema):
    """Several changes of files in one commit."""

    actions = fields.Array(fields.Hash(), metadata={"description": "Required: create, update, move, delete, chmod."})
    start_sha = fields.String(metadata={"description": "The commit at which a new branch begins, 40 digits."})
    start_project = fields.String(metadata={"description": "Only the project itself: there are no forks."})
    force = fields.Boolean(default=False, metadata={"description": "Set a branch that exists onto another start."})
    stats = fields.Boolean(default=True)
    allow_empty = fields.Boolean(default=False)


class RevertSchema(Schema):
    """The branch that gets a commit."""

    branch = fields.String(required=True, allow_blank=False)
    dry_run = fields.Boolean(default=False, metadata={"description": "Change nothing."})


class CherryPickSchema(RevertSchema):
    """The branch that gets a commit, and its message."""

    message = fields.String(metadata={"description": "By default that of the commit, with its id."})


class FileDeleteSchema(CommitAboutSchema):
    """The deletion of a file."""

    branch = fields.String(required=True, allow_blank=False)
    commit_message = fields.String(required=True, allow_blank=False)
    last_commit_id = fields.String()


class FileWriteSchema(CommitAboutSchema):
    """The content of a file."""

    last_commit_id = fields.String()
    content = fields.String(metadata={"description": "Required."})
    encoding = fields.String(default="text", choices=("text", "base64"))
    execute_filemode = fields.Boolean()


class WrittenFileSchema(Schema):
    """Where a file was written, and by which commit (a later addition to the API)."""

    file_path = fields.String()
    branch = fields.String()
    commit_id = fields.String()
