"""The pages of issues."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from project_service.access import visible_notes
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import panels
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.areas.issues import queries, service, sidebar
from project_service.areas.issues.forms import IssueForm, NoteForm
from project_service.areas.issues.list_pages import MAX_SUGGESTIONS, suggestions_of
from project_service.areas.issues.listing import IssueListing
from project_service.areas.issues.queries import IssueFilter
from project_service.domain import page_paths
from project_service.domain.memberships import choice_in, members_for_choice
from project_service.domain.projects import Project
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import Issue, find_issue
from project_service.domain.tracker.labels import choices_of, colors_of
from project_service.domain.tracker.milestones import ACTIVE, Milestone, usable_in
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db
from project_service.kit.http.errors import Conflict, Forbidden
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.texts import markdown

pages = PageBlueprint("issue_pages", __name__)

BASE_PATH = "/<path:project>/-/issues"
ONE = f"{BASE_PATH}/<int:iid>"
MAX_ISSUES_OF_MILESTONE = 50
TASK_CHANGED = "The text was changed meanwhile. Load the page again."


def fill_milestone(milestone: Milestone) -> dict[str, Any]:
    """The issues of a milestone on its page, as far as the caller sees them."""
    project = milestone.project
    if project is not None and not allowed(caller(), Ability.READ_ISSUES, project):
        return {"total": 0}
    total, closed = queries.progress_of(caller(), milestone)
    issues = IssueListing(IssueFilter.of_milestone(caller(), milestone), project).rows(0, MAX_ISSUES_OF_MILESTONE)
    return {
        "total": total,
        "closed": closed,
        "issues": issues,
        "more": total - len(issues),
        "in_group": project is None,
    }


panels.add(panels.Panel("milestone", 10, "issues/of_milestone.html", fill_milestone))


@pages.get(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.CREATE_ISSUES)
def new_issue(project: Project) -> ResponseReturnValue:
    """Show the form for a new issue."""
    return _form_page(project, _form(project))


@pages.post(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.CREATE_ISSUES)
def create_issue(project: Project) -> ResponseReturnValue:
    """Create an issue."""
    form = _form(project)
    if accepted := form.accepted(lambda: service.create_issue(caller(), project, **_fields(form))):
        return redirect(_address(project, accepted.result.iid))
    return _form_page(project, form), 422


@pages.get(ONE)
@pages.allow(Ability.READ_ISSUE)
def show_issue(issue: Issue) -> ResponseReturnValue:
    """Show one issue with its notes."""
    return _page(issue, NoteForm())


@pages.get(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.CHANGE_ISSUE)
def edit_issue(issue: Issue) -> ResponseReturnValue:
    """Show the form of one issue."""
    return _form_page(issue.project, _form(issue.project, issue), issue)


@pages.post(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.CHANGE_ISSUE)
def update_issue(issue: Issue) -> ResponseReturnValue:
    """Change an issue."""
    form = _form(issue.project, issue)
    if form.accepted(lambda: service.update_issue(caller(), issue, **_fields(form))):
        return redirect(_address(issue.project, issue.iid))
    return _form_page(issue.project, form, issue), 422


@pages.post(f"{ONE}/state")
@pages.signed_in
@pages.allow(Ability.CHANGE_ISSUE)
def change_state(issue: Issue) -> ResponseReturnValue:
    """Close or reopen an issue."""
    if request.form.get("state_event") == "close":
        issue_rules.close_issue(current_user(), issue)
    else:
        issue_rules.reopen_issue(current_user(), issue)
    return redirect(_address(issue.project, issue.iid))


@pages.post(f"{ONE}/fields")
@pages.signed_in
@pages.allow(Ability.CHANGE_ISSUE)
def change_field(issue: Issue) -> ResponseReturnValue:
    """Change one thing of an issue: an assignee, a label, the milestone, the due date, or who sees it."""
    if not allowed(caller(), Ability.ADMIN_ISSUES, issue.project):
        raise Forbidden
    form = Form()
    if form.accepted(lambda: sidebar.change_field(issue, request.form)):
        flash(f"{sidebar.TITLES[request.form['field']]} saved.")
        return redirect(_address(issue.project, issue.iid))
    note_form = NoteForm(formdata=None)
    note_form.problems = form.problems
    return _page(issue, note_form), 422


@pages.post(f"{ONE}/tasks")
@pages.signed_in
@pages.allow(Ability.CHANGE_ISSUE)
def change_task(issue: Issue) -> ResponseReturnValue:
    """Tick a task of the description, or take the tick away."""
    service.update_issue(caller(), issue, description=_with_task(issue.description))
    return redirect(_address(issue.project, issue.iid))


@pages.post(f"{ONE}/notes/<int:note>/tasks")
@pages.signed_in
@pages.allow(Ability.CHANGE_NOTE)
def change_note_task(note: Note) -> ResponseReturnValue:
    """Tick a task of a comment, or take the tick away."""
    service.update_note(caller(), note, body=_with_task(note.body))
    return redirect(_address_of_note(note))


def _with_task(text: str | None) -> str:
    """Return a text with the task on the line that the form names as the form wants it."""
    number = whole_number(request.form.get("line", "")) or 0
    changed = markdown.toggled(text or "", number, checked=request.form.get("checked") == "true")
    if changed is None:
        raise Conflict(TASK_CHANGED)
    return changed


@pages.post(f"{ONE}/notes")
@pages.signed_in
@pages.allow(Ability.COMMENT_ON_ISSUE)
def create_note(issue: Issue) -> ResponseReturnValue:
    """Comment on an issue."""
    form = NoteForm()

    def create() -> Note:
        return service.create_note(caller(), issue, body=form.note.data, confidential=form.confidential.data)

    if accepted := form.accepted(create):
        return redirect(_address_of_note(accepted.result))
    return _page(issue, form), 422


@pages.get(f"{ONE}/notes/<int:note_id>/reply")
@pages.signed_in
@pages.allow(Ability.COMMENT_ON_ISSUE)
def new_reply(issue: Issue, note_id: int) -> ResponseReturnValue:
    """Show the form of a reply to one comment."""
    return _reply_page(issue, visible_notes.find_visible_note(caller(), issue, note_id), NoteForm())


@pages.post(f"{ONE}/notes/<int:note_id>/reply")
@pages.signed_in
@pages.allow(Ability.COMMENT_ON_ISSUE)
def create_reply(issue: Issue, note_id: int) -> ResponseReturnValue:
    """Reply to a comment."""
    first, form = visible_notes.find_visible_note(caller(), issue, note_id), NoteForm()
    if accepted := form.accepted(lambda: service.reply(caller(), issue, first, body=form.note.data)):
        return redirect(_address_of_note(accepted.result))
    return _reply_page(issue, first, form), 422


@pages.get(f"{ONE}/notes/<int:note>/edit")
@pages.signed_in
@pages.allow(Ability.CHANGE_NOTE)
def edit_note(note: Note) -> ResponseReturnValue:
    """Show the form of one comment."""
    return _note_page(note, NoteForm(note=note.body))


@pages.post(f"{ONE}/notes/<int:note>/edit")
@pages.signed_in
@pages.allow(Ability.CHANGE_NOTE)
def update_note(note: Note) -> ResponseReturnValue:
    """Change a comment."""
    form = NoteForm()
    if form.accepted(lambda: service.update_note(caller(), note, body=(form.note.data or "").replace("\r\n", "\n"))):
        return redirect(_address_of_note(note))
    return _note_page(note, form), 422


@pages.get(f"{ONE}/notes/<int:note>/delete")
@pages.signed_in
@pages.allow(Ability.CHANGE_NOTE)
def ask_delete_note(note: Note) -> ResponseReturnValue:
    """Ask before a comment is deleted."""
    return confirmation(
        title="Delete comment",
        question="Delete this comment? It cannot be brought back.",
        button="Delete comment",
        back=_address_of_note(note),
        project=note.project,
    )


@pages.post(f"{ONE}/notes/<int:note>/delete")
@pages.signed_in
@pages.allow(Ability.CHANGE_NOTE)
def delete_note(note: Note) -> ResponseReturnValue:
    """Delete a comment."""
    address = _address(note.project, note.noteable_iid)
    issue_rules.delete_note(note)
    return redirect(address)


@pages.get(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.DELETE_ISSUE)
def ask_delete_issue(issue: Issue) -> ResponseReturnValue:
    """Ask before an issue is deleted."""
    return confirmation(
        title="Delete issue",
        question=f"Delete #{issue.iid} {issue.title} with all its comments? It cannot be brought back.",
        button="Delete issue",
        back=_address(issue.project, issue.iid),
        project=issue.project,
    )


@pages.post(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.DELETE_ISSUE)
def delete_issue(issue: Issue) -> ResponseReturnValue:
    """Delete an issue."""
    project = issue.project
    issue_rules.delete_issue(issue)
    return redirect(f"/{project.full_path}/-/issues")


def _form_page(project: Project, form: IssueForm, issue: Issue | None = None) -> str:
    template = "issues/new.html" if issue is None else "issues/edit.html"
    labels = choices_of(project, MAX_SUGGESTIONS) if "labels" in form else {}
    is_complete = len(labels) < MAX_SUGGESTIONS
    return render_template(template, project=project, issue=issue, form=form, labels=labels, is_complete=is_complete)


def _note_page(note: Note, form: NoteForm) -> str:
    issue = find_issue(note.project, note.noteable_iid or 0)
    return render_template("issues/note.html", project=note.project, issue=issue, note=note, form=form)


def _reply_page(issue: Issue, first: Note, form: NoteForm) -> str:
    text_references.prepare(caller(), issue.project, [first.body])
    return render_template("issues/reply.html", project=issue.project, issue=issue, note=first, form=form)


def _page(issue: Issue, form: NoteForm) -> str:
    matching = visible_notes.notes_matching(caller(), issue, sort="asc")
    notes = visible_notes.read_notes(matching, request.args)
    text_references.prepare(caller(), issue.project, [issue.description, *(note.body for note in notes.rows)])
    may_admin = allowed(caller(), Ability.ADMIN_ISSUES, issue.project)
    return render_template(
        "issues/show.html",
        project=issue.project,
        issue=issue,
        notes=notes,
        discussed=visible_notes.in_discussions(notes.rows),
        form=form,
        may_change=allowed(caller(), Ability.CHANGE_ISSUE, issue),
        may_change_note=lambda note: allowed(caller(), Ability.CHANGE_NOTE, note),
        may_comment=allowed(caller(), Ability.CREATE_ISSUES, issue.project)
        and allowed(caller(), Ability.COMMENT_ON_ISSUE, issue),
        may_label=may_admin,
        colors=colors_of(issue.project, issue.labels),
        suggestions=suggestions_of(issue.project) if may_admin else None,
        milestones=_milestones(issue.project) if may_admin else None,
    )


def _milestones(project: Project) -> dict[Any, str]:
    """The titles of the milestones that issues may get, by id."""
    active = select(Milestone).where(usable_in(project), Milestone.state == ACTIVE).order_by(Milestone.title)
    return {milestone.id: milestone.title for milestone in db.session.scalars(active)}


def _form(project: Project, issue: Issue | None = None) -> IssueForm:
    form = IssueForm(obj=issue)
    if not allowed(caller(), Ability.ADMIN_ISSUES, project):
        for name in ("assignee_ids", "labels", "milestone_id", "due_date"):
            del form[name]
        return form
    people = db.session.execute(members_for_choice(), choice_in(project))
    choices: dict[Any, str] = {user_id: f"{name} @{username}" for user_id, name, username in people}
    form.assignee_ids.choices = choices
    titles: dict[Any, str] = {0: "None"} | _milestones(project)
    if issue is not None:
        # current assignees and milestone remain options, even if they are no longer active
        choices |= {user.id: f"{user.name} @{user.username}" for user in issue.assignees if user.id not in choices}
        titles |= {issue.milestone.id: issue.milestone.title} if issue.milestone else {}
    form.milestone_id.choices = titles
    if issue is not None and request.method == "GET":
        form.assignee_ids.data = [user.id for user in issue.assignees]
        form.labels.data = ", ".join(issue.labels)
        form.milestone_id.data = issue.milestone_id or 0
    return form


def _fields(form: IssueForm) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "title": form.title.data,
        "description": (form.description.data or "").replace("\r\n", "\n"),
        "confidential": form.confidential.data,
    }
    if "labels" in form:
        fields |= {
            "labels": (form.labels.data or "").split(","),
            "assignee_ids": form.assignee_ids.data or [],
            "milestone_id": form.milestone_id.data or None,
            "due_date": form.due_date.data,
        }
    return fields


def _address_of_note(note: Note) -> str:
    return f"{_address(note.project, note.noteable_iid)}?note={note.id}#note_{note.id}"


def _address(project: Project, iid: int | None) -> str:
    return f"/{project.full_path}{page_paths.issue(iid)}"
