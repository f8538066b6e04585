"""Schemas of issues and notes."""

from __future__ import annotations

from typing import Any

from marshmallow.exceptions import ValidationError

from project_service.domain import page_paths
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.tracker.issues import INCIDENT, ISSUE, Issue
from project_service.domain.tracker.labels import text_color
from project_service.domain.tracker.schemas import ANY, NONE, MilestoneSchema, TitleOrWord
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Nested, Schema
from project_service.kit.texts import markdown

STATES = ("opened", "closed", "all")
# values of the list filter ``due_date``
DUE_DATE_FILTERS = ("0", "any", "today", "tomorrow", "overdue", "week", "month", "next_month_and_previous_two_weeks")
TIMEBOXES = ("None", "Any", "Upcoming", "Started")
SCOPES = ("created_by_me", "assigned_to_me", "all")
ALL_SCOPES = (*SCOPES, "created-by-me", "assigned-to-me")


def issue_url(issue: Issue) -> str:
    """Return the URL of the page of an issue."""
    return urls.absolute(f"/{issue.project.full_path}{page_paths.issue(issue.iid)}")


def _references(issue: Issue) -> dict[str, str]:
    own = f"#{issue.iid}"
    return {"short": own, "relative": own, "full": f"{issue.project.full_path}{own}"}


def _links(issue: Issue) -> dict[str, str]:
    project = urls.absolute_api(f"/projects/{issue.project_id}")
    own = f"{project}/issues/{issue.iid}"
    return {"self": own, "notes": f"{own}/notes", "award_emoji": f"{own}/award_emoji", "project": project}


class IssueSchema(Schema):
    """An issue."""

    id = fields.Integer()
    iid = fields.Integer()
    project_id = fields.Integer()
    title = fields.String()
    description = fields.String()
    state = fields.String()
    created_at = fields.Moment()
    updated_at = fields.Moment()
    closed_at = fields.Moment()
    closed_by = Embedded(UserBasicSchema, keep_none=True)
    labels = fields.Array(fields.String())
    milestone = Embedded(MilestoneSchema, keep_none=True)
    assignees = fields.Array(Embedded(UserBasicSchema))
    author = Embedded(UserBasicSchema, keep_none=True)
    assignee = Embedded(UserBasicSchema, attribute="first_assignee", keep_none=True)
    user_notes_count = fields.Computed(lambda issue: issue.notes_count, type="integer")
    merge_requests_count = fields.Constant(0)
    upvotes = fields.Constant(0)
    downvotes = fields.Constant(0)
    due_date = fields.Day()
    confidential = fields.Boolean()
    discussion_locked = fields.Boolean()
    issue_type = fields.String()
    severity = fields.Computed(lambda issue: issue.severity.upper(), type="string")
    web_url = fields.Computed(issue_url)
    weight = fields.Integer()
    _links = fields.Computed(_links, type="object")
    references = fields.Computed(_references, type="object")


class LabelBasicSchema(Schema):
    """A label inside an issue or a label event."""

    id = fields.Integer()
    name = fields.String(attribute="title")
    description = fields.String()
    description_html = fields.Computed(lambda label: str(markdown.line(label.description)))
    text_color = fields.Computed(lambda label: text_color(label.color))
    color = fields.String()


class DetailedIssueSchema(IssueSchema):
    """An issue whose labels are objects, which are prepared with the page."""

    labels = fields.Array(Embedded(LabelBasicSchema), attribute="label_objects")


class IdOrWord(fields.String):
    """An id, or the word ``None`` or ``Any``."""

    blank_is_absent = True

    def read(self, value: Any) -> str:
        text = super().read(value)
        number = fields.whole_number(text)
        if text.title() not in (NONE, ANY) and number is None:
            raise ValidationError([f"should be an integer, '{NONE}' or '{ANY}'"])
        return text.title() if number is None else str(number)


class IssueExclusionSchema(Schema):
    """Conditions that exclude issues."""

    labels = fields.Array(TitleOrWord())
    milestone = TitleOrWord()
    iids = fields.Array(fields.Integer())
    author_id = fields.Integer()
    author_username = fields.String()
    assignee_id = fields.Integer()
    assignee_username = fields.Array(fields.String())
    weight = fields.Integer()
    my_reaction_emoji = fields.String()


class IssueConditionsSchema(Schema):
    """Filters of issues that are counted."""

    exclusive = (("milestone", "milestone_id"),)

    excluded = Nested(IssueExclusionSchema, data_key="not")
    weight = IdOrWord()
    my_reaction_emoji = fields.String()
    labels = fields.Array(TitleOrWord())
    milestone = TitleOrWord()
    timebox = fields.String(
        data_key="milestone_id",
        choices=TIMEBOXES,
        metadata={"description": "`Upcoming`: the milestone of a project or group that is due next."},
    )
    iids = fields.Array(fields.Integer())
    scope = fields.String(default="all", choices=SCOPES)
    author_id = fields.Integer()
    author_username = fields.String()
    assignee_id = IdOrWord()
    assignee_username = fields.Array(fields.String())
    search = fields.String()
    within = fields.Array(fields.String(choices=("title", "description")), data_key="in")
    due_date = fields.String(choices=("", *DUE_DATE_FILTERS))
    confidential = fields.Boolean()
    issue_type = fields.String(choices=(ISSUE, INCIDENT))
    created_after = fields.DateTime()
    created_before = fields.DateTime()
    updated_after = fields.DateTime()
    updated_before = fields.DateTime()


class IssueFilterSchema(IssueConditionsSchema):
    """Filters and order of the list of issues."""

    state = fields.String(default="all", choices=STATES)
    order_by = fields.String(default="created_at", choices=("created_at", "updated_at", "due_date", "title"))
    sort = fields.String(default="desc", choices=("asc", "desc"))
    with_labels_details = fields.Boolean(default=False, metadata={"description": "True: labels are objects."})


class GroupIssueConditionsSchema(IssueConditionsSchema):
    """Filters of the issues of several projects that are counted."""

    scope = fields.String(default="all", choices=ALL_SCOPES)
    non_archived = fields.Boolean(default=True, metadata={"description": "False: those of archived projects, too."})


class OwnIssueConditionsSchema(GroupIssueConditionsSchema):
    """The same for issues of all projects."""

    scope = fields.String(default="created_by_me", choices=ALL_SCOPES)


class GroupIssueFilterSchema(IssueFilterSchema):
    """Filters and order of the issues of several projects."""

    scope = fields.String(default="all", choices=ALL_SCOPES)
    non_archived = fields.Boolean(default=True, metadata={"description": "False: those of archived projects, too."})


class OwnIssueFilterSchema(GroupIssueFilterSchema):
    """The same for issues of all projects."""

    scope = fields.String(default="created_by_me", choices=ALL_SCOPES)


class IssueCountsSchema(Schema):
    """The numbers of issues by state."""

    statistics = fields.Computed(lambda found: found["statistics"], type="object")


class IssueFieldsSchema(Schema):
    """Fields shared by creating and updating an issue."""

    description = fields.String()
    confidential = fields.Boolean()
    assignee_ids = fields.Array(fields.Integer())
    assignee_id = fields.Integer()
    milestone_id = fields.Integer()
    labels = fields.Array(fields.String())
    due_date = fields.Date()
    weight = fields.Integer()
    discussion_locked = fields.Boolean()
    issue_type = fields.String(choices=(ISSUE, INCIDENT))


class IssueCreateSchema(IssueFieldsSchema):
    """A new issue."""

    title = fields.String(required=True)


class IssueUpdateSchema(IssueFieldsSchema):
    """Changes of an issue."""

    at_least_one = (
        "assignee_ids",
        "confidential",
        "description",
        "discussion_locked",
        "due_date",
        "labels",
        "add_labels",
        "remove_labels",
        "milestone_id",
        "state_event",
        "title",
        "issue_type",
    )
    counts_too = ("assignee_id", "weight")

    title = fields.String()
    add_labels = fields.Array(fields.String())
    remove_labels = fields.Array(fields.String())
    state_event = fields.String(choices=("reopen", "close"))


class NoteCreateSchema(Schema):
    """A new note."""

    body = fields.String(required=True)
    confidential = fields.Boolean(default=False)
    internal = fields.Boolean()


class NoteUpdateSchema(Schema):
    """Changes of a note."""

    body = fields.String(required=True)
