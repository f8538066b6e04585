"""The tables and columns that imports write, and their rows."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from project_service.domain.events.models import Event
from project_service.domain.repositories.releases import Release, ReleaseLink
from project_service.domain.tracker.documents.designs import Design
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.domain.tracker.label_events import LabelEvent
from project_service.domain.tracker.labels import Label, LabelPriority
from project_service.domain.tracker.merge_requests import MergeRequest, MergeRequestLabel
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit.db.base import Base
from project_service.transfers.models import ArchivedRow, ImportFailure


class ImportedLabel(NamedTuple):
    """A label."""

    id: int
    project_id: int
    title: str
    color: str
    description: str | None
    extra: dict[str, Any] | None
    created_at: dt.datetime
    updated_at: dt.datetime


class ImportedMilestone(NamedTuple):
    """A milestone."""

    id: int
    project_id: int
    iid: int
    title: str
    description: str | None
    state: str
    start_date: dt.date | None
    due_date: dt.date | None
    extra: dict[str, Any] | None
    created_at: dt.datetime
    updated_at: dt.datetime


class ImportedIssue(NamedTuple):
    """An issue."""

    id: int
    project_id: int
    iid: int
    title: str
    description: str | None
    state: str
    issue_type: str
    severity: str
    confidential: bool
    discussion_locked: bool | None
    due_date: dt.date | None
    weight: int | None
    notes_count: int
    author_id: int | None
    closed_at: dt.datetime | None
    closed_by_id: int | None
    milestone_id: int | None
    extra: dict[str, Any] | None
    created_at: dt.datetime
    updated_at: dt.datetime


class ImportedMergeRequest(NamedTuple):
    """A merge request."""

    id: int
    project_id: int
    iid: int
    title: str
    description: str | None
    state: str
    source_branch: str
    target_branch: str
    author_id: int | None
    milestone_id: int | None
    extra: dict[str, Any] | None
    created_at: dt.datetime
    updated_at: dt.datetime


class ImportedSnippet(NamedTuple):
    """A snippet."""

    id: int
    project_id: int
    title: str
    file_name: str | None
    content: str | None
    visibility: int
    author_id: int | None
    extra: dict[str, Any] | None
    created_at: dt.datetime
    updated_at: dt.datetime


class ImportedRelease(NamedTuple):
    """A release."""

    id: int
    project_id: int
    tag: str
    name: str | None
    description: str | None
    sha: str | None
    released_at: dt.datetime
    author_id: int | None
    extra: dict[str, Any] | None
    created_at: dt.datetime
    updated_at: dt.datetime


class ImportedReleaseLink(NamedTuple):
    """A link of a release."""

    release_id: int
    name: str | None
    url: str
    filepath: str | None
    link_type: str
    created_at: dt.datetime
    updated_at: dt.datetime


class ImportedDesign(NamedTuple):
    """A design of an issue."""

    id: int
    project_id: int
    issue_id: int | None
    iid: int | None
    filename: str


class ImportedNote(NamedTuple):
    """A note."""

    id: int
    project_id: int
    noteable_type: str
    noteable_id: int | None
    commit_id: str | None
    type: str | None
    discussion_id: str | None
    body: str | None
    attachment: str | None
    system: bool
    confidential: bool
    position: dict[str, Any] | None
    author_id: int | None
    extra: dict[str, Any] | None
    created_at: dt.datetime
    updated_at: dt.datetime


class ImportedEvent(NamedTuple):
    """An event."""

    id: int
    action: int
    kind: int
    restriction: int
    author_id: int | None
    project_id: int
    issue_id: int | None
    target_type: str | None
    target_id: int | None
    data: dict[str, Any] | None
    extra: dict[str, Any] | None
    created_at: dt.datetime


class ImportedFailure(NamedTuple):
    """A row that was refused."""

    project_id: int
    created_at: dt.datetime
    exception_class: str
    exception_message: str
    source: str
    relation_name: str
    line_number: int | None


COLUMNS: dict[type[Base], tuple[str, ...]] = {
    model: tuple(row.__annotations__)
    for model, row in (
        (Label, ImportedLabel),
        (Milestone, ImportedMilestone),
        (Issue, ImportedIssue),
        (MergeRequest, ImportedMergeRequest),
        (Snippet, ImportedSnippet),
        (Release, ImportedRelease),
        (ReleaseLink, ImportedReleaseLink),
        (Design, ImportedDesign),
        (Note, ImportedNote),
        (Event, ImportedEvent),
        (ImportFailure, ImportedFailure),
    )
} | {
    LabelPriority: ("project_id", "label_id", "priority"),
    IssueLabel: ("issue_id", "title"),
    IssueAssignee: ("issue_id", "user_id"),
    LabelEvent: ("issue_id", "author_id", "title", "action", "created_at"),
    MergeRequestLabel: ("merge_request_id", "title"),
    ArchivedRow: ("project_id", "relation", "data"),
}
MODELS_WITH_IDS = (Label, Milestone, Issue, MergeRequest, Snippet, Release, Design, Note, Event)
