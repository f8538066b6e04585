"""Pages that write files: new, edit, upload and delete, each with a commit on this or on a new branch.

They work without scripts. Rules and refusals are those of the API (repositories reference, section 5.3).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.areas.repositories.code_reading import optional_code
from project_service.areas.repositories.content.file_views import MAX_SHOWN_BYTES
from project_service.areas.repositories.content.readmes import is_markdown
from project_service.areas.repositories.revision_paths import BASE_PATH, MAX_REVISION_PARTS, page_address
from project_service.areas.repositories.transport.push_rules import PushRefused
from project_service.areas.repositories.writing import commits, new_commits, trees
from project_service.areas.repositories.writing.forms import CommitForm, FileForm, FileUploadForm
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.reading.repository import BLOB
from project_service.kit.http.errors import BadRequest, Invalid, NotFound

pages = PageBlueprint("file_writing_pages", __name__)
PATH_PROBLEMS = (trees.EXISTS, trees.MISSING, trees.IS_FOLDER, trees.TRAVERSAL, "You must provide", "invalid path")
REPEAT = "Open its present version in another window and repeat your change there; your text is still in this form."
BRANCH_PROBLEMS = ("A branch called", "Something went wrong when we tried", commits.NO_BRANCH)
NO_TEXT = "This file is no text in UTF-8, or too large to be edited here. Upload another file in its place."


@dataclass(frozen=True, slots=True)
class BranchPath:
    """A branch and one of its paths; ``commit_id`` is its newest commit, ``None`` in an empty repository."""

    branch: str
    path: str
    commit_id: str | None
    content: bytes | None = None  # of the file, unless it is too large

    @property
    def text(self) -> str | None:
        """The content as text; ``None`` if it is none."""
        try:
            return None if self.content is None else self.content.decode()
        except UnicodeDecodeError:
            return None


@pages.get(f"{BASE_PATH}/new/<path:place>", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def new_file(project: Project, place: str) -> str:
    """Show the form for a new file in a folder of a branch."""
    branch_path = _find(project, place)
    folder = f"{branch_path.path}/" if branch_path.path else ""
    return _page(
        project, branch_path, FileForm(file_path=folder, **_defaults(project, branch_path, "Add a file")), "New file"
    )


@pages.post(f"{BASE_PATH}/new/<path:place>", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def create_file(project: Project, place: str) -> ResponseReturnValue:
    """Create a file."""
    branch_path, form = _find(project, place), FileForm()
    path, content = form.file_path.data or "", _unix_lines(form.content.data)
    action = {"action": "create", "file_path": path, "content": content}
    return _done(project, branch_path, form, action, "New file")


@pages.get(f"{BASE_PATH}/edit/<path:place>", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def edit_file(project: Project, place: str) -> str:
    """Show the form for the content and the path of a file."""
    branch_path = _find_file(project, place)
    defaults = _defaults(project, branch_path, f"Update {branch_path.path}")
    form = FileForm(file_path=branch_path.path, content=branch_path.text, **defaults)
    return _page(project, branch_path, form, "Edit file", problem=NO_TEXT if branch_path.text is None else None)


@pages.post(f"{BASE_PATH}/edit/<path:place>", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def update_file(project: Project, place: str) -> ResponseReturnValue:
    """Change the content or the path of a file."""
    branch_path, form = _find_file(project, place), FileForm()
    if branch_path.text is None:
        return _page(project, branch_path, form, "Edit file", problem=NO_TEXT), 422
    content = _unix_lines(form.content.data)
    if "\r\n" in branch_path.text:
        content = content.replace("\n", "\r\n")
    path = form.file_path.data or ""
    action = {"action": "update", "file_path": path, "content": content, "last_commit_id": form.last_commit_id.data}
    if path != branch_path.path:
        action |= {"action": "move", "previous_path": branch_path.path}
    return _done(project, branch_path, form, action, "Edit file")


@pages.get(f"{BASE_PATH}/upload_file/<path:place>", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def new_upload(project: Project, place: str) -> str:
    """Show the form to upload a file into a folder of a branch."""
    branch_path = _find(project, place)
    return _page(
        project, branch_path, FileUploadForm(**_defaults(project, branch_path, "Upload a file")), "Upload file"
    )


@pages.post(f"{BASE_PATH}/upload_file/<path:place>", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def upload_file(project: Project, place: str) -> ResponseReturnValue:
    """Upload a file."""
    branch_path, form = _find(project, place), FileUploadForm()
    file = form.file.data
    action: dict[str, Any] = {"action": "update" if form.replace.data else "create", "file_path": ""}
    if file:
        name = file.filename.replace("\\", "/").rpartition("/")[2]
        content = base64.b64encode(file.stream.read()).decode()
        path = f"{branch_path.path}/{name}" if branch_path.path else name
        action |= {"file_path": path, "content": content, "encoding": "base64"}
    return _done(project, branch_path, form, action, "Upload file")


@pages.get(f"{BASE_PATH}/delete_file/<path:place>", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def ask_delete_file(project: Project, place: str) -> str:
    """Show the form to delete a file."""
    branch_path = _find_file(project, place)
    return _page(
        project, branch_path, CommitForm(**_defaults(project, branch_path, f"Delete {branch_path.path}")), "Delete file"
    )


@pages.post(f"{BASE_PATH}/delete_file/<path:place>", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def delete_file(project: Project, place: str) -> ResponseReturnValue:
    """Delete a file."""
    branch_path, form = _find_file(project, place), CommitForm()
    action = {"action": "delete", "file_path": branch_path.path, "last_commit_id": form.last_commit_id.data}
    return _done(project, branch_path, form, action, "Delete file")


def _find(project: Project, place: str) -> BranchPath:
    """Find the branch that a place begins with: the longest one; in an empty repository the place is the branch."""
    parts = place.strip("/").split("/")
    with optional_code(project) as code:
        if code is None or not code.refs.count(BRANCHES.encode()):
            return BranchPath("/".join(parts), "", None)
        for count in range(min(len(parts), MAX_REVISION_PARTS), 0, -1):
            branch, path = "/".join(parts[:count]), "/".join(parts[count:])
            commit_id = code.ref(BRANCHES + branch)
            commit = None if commit_id is None else code.commit_of(commit_id)
            if commit is not None:
                entry = code.entry(commit, path) if path else None
                is_file = entry is not None and entry.type == BLOB and not entry.is_link
                content = code.content(entry.id, MAX_SHOWN_BYTES) if entry is not None and is_file else None
                return BranchPath(branch, path, commit_id, content)
    raise NotFound("Branch")


def _find_file(project: Project, place: str) -> BranchPath:
    branch_path = _find(project, place)
    with optional_code(project) as code:
        commit = None if code is None or branch_path.commit_id is None else code.commit_of(branch_path.commit_id)
        entry = (
            code.entry(commit, branch_path.path)
            if code is not None and commit is not None and branch_path.path
            else None
        )
    if entry is None or entry.type != BLOB:
        raise NotFound("File")
    return branch_path


def _defaults(project: Project, found: BranchPath, message: str) -> dict[str, Any]:
    is_allowed = new_commits.may_write(caller(), project, found.branch)
    branch = found.branch if is_allowed or found.commit_id is None else f"{caller().username}-patch-1"
    return {"commit_message": message, "target_branch": branch, "last_commit_id": found.commit_id or ""}


def _done(
    project: Project, branch_path: BranchPath, form: CommitForm, action: dict[str, Any], title: str
) -> ResponseReturnValue:
    """Commit an action and lead to the file, or show the form again with what was wrong, or a preview."""
    if "preview" in request.form:
        return _page(project, branch_path, form, title, previewed=True)
    branch = (form.target_branch.data or "").strip()

    def commit() -> None:
        if isinstance(form, FileUploadForm) and not form.file.data:
            raise Invalid(file="is missing: choose one")
        if not new_commits.may_write(caller(), project, branch):
            raise Invalid(target_branch=f"is protected. {new_commits.NOT_ALLOWED}")
        message = _unix_lines(form.commit_message.data)
        fields: new_commits.CommitFields = {"branch": branch, "commit_message": message}
        if branch != branch_path.branch:
            fields["start_branch"] = branch_path.branch
        try:
            commits.commit(caller(), project, [action], **fields)
        except BadRequest as error:
            raise _at_field(form, error) from error

    if not form.accepted(commit):
        return _page(project, branch_path, form, title), 422
    flash(f"{title}: {action['file_path']} is committed to {branch}.")
    if action["action"] == "delete":
        return redirect(page_address(project, "tree", branch))
    return redirect(page_address(project, "blob", branch, trees.checked_path(action["file_path"])))


def _at_field(form: CommitForm, error: BadRequest) -> BadRequest | Invalid:
    """Return an error that is shown at the field that it is about."""
    text = str(error.message)
    path_field = "file_path" if isinstance(form, FileForm) else "file" if isinstance(form, FileUploadForm) else None
    if path_field is not None and text.startswith(PATH_PROBLEMS):
        return Invalid(**{path_field: f"is refused. {text}"})
    if text.startswith(commits.CHANGED.format("")):
        return BadRequest(f"{text}. {REPEAT}")
    if isinstance(error, PushRefused) or text.startswith(BRANCH_PROBLEMS):
        return Invalid(target_branch=f"is refused. {text}")
    return error


def _unix_lines(text: str | None) -> str:
    return (text or "").replace("\r\n", "\n")


def _page(
    project: Project,
    branch_path: BranchPath,
    form: CommitForm,
    title: str,
    *,
    previewed: bool = False,
    problem: str | None = None,
) -> str:
    preview = None
    if previewed and isinstance(form, FileForm):
        preview = form.content.data or ""
        text_references.prepare(caller(), project, [preview])
    context = {
        "place": branch_path,
        "title": title,
        "problem": problem,
        "preview": preview,
        "preview_is_markdown": isinstance(form, FileForm) and is_markdown(form.file_path.data or ""),
        "uploads": isinstance(form, FileUploadForm),
        "edits": isinstance(form, FileForm),
        "back": page_address(
            project, "tree" if branch_path.content is None else "blob", branch_path.branch, branch_path.path
        )
        if branch_path.commit_id
        else f"/{project.full_path}/-/tree",
    }
    return render_template("repositories/file_form.html", project=project, form=form, **context)
