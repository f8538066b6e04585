"""The protected tags on the repository settings page."""

from __future__ import annotations

from typing import Any

from flask import redirect, request, url_for

from project_service.access import sections
from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.protected_tags import queries, service
from project_service.areas.protected_tags.forms import ProtectedTagForm
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.domain.repositories.protected_names import LEVELS
from project_service.domain.repositories.wildcards import examples
from project_service.kit.http.forms import confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("protected_tag_pages", __name__)
BASE_PATH = "/<path:project>/-/settings/repository/protected_tags"
PER_PAGE = 50


def fill(project: Project) -> dict[str, Any]:
    """Return the template variables of the section: the protected tags, and the tags that each covers."""
    page = read_page(queries.protected_tags_of(project), request.args.get("page"), PER_PAGE)
    names = contents.tag_names(project)
    return {
        "protected_tags": page,
        "matching": {tag.id: examples(tag.name, names) for tag in page.rows},
        "protected_tag_form": ProtectedTagForm(formdata=None),
        "levels": LEVELS,
        "preview": None,
        "tag_count": len(names),
    }


sections.add(
    sections.Section(
        "repository",
        "protected-tags",
        "Protected tags",
        10,
        Ability.ADMIN_PROTECTED_TAGS,
        "protected_tags/section.html",
        fill,
    )
)


@pages.post(BASE_PATH, reads_repository=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_TAGS)
def create_protected_tag(project: Project) -> Any:
    """Protect a tag, or preview the tags that a wildcard covers."""
    form = ProtectedTagForm()
    if "preview" in request.form:
        pattern = form.name.data or ""
        shown = {"pattern": pattern, **examples(pattern, contents.tag_names(project))}
        return sections.show(project, "repository", protected_tag_form=form, preview=shown)
    fields = {"name": form.name.data, "create_access_level": form.create_access_level.data}
    if form.accepted(lambda: service.create_protected_tag(project, **fields)):
        return redirect(_settings(project))
    return sections.show(project, "repository", status=422, protected_tag_form=form)


@pages.get(f"{BASE_PATH}/<int:tag_id>/unprotect")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_TAGS)
def ask_delete_protected_tag(project: Project, tag_id: int) -> Any:
    """Ask before the protection is removed."""
    tag = queries.find_protected_tag_by_id(project, tag_id)
    return confirmation(
        title="Unprotect tag",
        question=f"Unprotect {tag.name}? Unless another rule covers them, developers can then create such tags.",
        button="Unprotect",
        back=_settings(project),
        project=project,
    )


@pages.post(f"{BASE_PATH}/<int:tag_id>/unprotect")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROTECTED_TAGS)
def delete_protected_tag(project: Project, tag_id: int) -> Any:
    """Remove the protection."""
    service.delete_protected_tag(queries.find_protected_tag_by_id(project, tag_id))
    return redirect(_settings(project))


def _settings(project: Project) -> str:
    return url_for("project_pages.show_settings", project=project.full_path, page="repository")
