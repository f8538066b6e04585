"""The page that compares two revisions: commits that only the second has, and differences."""

from __future__ import annotations

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.repositories.code_reading import optional_code, reading_code
from project_service.areas.repositories.content.queries import RANGE
from project_service.areas.repositories.revision_paths import BASE_PATH
from project_service.domain.projects import Project
from project_service.domain.repositories.reading import diffs, history
from project_service.domain.repositories.reading.diffs import TreeDifference
from project_service.domain.repositories.reading.history import HistoryFilter
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.kit.http import urls
from project_service.kit.http.errors import NotFound
from project_service.kit.http.pagination import ListedRows, read_page

pages = PageBlueprint("compare_pages", __name__)

MAX_SHOWN_COMMITS, FILES_PER_PAGE = 100, 20


@pages.get(f"{BASE_PATH}/compare", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def choose_revisions(project: Project) -> ResponseReturnValue:
    """Show the form that chooses two revisions; redirect to their comparison when both are given."""
    old, new = request.args.get("from", "").strip(), request.args.get("to", "").strip()
    problem = ""
    if old and new:
        with optional_code(project) as code:
            missing = [name for name in (old, new) if code is None or code.resolve(name) is None]
        if not missing:
            dots = ".." if "straight" in request.args else "..."
            return redirect(f"/{urls.encode_path(project.full_path)}/-/compare/{urls.encode_path(old + dots + new)}")
        problem = f"There is no branch, tag or commit {missing[0]}."
    chosen = {"old": old or project.default_branch or "", "new": new, "straight": "straight" in request.args}
    return render_template("repositories/compare.html", project=project, problem=problem, difference=None, **chosen)


@pages.get(f"{BASE_PATH}/compare/<path:range>", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def compare_revisions(project: Project, range: str) -> str:
    """Compare two revisions: ``OLD...NEW`` from their common ancestor, ``OLD..NEW`` directly."""
    match = RANGE.fullmatch(range)
    if match is None:
        raise NotFound("Ref")
    straight = match["dots"] == ".."
    with reading_code(project, "Ref") as code:
        old, new = code.resolve(match["old"]), code.resolve(match["new"])
        if old is None or new is None:
            raise NotFound("Ref")
        wanted = HistoryFilter(revisions=[new.id, f"^{old.id}"])
        commits = history.commits(code, wanted, 0, MAX_SHOWN_COMMITS + 1)
        difference = _difference(code, old, new, straight=straight)
        page = read_page(ListedRows(difference.files), request.args.get("page"), FILES_PER_PAGE)
        diffs.add_patches(code, difference, page.rows)
    context = {
        "old": match["old"],
        "new": match["new"],
        "straight": straight,
        "commits": commits[:MAX_SHOWN_COMMITS],
        "has_more_commits": len(commits) > MAX_SHOWN_COMMITS,
        "difference": difference,
        "page": page,
    }
    return render_template("repositories/compare.html", project=project, problem="", **context)


def _difference(code: CodeRepository, old: Commit, new: Commit, *, straight: bool) -> TreeDifference:
    base = old if straight else history.merge_base(code, [old.id, new.id])
    if base is None:
        raise NotFound("Ref")
    return diffs.between(code, base.id, new.id, numbers=True)
