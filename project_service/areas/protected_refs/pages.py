"""The protected tags and branches on the repository settings page."""

from __future__ import annotations

from typing import Any

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue

from project_service.access import branch_protection
from project_service.access.abilities import Ability
from project_service.access.page_parts import sections
from project_service.access.pages import PageBlueprint
from project_service.areas.protected_refs import queries, service
from project_service.areas.protected_refs.forms import ProtectedBranchForm, ProtectedTagForm
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.domain.repositories.protected_refs import LEVEL_TEXTS, ProtectedBranch, ProtectedTag
from project_service.domain.repositories.wildcards import examples
from project_service.kit.http.forms import confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("protected_ref_pages", __name__)
TAGS = "/<path:project>/-/settings/repository/protected_tags"
BRANCHES = "/<path:project>/-/settings/repository/protected_branches"
PER_PAGE = 50


def fill_tags(project: Project) -> dict[str, Any]:
    """Return the template variables of the section: the protected tags, and the tags that each covers."""
    page = read_page(queries.protected_tags_of(project), request.args.get("page"), PER_PAGE)
    names = contents.tag_names(project)
    return {
        "protected_tags": page,
        "matching_tags": {tag.id: examples(tag.name, names) for tag in page.rows},
        "protected_tag_form": ProtectedTagForm(formdata=None),
        "levels": LEVEL_TEXTS,
        "tag_preview": None,
        "tag_count": len(names),
    }


def fill_branches(project: Project) -> dict[str, Any]:
    """Return the template variables of the section: the protected branches, and the branches that each covers."""
    page = read_page(queries.protected_branches_by_name(project), request.args.get("branch_page"), PER_PAGE)
    names = contents.branch_names(project)
    return {
        "protected_branches": page,
        "matching_branches": {branch.id: examples(branch.name, names) for branch in page.rows},
        "protected_branch_form": ProtectedBranchForm(formdata=None),
        "levels": LEVEL_TEXTS,
        "branch_preview": None,
        "branch_count": len(names),
    }


sections.add(
    sections.Section(
        "repository",
        "protected-branches",
        "Protected branches",
        5,
        Ability.ADMIN_PROTECTED_BRANCHES,
        "protected_refs/branches.html",
        fill_branches,
    )
)
sections.add(
    sections.Section(
        "repository",
        "protected-tags",
        "Protected tags",
        10,
        Ability.ADMIN_PROTECTED_TAGS,
        "protected_refs/tags.html",
        fill_tags,
    )
)


@pages.post(TAGS, reads_repository=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_TAGS)
def create_protected_tag(project: Project) -> ResponseReturnValue:
    """Protect a tag, or preview the tags that a wildcard covers."""
    form = ProtectedTagForm()
    if "preview" in request.form:
        preview = _preview(form.name.data or "", contents.tag_names(project))
        return sections.show(project, "repository", protected_tag_form=form, tag_preview=preview)
    fields = {"name": form.name.data, "create_access_level": form.create_access_level.data}
    if form.accepted(lambda: service.create_protected_tag(project, **fields)):
        return redirect(_settings(project))
    return sections.show(project, "repository", status=422, protected_tag_form=form)


@pages.post(BRANCHES, reads_repository=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_BRANCHES)
def create_protected_branch(project: Project) -> ResponseReturnValue:
    """Protect a branch, or preview the branches that a wildcard covers."""
    form = ProtectedBranchForm()
    if "preview" in request.form:
        preview = _preview(form.branch.data or "", contents.branch_names(project))
        return sections.show(project, "repository", protected_branch_form=form, branch_preview=preview)
    fields = {
        "name": form.branch.data,
        "push_access_level": form.push_access_level.data,
        "merge_access_level": form.merge_access_level.data,
        "allow_force_push": form.allow_force_push.data,
    }
    if form.accepted(lambda: service.create_protected_branch(project, **fields)):
        return redirect(_settings(project))
    return sections.show(project, "repository", status=422, protected_branch_form=form)


@pages.get(f"{TAGS}/<int:tag_id>/unprotect")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_TAGS)
def ask_delete_protected_tag(project: Project, tag_id: int) -> ResponseReturnValue:
    """Ask before the protection is removed."""
    tag = queries.find_protected_ref_by_id(ProtectedTag, project, tag_id)
    question = f"Unprotect {tag.name}? Unless another rule covers them, developers can then create such tags."
    return _confirmation(project, "Unprotect tag", question)


@pages.get(f"{BRANCHES}/<int:protected_branch_id>/unprotect")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_BRANCHES)
def ask_delete_protected_branch(project: Project, protected_branch_id: int) -> ResponseReturnValue:
    """Ask before the protection is removed."""
    branch = queries.find_protected_ref_by_id(ProtectedBranch, project, protected_branch_id)
    question = (
        f"Unprotect {branch.name}? Unless another rule covers them, developers can then push to such branches,"
        " force push included, and delete them. The default branch cannot be deleted."
    )
    return _confirmation(project, "Unprotect branch", question)


@pages.post(f"{TAGS}/<int:tag_id>/unprotect")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_TAGS)
def delete_protected_tag(project: Project, tag_id: int) -> ResponseReturnValue:
    """Remove the protection."""
    branch_protection.delete_protection(queries.find_protected_ref_by_id(ProtectedTag, project, tag_id))
    return redirect(_settings(project))


@pages.post(f"{BRANCHES}/<int:protected_branch_id>/unprotect")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_BRANCHES)
def delete_protected_branch(project: Project, protected_branch_id: int) -> ResponseReturnValue:
    """Remove the protection."""
    branch_protection.delete_protection(queries.find_protected_ref_by_id(ProtectedBranch, project, protected_branch_id))
    return redirect(_settings(project))


def _preview(pattern: str, names: list[str]) -> dict[str, Any]:
    return {"pattern": pattern, **examples(pattern, names)}


def _confirmation(project: Project, title: str, question: str) -> str:
    return confirmation(title=title, question=question, button="Unprotect", back=_settings(project), project=project)


def _settings(project: Project) -> str:
    return url_for("project_pages.show_settings", project=project.full_path, page="repository")
