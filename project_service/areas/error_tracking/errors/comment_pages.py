"""Comments on an error, and errors that were merged into it, as pages."""

from __future__ import annotations

from flask import redirect, render_template
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.error_tracking.errors import backends, comments, queries, separation
from project_service.areas.error_tracking.errors.forms import ErrorCommentForm, ErrorIssueForm
from project_service.areas.error_tracking.errors.pages import ONE, acted, address_of, error_page
from project_service.domain.projects import Project
from project_service.domain.tracker.notes import Note
from project_service.kit.db.locking import delete_locked
from project_service.kit.http.forms import confirmation

pages = PageBlueprint("error_comment_pages", __name__)


@pages.post(f"{ONE}/notes", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def create_error_comment(project: Project, error_id: str) -> ResponseReturnValue:
    """Comment on an error."""
    backends.integrated_only(project)
    form = ErrorCommentForm()
    error = queries.find_error(project, error_id)
    if accepted := form.accepted(lambda: comments.comment(current_user(), error, _text(form))):
        return redirect(_place(project, error_id, accepted.result.id))
    return error_page(project, error_id, ErrorIssueForm(formdata=None), form), 422


@pages.get(f"{ONE}/notes/<int:comment_id>/edit")
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def edit_error_comment(project: Project, error_id: str, comment_id: int) -> ResponseReturnValue:
    """Show the form of one comment."""
    note = _changeable(project, error_id, comment_id)
    return _form_page(project, error_id, note, ErrorCommentForm(formdata=None, note=note.body))


@pages.post(f"{ONE}/notes/<int:comment_id>/edit")
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def update_error_comment(project: Project, error_id: str, comment_id: int) -> ResponseReturnValue:
    """Change a comment."""
    note = _changeable(project, error_id, comment_id)
    form = ErrorCommentForm()
    error = queries.find_error(project, error_id)
    if form.accepted(lambda: comments.edit(current_user(), error, note, _text(form))):
        return redirect(_place(project, error_id, comment_id))
    return _form_page(project, error_id, note, form), 422


@pages.get(f"{ONE}/notes/<int:comment_id>/delete")
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def ask_delete_error_comment(project: Project, error_id: str, comment_id: int) -> ResponseReturnValue:
    """Ask before a comment is deleted."""
    _changeable(project, error_id, comment_id)
    question = "Delete this comment? It cannot be brought back."
    back = _place(project, error_id, comment_id)
    return confirmation("Delete comment", question, "Delete comment", back, project=project)


@pages.post(f"{ONE}/notes/<int:comment_id>/delete")
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def delete_error_comment(project: Project, error_id: str, comment_id: int) -> ResponseReturnValue:
    """Delete a comment."""
    delete_locked(_changeable(project, error_id, comment_id))
    return redirect(address_of(project, error_id))


@pages.post(f"{ONE}/merges/<int:merged_id>/undo", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def separate_error(project: Project, error_id: str, merged_id: int) -> ResponseReturnValue:
    """Undo the newest merge into an error."""
    backends.integrated_only(project)
    return acted(project, error_id, lambda: separation.separate(queries.find_error(project, error_id), merged_id))


def _changeable(project: Project, error_id: str, comment_id: int) -> Note:
    backends.integrated_only(project)
    return comments.find_changeable(caller(), queries.find_error(project, error_id), comment_id)


def _form_page(project: Project, error_id: str, note: Note, form: ErrorCommentForm) -> str:
    back = _place(project, error_id, note.id)
    return render_template("error_tracking/note.html", project=project, back=back, form=form)


def _text(form: ErrorCommentForm) -> str:
    return (form.note.data or "").replace("\r\n", "\n")


def _place(project: Project, error_id: str, comment_id: int) -> str:
    return f"{address_of(project, error_id)}?note={comment_id}#note_{comment_id}"
