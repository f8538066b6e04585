"""Pages of branches and tags: lists, creation and deletion by the rules of pushes."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.access.rules import at_least
from project_service.areas.repositories.refs import changes, queries
from project_service.areas.repositories.refs.forms import NewBranchForm, NewTagForm
from project_service.areas.repositories.releases import service as release_service
from project_service.areas.repositories.revision_paths import BASE_PATH
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, TAGS
from project_service.kit.http import urls
from project_service.kit.http.errors import BadRequest, Forbidden
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import ShownPage, read_page

pages = PageBlueprint("ref_pages", __name__)
navigation.add(navigation.NavigationEntry("Branches", "/-/branches", 3, Ability.READ_CODE), "code")
navigation.add(navigation.NavigationEntry("Tags", "/-/tags", 4, Ability.READ_CODE), "code")

REFS_PER_PAGE = 50


@pages.get(f"{BASE_PATH}/branches", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def list_branches(project: Project) -> str:
    """Show the branches."""
    search = request.args.get("search", "")
    branches = queries.branches_of(project, search=search, sort="updated_desc")
    page = read_page(branches, request.args.get("page"), REFS_PER_PAGE)
    distances = queries.distances(project, page.rows)
    return _show_refs(project, "repositories/branches.html", page, search, distances=distances)


@pages.get(f"{BASE_PATH}/tags", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def list_tags(project: Project) -> str:
    """Show the tags."""
    search = request.args.get("search", "")
    page = read_page(queries.tags_of(project, search=search), request.args.get("page"), REFS_PER_PAGE)
    return _show_refs(project, "repositories/tags.html", page, search)


def _show_refs(project: Project, template: str, page: ShownPage, search: str, **values: Any) -> str:
    # protected branches and tags are deleted by maintainers only
    maintains = at_least(Role.MAINTAINER)(caller(), project)
    return render_template(template, project=project, page=page, search=search, maintains=maintains, **values)


@pages.get(f"{BASE_PATH}/tags/new")
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def new_tag(project: Project) -> str:
    """Show the form for a new tag."""
    return _new_ref(project, NewTagForm(ref=project.default_branch), "tag")


@pages.post(f"{BASE_PATH}/tags/new", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def create_tag(project: Project) -> ResponseReturnValue:
    """Create a tag, if no protected tag forbids it."""
    form = NewTagForm()
    name, ref, message, notes = (field.data or "" for field in (form.name, form.ref, form.message, form.notes))

    def create() -> None:
        changes.create_tag(caller(), project, tag_name=name, ref=ref, message=message)
        if notes.strip():
            release_service.create_release(caller(), project, tag_name=name, description=notes)

    if form.accepted(create):
        return redirect(_list(project, "tags"))
    return _new_ref(project, form, "tag"), 422


@pages.get(f"{BASE_PATH}/branches/new")
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def new_branch(project: Project) -> str:
    """Show the form for a new branch."""
    return _new_ref(project, NewBranchForm(ref=project.default_branch), "branch")


@pages.post(f"{BASE_PATH}/branches/new", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def create_branch(project: Project) -> ResponseReturnValue:
    """Create a branch."""
    form = NewBranchForm()
    name, ref = form.name.data or "", form.ref.data or ""
    if form.accepted(lambda: changes.create_branch(caller(), project, branch=name, ref=ref)):
        return redirect(_list(project, "branches"))
    return _new_ref(project, form, "branch"), 422


def _new_ref(project: Project, form: Form, kind: str) -> str:
    return render_template("repositories/new_ref.html", project=project, form=form, kind=kind)


@pages.get(f"{BASE_PATH}/tags/<path:tag>/delete", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def ask_delete_tag(project: Project, tag: str) -> str:
    """Ask before a tag is deleted."""
    return _ask(project, "tag", queries.find_tag(project, tag).name, "tags")


@pages.post(f"{BASE_PATH}/tags/<path:tag>/delete", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def delete_tag(project: Project, tag: str) -> ResponseReturnValue:
    """Delete a tag; a protected one needs a maintainer."""
    changes.delete_ref(caller(), project, TAGS, tag)
    flash(f"The tag {tag} was deleted.")
    return redirect(_list(project, "tags"))


@pages.get(f"{BASE_PATH}/branches/<path:branch>/delete", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def ask_delete_branch(project: Project, branch: str) -> str:
    """Ask before a branch is deleted."""
    return _ask(project, "branch", queries.find_branch(project, branch).name, "branches")


@pages.post(f"{BASE_PATH}/branches/<path:branch>/delete", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.PUSH_CODE)
def delete_branch(project: Project, branch: str) -> ResponseReturnValue:
    """Delete a branch; the default branch cannot be deleted."""
    try:
        changes.delete_ref(caller(), project, BRANCHES, branch)
    except BadRequest as refused:  # a rule of pushes
        raise Forbidden(str(refused.message)) from refused
    flash(f"The branch {branch} was deleted.")
    return redirect(_list(project, "branches"))


def _ask(project: Project, kind: str, name: str, back: str) -> str:
    return confirmation(
        title=f"Delete {kind}",
        question=f"Delete the {kind} {name}? Commits that nothing else leads to can no longer be found.",
        button="Delete",
        back=_list(project, back),
        project=project,
    )


def _list(project: Project, kind: str) -> str:
    return f"/{urls.encode_path(project.full_path)}/-/{kind}"
