"""Pages of one file: its content, and who changed each line last."""

from __future__ import annotations

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.areas.repositories.code_reading import reading_code
from project_service.areas.repositories.content import file_views
from project_service.areas.repositories.content.readmes import addresses_in, is_markdown
from project_service.areas.repositories.revision_paths import BASE_PATH, find_revision_path, page_address
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.reading import blame, history
from project_service.domain.repositories.reading.blame import BlameGroup
from project_service.domain.repositories.reading.budget import ReadingFailed
from project_service.domain.repositories.reading.repository import BLOB, TREE
from project_service.kit.http.errors import NotFound

pages = PageBlueprint("file_pages", __name__)


@pages.get(f"{BASE_PATH}/blob/<path:place>", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def show_file(project: Project, place: str) -> ResponseReturnValue:
    """Show a file of a revision; findings link here."""
    with reading_code(project, "File") as code:
        revision_path = find_revision_path(code, place)
        entry = code.entry(revision_path.commit, revision_path.path)
        if entry is not None and entry.type == TREE:
            return redirect(page_address(project, "tree", revision_path.revision, revision_path.path))
        if entry is None or entry.type != BLOB:
            raise NotFound("File")
        view = file_views.view_of(code, entry, as_source="plain" in request.args)
        on_branch = code.ref(BRANCHES + revision_path.revision) is not None
        folder = entry.path.rpartition(b"/")[0]
        last = history.last_commits(code, revision_path.commit, folder, [entry]).get(entry.path)
    if view.is_markdown:
        text_references.prepare(caller(), project, [view.text])
    context = {
        "place": revision_path,
        "entry": entry,
        "view": view,
        "last": last,
        "on_branch": on_branch,
        "has_source": is_markdown(entry.name) and view.kind == file_views.TEXT,
        "addresses": addresses_in(project, revision_path.revision, revision_path.path.rpartition("/")[0]),
    }
    return render_template("repositories/file.html", project=project, **context)


@pages.get(f"{BASE_PATH}/blame/<path:place>", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def show_blame(project: Project, place: str) -> str:
    """Show the lines of a file with the commits that changed them last."""
    groups: list[BlameGroup] | None = None
    with reading_code(project, "File") as code:
        revision_path = find_revision_path(code, place)
        entry = code.entry(revision_path.commit, revision_path.path)
        if entry is None or entry.type != BLOB:
            raise NotFound("File")
        view = file_views.view_of(code, entry, as_source=True)
        if view.kind == file_views.TEXT:
            try:
                groups = blame.blame(code, revision_path.commit, revision_path.path)
            except ReadingFailed:  # the history is too long to be walked in time
                groups = None
    return render_template(
        "repositories/blame.html", project=project, place=revision_path, entry=entry, view=view, groups=groups
    )
