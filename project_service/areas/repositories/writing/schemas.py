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
    stats = fields.Boolean(default=True)


class FileDeleteSchema(CommitAboutSchema):
    """The deletion of a file."""

    last_commit_id = fields.String()


class FileWriteSchema(FileDeleteSchema):
    """The content of a file."""

    content = fields.String(metadata={"description": "Required."})
    encoding = fields.String(default="text", choices=("text", "base64"))
    execute_filemode = fields.Boolean()


class WrittenFileSchema(Schema):
    """Where a file was written."""

    file_path = fields.String()
    branch = fields.String()
