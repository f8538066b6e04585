"""Pages of the content of repositories: folders, raw files and commits."""

from __future__ import annotations

from collections.abc import Iterable

from flask import Response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.areas.repositories.code_reading import (
    download_slots,
    find_commit,
    optional_code,
    reading_code,
    streamed,
)
from project_service.areas.repositories.content import archives, home
from project_service.areas.repositories.content.readmes import find_readme
from project_service.areas.repositories.revision_paths import BASE_PATH, find_revision_path, page_address
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, TAGS
from project_service.domain.repositories.reading import diffs, history, patches, refs, trees
from project_service.domain.repositories.reading.budget import ReadingTooLarge
from project_service.domain.repositories.reading.history import MAX_SEARCH_LENGTH, HistoryFilter
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import BLOB, HEAD, CodeRepository
from project_service.kit.http import raw_content
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import whole_number
from project_service.kit.http.pagination import ListedRows, Paging, ShownPage, read_page

pages = PageBlueprint("repository_pages", __name__)
FILES = (
    "/-/tree",
    "/-/blob",
    "/-/blame",
    "/-/find_file",
    "/-/graphs",
    *("/-/new/", "/-/edit/", "/-/upload_file", "/-/delete_file"),
)
HISTORY = ("/-/commit", "/-/compare")
REFS = ("/-/branches", "/-/tags", "/-/releases")
navigation.add(navigation.NavigationEntry("Code", "/-/tree", 5, Ability.READ_CODE, FILES + HISTORY + REFS))
navigation.add(navigation.NavigationEntry("Files", "/-/tree", 1, Ability.READ_CODE, FILES), "code")
navigation.add(navigation.NavigationEntry("Commits", "/-/commits", 2, Ability.READ_CODE, HISTORY), "code")

MAX_OFFERED_BRANCHES = 100
ENTRIES_PER_PAGE, COMMITS_PER_PAGE, FILES_PER_PAGE = 100, 40, 20
MAX_PAGE = 100_000
REFS_SECONDS, MAX_SHOWN_REFS = 1.0, 10
REF_TITLES = {"Branches": BRANCHES, "Tags": TAGS}


@pages.get(f"{BASE_PATH}/tree", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def show_root(project: Project) -> ResponseReturnValue:
    """Show the default branch, lead to a chosen ``branch``, or show how to push to an empty repository."""
    chosen = request.args.get("branch", "")[:MAX_SEARCH_LENGTH]
    if chosen:
        return redirect(page_address(project, "tree", chosen))
    branch = _pushed_default_branch(project)
    if branch is None:
        return render_template("repositories/empty.html", project=project, panel=home.clone_facts(project))
    return _show_folder(project, branch)


@pages.get(f"{BASE_PATH}/tree/<path:folder>", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def show_folder(project: Project, folder: str) -> ResponseReturnValue:
    """Show a folder of a revision."""
    return _show_folder(project, folder)


def _pushed_default_branch(project: Project) -> str | None:
    """Return the default branch; ``None`` while it has no commits: a project may name it before the first push."""
    with optional_code(project) as code:
        return None if code is None or code.resolve(HEAD) is None else project.default_branch


def _show_folder(project: Project, text: str) -> ResponseReturnValue:
    with reading_code(project, "Folder") as code:
        revision_path = find_revision_path(code, text)
        entries = trees.folder(code, revision_path.commit, revision_path.path)
        if entries is None:
            entry = code.entry(revision_path.commit, revision_path.path)
            if entry is None or entry.type != BLOB:
                raise NotFound("Folder")
            return redirect(page_address(project, "blob", revision_path.revision, revision_path.path))
        page = read_page(ListedRows(entries), request.args.get("page"), ENTRIES_PER_PAGE)
        last = history.last_commits(code, revision_path.commit, revision_path.path.encode(), page.rows)
        readme = find_readme(project, code, revision_path, entries) if page.number == 1 else None
        branches = [ref.name for ref in refs.refs(code, BRANCHES)[:MAX_OFFERED_BRANCHES]]
        on_branch = code.ref(BRANCHES + revision_path.revision) is not None
    context = {"place": revision_path, "page": page, "last": last, "readme": readme, "branches": branches}
    context["on_branch"] = on_branch
    return render_template("repositories/folder.html", project=project, **context)


@pages.get(f"{BASE_PATH}/raw/<path:place>", reads_repository=True, is_long=True)
@pages.allow(Ability.READ_CODE)
def download_raw(project: Project, place: str) -> Response:
    """Send a file as it is; nothing in it runs in the origin of the service."""

    def respond(code: CodeRepository) -> tuple[Iterable[bytes], Response]:
        revision_path = find_revision_path(code, place)
        entry = code.entry(revision_path.commit, revision_path.path)
        if entry is None or entry.type != BLOB:
            raise NotFound("File")
        headers = raw_content.headers(
            code.start_of(entry.id, raw_content.SNIFFED_BYTES), entry.name, inline=request.args.get("inline") != "false"
        )
        headers |= {"Content-Length": str(code.size_of(entry.id)), "ETag": f'"{entry.id}"'}
        # what an id names never changes
        seconds = 3600 if revision_path.revision == revision_path.commit.id else 60
        headers |= {"Cache-Control": f"private, max-age={seconds}, must-revalidate"}
        response = Response(headers=headers)
        response.make_conditional(request)
        return code.chunks(entry.id, 3600.0, download_slots()), response

    return streamed(project, respond)


@pages.get(f"{BASE_PATH}/commits", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def list_commits(project: Project) -> str:
    """Show the commits of the default branch."""
    return _show_commits(project, _pushed_default_branch(project))


@pages.get(f"{BASE_PATH}/commits/<path:place>", reads_repository=True)
@pages.allow(Ability.READ_CODE)
def list_commits_of(project: Project, place: str) -> str:
    """Show the commits of a revision, or those that changed a path of it."""
    return _show_commits(project, place)


def _show_commits(project: Project, text: str | None) -> str:
    number = min(whole_number(request.args.get("page") or "") or 1, MAX_PAGE)
    page = Paging(number, COMMITS_PER_PAGE, COMMITS_PER_PAGE)
    search, author = (request.args.get(name, "")[:MAX_SEARCH_LENGTH] for name in ("search", "author"))
    revision_path, complete, commits = None, True, list[Commit]()
    with optional_code(project) as code:
        if code is not None and text:
            revision_path = find_revision_path(code, text)
            wanted = HistoryFilter(
                revisions=[revision_path.commit.id], path=revision_path.path, message=search, author=author
            )
            commits, complete = history.commits_in_time(code, wanted, page.offset, page.size + 1)
    following = number + 1 if len(commits) > page.size else None
    before = number - 1 if number > 1 else None
    shown_page = ShownPage(commits[: page.size], number, 0, False, following, before, page.size)
    values = {"place": revision_path, "page": shown_page, "complete": complete, "search": search, "author": author}
    return render_template("repositories/commits.html", project=project, **values)


@pages.get(f"{BASE_PATH}/commit/<sha>", reads_repository=True, is_long=True)
@pages.allow(Ability.READ_CODE)
def show_commit(project: Project, sha: str) -> ResponseReturnValue:
    """Show a commit with its differences; below ``SHA.diff`` and ``SHA.patch`` they are text."""
    revision, _, kind = sha.rpartition(".")
    if kind in (patches.DIFF, patches.PATCH):
        return _text_of_commit(project, revision, kind)
    with reading_code(project, "Commit") as code:
        commit = find_commit(code, sha)
        difference = diffs.of_commit(code, commit, numbers=True)
        page = read_page(ListedRows(difference.files), request.args.get("page"), FILES_PER_PAGE)
        diffs.add_patches(code, difference, page.rows)
        refs = {title: _containing(code, commit, prefix) for title, prefix in REF_TITLES.items()}
    values = {"commit": commit, "difference": difference, "page": page, "refs": refs, "max_refs": MAX_SHOWN_REFS}
    text_references.prepare(caller(), project, [commit.description])
    return render_template("repositories/commit.html", project=project, **values)


def _containing(code: CodeRepository, commit: Commit, prefix: str) -> list[str]:
    """The names of branches or tags that contain a commit; none if it takes long to find them."""
    try:
        return history.containing(code, commit, prefix, REFS_SECONDS)
    except ReadingTooLarge:
        return []


def _text_of_commit(project: Project, revision: str, kind: str) -> Response:
    def respond(code: CodeRepository) -> tuple[Iterable[bytes], Response]:
        commit = find_commit(code, revision)
        headers = raw_content.headers(b"", f"{commit.short_id}.{kind}")
        return patches.text_of_commit(code, commit, kind, slots=download_slots()), Response(headers=headers)

    return streamed(project, respond)


@pages.get(f"{BASE_PATH}/archive/<path:archive>", reads_repository=True, is_long=True)
@pages.allow(Ability.READ_CODE)
def download_archive(project: Project, archive: str) -> Response:
    """Download an archive of ``REVISION/NAME.FORMAT``, of one folder with the parameter ``path``."""
    revision, _, name = archive.rpartition("/")
    kind = next((ending for ending in archives.FORMATS if name.endswith(f".{ending}")), None)
    if not revision or kind is None:
        raise NotFound("File")
    return archives.respond(project, kind, revision, request.args.get("path"))
