"""The tables and columns that imports write."""

from __future__ import annotations

from project_service.domain.events.models import Event
from project_service.domain.repositories.releases import Release, ReleaseLink
from project_service.domain.tracker.designs import Design
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.domain.tracker.labels import Label, LabelPriority
from project_service.domain.tracker.merge_requests import MergeRequest, MergeRequestLabel
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.snippets import Snippet
from project_service.kit.db.base import Base
from project_service.transfers.models import ArchivedRow, ImportFailure

COLUMNS: dict[type[Base], tuple[str, ...]] = {
    model: tuple(names.split())
    for model, names in (
        (Label, "id project_id title color description extra created_at updated_at"),
        (LabelPriority, "project_id label_id priority"),
        (Milestone, "id project_id iid title description state start_date due_date extra created_at updated_at"),
        (
            Issue,
            """id project_id iid title description state issue_type severity confidential discussion_locked
            due_date weight notes_count author_id closed_at closed_by_id milestone_id extra created_at updated_at""",
        ),
        (IssueLabel, "issue_id title"),
        (IssueAssignee, "issue_id user_id"),
        (
            MergeRequest,
            """id project_id iid title description state source_branch target_branch author_id milestone_id extra
            created_at updated_at""",
        ),
        (MergeRequestLabel, "merge_request_id title"),
        (
            Snippet,
            "id project_id title file_name content visibility author_id extra created_at updated_at",
        ),
        (
            Release,
            "id project_id tag name description sha released_at author_id extra created_at updated_at",
        ),
        (ReleaseLink, "release_id name url filepath link_type created_at updated_at"),
        (Design, "id project_id issue_id iid filename"),
        (
            Note,
            """id project_id noteable_type noteable_id commit_id type body attachment system confidential position
            author_id extra created_at updated_at""",
        ),
        (
            Event,
            "id action kind restriction author_id project_id issue_id target_type target_id data extra created_at",
        ),
        (ArchivedRow, "project_id relation data"),
        (
            ImportFailure,
            "project_id created_at exception_class exception_message source relation_name line_number",
        ),
    )
}
MODELS_WITH_IDS = (Label, Milestone, Issue, MergeRequest, Snippet, Release, Design, Note, Event)
