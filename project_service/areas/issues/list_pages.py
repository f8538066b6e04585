"""The list of issues: filters that stay in the address, orders, and changes of many issues at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.access.rules import may_change_issue, visible_issues
from project_service.areas.issues import service
from project_service.areas.issues.listing import IssueListing
from project_service.areas.issues.queries import IssueFilter
from project_service.domain.accounts.users import user_by
from project_service.domain.memberships import choice_in, members_for_choice
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import INCIDENT, ISSUE, Issue, for_changes, issues_of
from project_service.domain.tracker.labels import choices_of, colors_of
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.milestones import usable_in as usable_milestones
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("issue_list_pages", __name__)
navigation.add(navigation.NavigationEntry("Issues", "/-/issues", 20, Ability.READ_ISSUES))

BASE_PATH = "/<path:project>/-/issues"
TABS = {"opened": "Open", "closed": "Closed", "all": "All"}
TYPES = {ISSUE: "Issues", INCIDENT: "Incidents"}
ORDERS = {
    "created": ("Newest", {"order_by": "created_at", "sort": "desc"}),
    "created_asc": ("Oldest", {"order_by": "created_at", "sort": "asc"}),
    "updated": ("Last changed", {"order_by": "updated_at", "sort": "desc"}),
    "due_date": ("Due date", {"order_by": "due_date", "sort": "asc"}),
    "title": ("Title", {"order_by": "title", "sort": "asc"}),
}
FILTERS = ("search", "label", "milestone", "assignee", "author", "issue_type")
NONE, ANY, ME = "None", "Any", "me"
MAX_SUGGESTIONS = 200
MAX_SELECTED = 100


@dataclass(frozen=True, slots=True)
class IssueListQuery:
    """What the query of the page asks for; unknown words count as not given."""

    given: dict[str, str]
    state: str
    order: str

    @classmethod
    def of(cls, args: Mapping[str, str]) -> IssueListQuery:
        """Read a query."""
        filters = {name: args.get(name, "").strip() for name in FILTERS}
        if filters["issue_type"] not in TYPES:
            filters["issue_type"] = ""
        state, order = args.get("state", ""), args.get("order", "")
        return cls(filters, state if state in TABS else "opened", order if order in ORDERS else "created")

    @property
    def labels(self) -> list[str]:
        """The titles of the labels that issues must have; titles have no commas."""
        return [title for part in self.given["label"].split(",") if (title := part.strip())]

    @property
    def filters(self) -> dict[str, Any]:
        """The filters of ``IssueFilter``."""
        filters: dict[str, Any] = {"state": self.state, "text": self.given["search"], **ORDERS[self.order][1]}
        labels = self.labels
        filters["labels"] = [labels[0].title()] if len(labels) == 1 and labels[0].title() in (NONE, ANY) else labels
        filters["milestone"] = self.given["milestone"]
        filters["issue_type"] = self.given["issue_type"]
        assignee, author = (self._username(name) for name in ("assignee", "author"))
        if assignee.title() in (NONE, ANY):
            filters["assignee_id"] = assignee.title()
        elif assignee:
            filters["assignee_username"] = [assignee]
        filters["author_username"] = author
        return filters

    def _username(self, name: str) -> str:
        username = self.given[name].removeprefix("@")
        return caller().username if username == ME else username


@pages.get(BASE_PATH)
@pages.allow(Ability.READ_ISSUES)
def list_issues(project: Project) -> ResponseReturnValue:
    """Show the issues of a project."""
    return _page(project, Form())


@pages.post(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.ADMIN_ISSUES)
def change_issues(project: Project) -> ResponseReturnValue:
    """Close, reopen, label or assign the selected issues."""
    form = Form()
    if accepted := form.accepted(lambda: _change(project)):
        flash(accepted.result)
        return redirect(f"/{project.full_path}/-/issues{navigation.with_query()}")
    return _page(project, form), 422


def _change(project: Project) -> str:
    fields = _changes(project)
    iids = [number for text in request.form.getlist("issues") if (number := whole_number(text)) is not None]
    if not iids:
        raise Invalid(base="Select at least one issue.")
    statement = issues_of(project).where(Issue.iid.in_(iids[:MAX_SELECTED]), visible_issues(caller(), project))
    changed = refused = 0
    for issue in db.session.scalars(for_changes(statement.order_by(Issue.iid))).all():
        if may_change_issue(caller(), issue):
            service.update_issue(caller(), issue, **fields(issue))
            changed += 1
        else:
            refused += 1
    text = f"{changed} issue{'' if changed == 1 else 's'} changed."
    return f"{text} {refused} may not be changed by you." if refused else text


def _changes(project: Project) -> Callable[[Issue], dict[str, Any]]:
    """Return the function that makes the changed fields of an issue, by the form."""
    event, label = request.form.get("state_event", ""), request.form.get("add_label", "").strip()
    removed, name = request.form.get("remove_label", "").strip(), request.form.get("assign_to", "").strip()
    if event not in ("", "close", "reopen"):
        raise Invalid(base="Choose to close or to reopen.")
    user = None
    if name:
        user = current_user() if name == ME else user_by(name.removeprefix("@"))
        if user is None:
            raise Invalid(base=f"There is no user {name}.")
    if not (event or label or removed or user):
        raise Invalid(base="Choose what to change.")

    def fields(issue: Issue) -> dict[str, Any]:
        changes: dict[str, Any] = {"state_event": event} if event else {}
        if label or removed:
            changes |= {"add_labels": [label] if label else None, "remove_labels": [removed] if removed else None}
        if user is not None:
            changes["assignee_ids"] = sorted({*(assignee.id for assignee in issue.assignees), user.id})
        return changes

    return fields


def _page(project: Project, form: Form) -> str:
    wanted = IssueListQuery.of(request.args)
    page = read_page(
        IssueListing(IssueFilter.of(caller(), project, **wanted.filters), project), request.args.get("page")
    )
    may_admin = allowed(caller(), Ability.ADMIN_ISSUES, project)
    return render_template(
        "issues/list.html",
        project=project,
        page=page,
        wanted=wanted,
        tabs=TABS,
        types=TYPES,
        orders={name: title for name, (title, _) in ORDERS.items()},
        colors=colors_of(project, {title for issue in page.rows for title in issue.labels}),
        suggestions=suggestions_of(project),
        may_admin=may_admin,
        form=form,
    )


def suggestions_of(project: Project) -> dict[str, Any]:
    """What fields for labels, milestones and people suggest; labels with their colours."""
    milestones = select(Milestone.title).where(usable_milestones(project)).order_by(Milestone.title)
    people: list[str] = []
    if caller().user_id is not None:
        rows = db.session.execute(members_for_choice(), choice_in(project, most=MAX_SUGGESTIONS))
        people = [username for _, _, username in rows]
    return {
        "labels": choices_of(project, MAX_SUGGESTIONS),
        "milestones": list(db.session.scalars(milestones.limit(MAX_SUGGESTIONS))),
        "people": people,
    }
