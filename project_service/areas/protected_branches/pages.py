"""The protected branches on the repository settings page."""

from __future__ import annotations

from typing import Any

from flask import redirect, request, url_for

from project_service.access import sections
from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.protected_branches import queries, service
from project_service.areas.protected_branches.forms import ProtectedBranchForm
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.domain.repositories.protected_names import LEVELS
from project_service.domain.repositories.wildcards import examples
from project_service.kit.http.forms import confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("protected_branch_pages", __name__)
BASE_PATH = "/<path:project>/-/settings/repository/protected_branches"
PER_PAGE = 50


def fill(project: Project) -> dict[str, Any]:
    """Return the template variables of the section: the protected branches, and the branches that each covers."""
    page = read_page(queries.protected_branches_by_name(project), request.args.get("branch_page"), PER_PAGE)
    names = contents.branch_names(project)
    return {
        "protected_branches": page,
        "matching_branches": {row.id: examples(row.name, names) for row in page.rows},
        "protected_branch_form": ProtectedBranchForm(formdata=None),
        "levels": LEVELS,
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
        "protected_branches/section.html",
        fill,
    )
)


@pages.post(BASE_PATH, reads_repository=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_BRANCHES)
def create_protected_branch(project: Project) -> Any:
    """Protect a branch, or preview the branches that a wildcard covers."""
    form = ProtectedBranchForm()
    if "preview" in request.form:
        pattern = form.branch.data or ""
        shown = {"pattern": pattern, **examples(pattern, contents.branch_names(project))}
        return sections.show(project, "repository", protected_branch_form=form, branch_preview=shown)
    fields = {
        "name": form.branch.data,
        "push_access_level": form.push_access_level.data,
        "merge_access_level": form.merge_access_level.data,
        "allow_force_push": form.allow_force_push.data,
    }
    if form.accepted(lambda: service.create_protected_branch(project, **fields)):
        return redirect(_settings(project))
    return sections.show(project, "repository", status=422, protected_branch_form=form)


@pages.get(f"{BASE_PATH}/<int:protected_branch_id>/unprotect")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_BRANCHES)
def ask_delete_protected_branch(project: Project, protected_branch_id: int) -> Any:
    """Ask before the protection is removed."""
    branch = queries.find_protected_branch_by_id(project, protected_branch_id)
    return confirmation(
        title="Unprotect branch",
        question=f"Unprotect {branch.name}? Unless another rule covers them, developers can then push to such branches,"
        " force push included, and delete them. The default branch cannot be deleted.",
        button="Unprotect",
        back=_settings(project),
        project=project,
    )


@pages.post(f"{BASE_PATH}/<int:protected_branch_id>/unprotect")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_BRANCHES)
def delete_protected_branch(project: Project, protected_branch_id: int) -> Any:
    """Remove the protection."""
    service.delete_protected_branch(queries.find_protected_branch_by_id(project, protected_branch_id))
    return redirect(_settings(project))


def _settings(project: Project) -> str:
    return url_for("project_pages.show_settings", project=project.full_path, page="repository")
