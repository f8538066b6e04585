"""Linked issues on the page of an issue; who may link, a reporter, sees confidential issues, too."""

from __future__ import annotations

import re
from typing import Any

from flask import flash, redirect, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.page_parts import panels
from project_service.access.pages import PageBlueprint
from project_service.areas.issues.links import queries, service
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue, find_issue
from project_service.kit.http.errors import Conflict, RecordNotFound, Unprocessable
from project_service.kit.http.forms import Form

pages = PageBlueprint("issue_link_pages", __name__)

LINKS = "/<path:project>/-/issues/<int:iid>/links"
# ``#3``, ``3``, ``group/project#3`` or the address of a page
ENTERED_ISSUE = re.compile(r"(?:https?://[^/]+/)?(?P<path>[^#]*?)(?:/-/issues/|#|^)(?P<iid>\d{1,18})/?")
NO_ISSUE = "There is no such issue. Enter #3, group/project#3 or the address of its page."


def fill_links(issue: Issue) -> dict[str, Any]:
    """The issues that an issue is linked to, as far as the caller sees them."""
    return {
        "linked": queries.linked_issues(caller(), issue),
        "issue": issue,
        "may_link": allowed(caller(), Ability.ADMIN_ISSUES, issue.project),
        "form": Form(),
    }


panels.add(panels.Panel("issue", 30, "issues/links.html", fill_links))


@pages.post(LINKS)
@pages.signed_in
@pages.allow(Ability.ADMIN_ISSUES)
def create_issue_link(project: Project, iid: int) -> ResponseReturnValue:
    """Link an issue to the one that is named."""
    issue = find_issue(project, iid)
    try:
        match = ENTERED_ISSUE.fullmatch(request.form.get("reference", "").strip())
        if match is None:
            raise RecordNotFound
        service.create_link(caller(), issue, match["path"].strip("/") or str(issue.project_id), int(match["iid"]))
    except RecordNotFound:
        flash(NO_ISSUE, "warning")
    except (Conflict, Unprocessable, service.LinkRefused) as error:
        flash(f"{error.message}".rstrip(".") + ".", "warning")
    return redirect(_address(issue))


@pages.post(f"{LINKS}/<int:issue_link_id>/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_ISSUES)
def delete_issue_link(project: Project, iid: int, issue_link_id: int) -> ResponseReturnValue:
    """Remove a link."""
    issue = find_issue(project, iid)
    service.delete_link(caller(), issue, issue_link_id)
    return redirect(_address(issue))


def _address(issue: Issue) -> str:
    return f"/{issue.project.full_path}{page_paths.issue(issue.iid)}#links-title"
