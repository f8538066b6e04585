"""What clients read of repositories (repositories reference, section 4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from project_service.areas.repositories.code_reading import CommitRow
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.repositories.reading.diffs import FileDiff
from project_service.domain.repositories.reading.objects import Commit, Person
from project_service.domain.schemas import project_url
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Schema

LIST_OF_TEXTS = {"items": {"type": "string"}}


def moment(time: dt.datetime) -> str:
    """A time in the zone of its author, with milliseconds."""
    return time.isoformat(timespec="milliseconds")


def commit_url(project: Project, commit: Commit) -> str:
    """The page of a commit."""
    return f"{project_url(project)}{page_paths.commit(commit.id)}"


def _of_commit(read: Callable[[Commit], Any], type: str = "string", **options: Any) -> fields.Computed:
    return fields.Computed(lambda row: read(row.commit), type=type, **options)


def _person(read: Callable[[Commit], Person], attribute: str) -> fields.Computed:
    return _of_commit(lambda commit: getattr(read(commit), attribute))


def _time(read: Callable[[Commit], Person]) -> fields.Computed:
    return _of_commit(lambda commit: moment(read(commit).time), metadata={"format": "date-time"})


class CommitSchema(Schema):
    """A commit of a list, or inside a tag or branch."""

    id = _of_commit(lambda commit: commit.id)
    short_id = _of_commit(lambda commit: commit.short_id)
    created_at = _time(lambda commit: commit.committer)
    parent_ids = _of_commit(lambda commit: commit.parent_ids, type="array", metadata=LIST_OF_TEXTS)
    title = _of_commit(lambda commit: commit.title)
    message = _of_commit(lambda commit: commit.message)
    author_name = _person(lambda commit: commit.author, "name")
    author_email = _person(lambda commit: commit.author, "email")
    authored_date = _time(lambda commit: commit.author)
    committer_name = _person(lambda commit: commit.committer, "name")
    committer_email = _person(lambda commit: commit.committer, "email")
    committed_date = _time(lambda commit: commit.committer)
    web_url = fields.Computed(lambda row: commit_url(row.project, row.commit))


def _has_stats(row: CommitRow) -> bool:
    return row.additions is not None


def _stats(row: CommitRow) -> dict[str, int]:
    additions, deletions = row.additions or 0, row.deletions or 0
    return {"additions": additions, "deletions": deletions, "total": additions + deletions}


class CommitWithStatsSchema(CommitSchema):
    """A commit with the numbers of changed lines, where they are wanted."""

    stats = fields.ConditionalField(_has_stats, _stats, type="object")


class CommitFullSchema(CommitWithStatsSchema):
    """One commit."""

    status = fields.Constant(None)
    project_id = fields.Computed(lambda row: row.project.id, type="integer")
    last_pipeline = fields.Constant(None)


class BlameCommitSchema(Schema):
    """The commit of some lines."""

    id = fields.String()
    parent_ids = fields.Array(fields.String())
    message = fields.String()
    authored_date = fields.Computed(lambda commit: moment(commit.author.time))
    author_name = fields.Computed(lambda commit: commit.author.name)
    author_email = fields.Computed(lambda commit: commit.author.email)
    committed_date = fields.Computed(lambda commit: moment(commit.committer.time))
    committer_name = fields.Computed(lambda commit: commit.committer.name)
    committer_email = fields.Computed(lambda commit: commit.committer.email)


class BlameSchema(Schema):
    """Lines in a row with the commit that changed them last."""

    commit = Embedded(BlameCommitSchema)
    lines = fields.Array(fields.String())


def _mode(mode: int) -> str:
    return f"{mode:06o}" if mode else "0"


def _patch(diff: FileDiff) -> str:
    return "" if diff.too_large else diff.patch


class DiffSchema(Schema):
    """What a difference does to one file."""

    old_path = fields.String()
    new_path = fields.String()
    a_mode = fields.Computed(lambda diff: _mode(diff.old_mode))
    b_mode = fields.Computed(lambda diff: _mode(diff.new_mode))
    diff = fields.Computed(_patch)
    new_file = fields.Boolean()
    renamed_file = fields.Boolean()
    deleted_file = fields.Boolean()
    too_large = fields.Boolean()


class CommitRefSchema(Schema):
    """A branch or tag whose history has a commit."""

    type = fields.String()
    name = fields.String()


class SequenceSchema(Schema):
    """The number of a commit in its history."""

    count = fields.Integer()


class TreeEntrySchema(Schema):
    """An entry of a folder."""

    id = fields.String()
    name = fields.String()
    type = fields.String()
    path = fields.String(attribute="shown_path")
    mode = fields.Computed(lambda entry: f"{entry.mode:06o}")


class BlobSchema(Schema):
    """A blob with its content in base64."""

    size = fields.Integer()
    encoding = fields.String()
    content = fields.String()
    sha = fields.String()


class FileSchema(Schema):
    """A file of a revision with its content in base64."""

    file_name = fields.String()
    file_path = fields.String()
    size = fields.Integer()
    encoding = fields.String()
    content_sha256 = fields.String()
    ref = fields.String()
    blob_id = fields.String()
    commit_id = fields.String()
    last_commit_id = fields.String()
    execute_filemode = fields.Boolean()
    content = fields.String()


class ContributorSchema(Schema):
    """An author and the number of their commits."""

    name = fields.String()
    email = fields.String()
    commits = fields.Integer()
    additions = fields.Constant(0)
    deletions = fields.Constant(0)


class ComparisonSchema(Schema):
    """The commits and differences between two revisions."""

    commit = Embedded(CommitSchema, keep_none=True)
    commits = fields.Array(Embedded(CommitSchema))
    diffs = fields.Array(Embedded(DiffSchema))
    compare_timeout = fields.Boolean()
    compare_same_ref = fields.Boolean()
    web_url = fields.Computed(
        lambda comparison: urls.absolute(
            f"/{comparison.project.full_path}/-/compare/{comparison.old_id}...{comparison.new_id}"
        )
    )
