"""Pages of releases: the list, one tag with its release, and the forms."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.access.rules import at_least
from project_service.areas.repositories.refs import queries as ref_queries
from project_service.areas.repositories.releases import queries, schemas, service
from project_service.areas.repositories.releases.forms import NewReleaseForm, ReleaseForm
from project_service.areas.repositories.revision_paths import BASE_PATH
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.repositories.releases import Release
from project_service.kit.http import urls
from project_service.kit.http.errors import NotFound
from project_service.kit.http.forms import confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("release_pages", __name__)
navigation.add(navigation.NavigationEntry("Releases", "/-/releases", 5, Ability.READ_RELEASES), "code")

RELEASES_PER_PAGE = 20


@pages.get(f"{BASE_PATH}/releases", reads_repository=True)
@pages.allow(Ability.READ_RELEASES)
def list_releases(project: Project) -> str:
    """Show the releases, the newest first."""
    page = read_page(queries.releases_of(project), request.args.get("page"), RELEASES_PER_PAGE)
    text_references.prepare(caller(), project, [row.release.description for row in page.rows])
    return render_template("repositories/releases.html", project=project, page=page, assets=_assets)


@pages.get(f"{BASE_PATH}/releases/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_RELEASES)
def new_release(project: Project) -> str:
    """Show the form for a new release."""
    form = NewReleaseForm(tag=request.args.get("tag", ""), ref=project.default_branch)
    return render_template("repositories/release_form.html", project=project, form=form, release=None)


@pages.post(f"{BASE_PATH}/releases/new", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_RELEASES)
def create_release(project: Project) -> ResponseReturnValue:
    """Create a release, and its tag if that does not exist."""
    form = NewReleaseForm()
    tag = form.tag.data or ""
    fields: dict[str, Any] = {"name": form.name.data, "ref": form.ref.data, "description": form.description.data}
    if form.accepted(lambda: service.create_release(caller(), project, tag_name=tag, **fields)):
        return redirect(_address(project, tag))
    return render_template("repositories/release_form.html", project=project, form=form, release=None), 422


@pages.get(f"{BASE_PATH}/releases/<path:tag>/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_RELEASES)
def edit_release(project: Project, tag: str) -> str:
    """Show the form of a release."""
    release = queries.find_release(project, tag)
    form = ReleaseForm(name=release.name, description=release.description)
    return render_template("repositories/release_form.html", project=project, form=form, release=release)


@pages.post(f"{BASE_PATH}/releases/<path:tag>/edit", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_RELEASES)
def update_release(project: Project, tag: str) -> ResponseReturnValue:
    """Change the title and the notes of a release."""
    release = queries.find_release(project, tag)
    form = ReleaseForm()
    name, description = form.name.data or tag, form.description.data
    if form.accepted(lambda: service.update_release(caller(), release, name=name, description=description)):
        return redirect(_address(project, tag))
    return render_template("repositories/release_form.html", project=project, form=form, release=release), 422


@pages.get(f"{BASE_PATH}/releases/<path:tag>/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_RELEASES)
def ask_delete_release(project: Project, tag: str) -> str:
    """Ask before a release is deleted."""
    release = queries.find_release(project, tag)
    return confirmation(
        title="Delete release",
        question=f"Delete the release {release.name or tag} with its notes and links? The tag {tag} stays.",
        button="Delete",
        back=_address(project, tag),
        project=project,
    )


@pages.post(f"{BASE_PATH}/releases/<path:tag>/delete", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_RELEASES)
def delete_release(project: Project, tag: str) -> ResponseReturnValue:
    """Delete a release; its tag stays."""
    service.delete_release(caller(), queries.find_release(project, tag))
    flash(f"The release of {tag} was deleted.")
    return redirect(f"/{urls.encode_path(project.full_path)}/-/releases")


@pages.get(f"{BASE_PATH}/releases/<path:tag>", reads_repository=True)
@pages.allow(Ability.READ_RELEASES)
def show_release(project: Project, tag: str) -> str:
    """Show the release of a tag, also if the repository has no such tag."""
    return _show(project, tag, queries.find_release(project, tag))


@pages.get(f"{BASE_PATH}/tags/<path:tag>", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def show_tag(project: Project, tag: str) -> str:
    """Show a tag with its release, if the caller may see that."""
    sees_releases = allowed(caller(), Ability.READ_RELEASES, project)
    return _show(project, tag, queries.release_of(project, tag) if sees_releases else None)


def _show(project: Project, tag: str, release: Release | None) -> str:
    try:
        row = ref_queries.find_tag(project, tag)
    except NotFound:
        if release is None:
            raise
        row = None
    text_references.prepare(caller(), project, [release.description if release is not None else None])
    return render_template(
        "repositories/tag.html",
        project=project,
        tag=tag,
        row=row,
        release=release,
        assets=_assets,
        maintains=at_least(Role.MAINTAINER)(caller(), project),
    )


def _assets(project: Project, release: Release | None, tag: str, *, exists: bool) -> list[tuple[str, str]]:
    """Names and addresses of what can be downloaded: the links of the release, and archives if the tag exists."""
    links = [] if release is None else [(link.name, link.url) for link in schemas.newest_links(release)]
    sources = schemas.sources_of(project, tag) if exists else []
    return links + [(f"Source code ({source['format']})", source["url"]) for source in sources]


def _address(project: Project, tag: str) -> str:
    return f"/{urls.encode_path(project.full_path)}/-/releases/{urls.encode_path(tag)}"
