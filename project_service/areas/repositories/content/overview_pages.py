"""Pages about a whole revision: find a file by its name, and contributors."""

from __future__ import annotations

from flask import render_template, request

from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.repositories.code_reading import reading_code
from project_service.areas.repositories.revision_paths import BASE_PATH, find_revision_path
from project_service.domain.projects import Project
from project_service.domain.repositories.reading import history, trees
from project_service.domain.repositories.reading.history import MAX_SEARCH_LENGTH
from project_service.domain.repositories.reading.objects import is_addressable
from project_service.kit.http.pagination import ListedRows, read_page

pages = PageBlueprint("repository_overview_pages", __name__)
MAX_FOUND_FILES = 100
CONTRIBUTORS_PER_PAGE = 50


@pages.get(f"{BASE_PATH}/find_file/<path:place>", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def find_file(project: Project, place: str) -> str:
    """Show the files of a revision whose paths have all words of a search."""
    search = request.args.get("search", "")[:MAX_SEARCH_LENGTH]
    with reading_code(project, "Revision") as code:
        revision_path = find_revision_path(code, place)
        paths = matching_paths(trees.file_names(code, revision_path.commit), search)
    context = {"paths": paths[:MAX_FOUND_FILES], "is_more": len(paths) > MAX_FOUND_FILES}
    return render_template(
        "repositories/find_file.html", project=project, place=revision_path, search=search, **context
    )


@pages.get(f"{BASE_PATH}/graphs/<path:place>", reads_repository=True, is_long=True)
@pages.allow(Ability.READ_CODE)
def list_contributors(project: Project, place: str) -> str:
    """Show the authors of a history, those with the most commits first."""
    with reading_code(project, "Revision") as code:
        revision_path = find_revision_path(code, place)
        people = history.contributors(code, revision_path.commit)
    people.sort(key=lambda person: (-person.commits, person.name))
    page = read_page(ListedRows(people), request.args.get("page"), CONTRIBUTORS_PER_PAGE)
    return render_template("repositories/contributors.html", project=project, place=revision_path, page=page)


def matching_paths(names: frozenset[bytes], search: str) -> list[str]:
    """Return at most one more than ``MAX_FOUND_FILES`` paths that have all words; those named so come first."""
    words = search.lower().split()
    paths = []
    for name in names:
        path = name.decode(errors="replace")
        if all(word in path.lower() for word in words) and is_addressable(path):
            paths.append(path)
    paths.sort(key=lambda path: (not all(word in path.rpartition("/")[2].lower() for word in words), len(path), path))
    return paths[: MAX_FOUND_FILES + 1]
