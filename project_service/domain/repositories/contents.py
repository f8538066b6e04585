"""What repositories contain: tags, commits and issue templates."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, TAGS
from project_service.domain.repositories.reading import trees
from project_service.domain.repositories.reading.budget import ReadingFailed
from project_service.domain.repositories.reading.objects import Entry, text_of
from project_service.domain.repositories.reading.repository import BLOB, HEAD, CodeRepository, code_of

TEMPLATES = ".gitlab/issue_templates"
MAX_TEMPLATES, MAX_TEMPLATE_BYTES = 200, 64 << 10
MAX_FILES = 10_000  # of the folder of templates


def tag_names(project: Project) -> list[str]:
    """The names of the tags of a project, in order; none if it has no repository."""
    return _names(project, TAGS)


def branch_names(project: Project) -> list[str]:
    """The names of the branches of a project, in order; none if it has no repository."""
    return _names(project, BRANCHES)


def commit_titles(project: Project, ids: Iterable[str]) -> dict[str, str]:
    """The first lines of the messages of commits, by id, without those that the repository does not have."""
    titles: dict[str, str] = {}
    with code_of(project) as code, suppress(ReadingFailed):
        for commit_id in ids if code is not None else ():
            commit = code.commit_of(commit_id) if code is not None else None
            if commit is not None:
                titles[commit_id] = commit.message.strip().partition("\n")[0].rstrip()
    return titles


def file_names(project: Project, revisions: Iterable[str]) -> frozenset[bytes] | None:
    """The paths of all files of the first revision that exists; ``None`` without one, or if there are too many."""
    with code_of(project) as code, suppress(ReadingFailed):
        commits = (code.resolve(revision) for revision in revisions) if code is not None else iter(())
        commit = next((commit for commit in commits if commit is not None), None)
        if code is not None and commit is not None:
            return trees.file_names(code, commit)
    return None


def revision_with_file(project: Project, revisions: Iterable[str], path: str) -> str | None:
    """The first of some revisions that has a file; ``None`` without one."""
    with code_of(project) as code, suppress(ReadingFailed):
        for revision in revisions if code is not None else ():
            commit = None if code is None else code.resolve(revision)
            entry = None if code is None or commit is None else code.entry(commit, path)
            if entry is not None and entry.type == BLOB:
                return revision
    return None


def issue_templates(project: Project) -> list[str]:
    """The names of the templates for new issues: Markdown files of the default branch."""
    with code_of(project) as code:
        return list(_templates(code))


def issue_template(project: Project, name: str) -> str | None:
    """The text of a template for new issues, if it exists."""
    with code_of(project) as code:
        template = _templates(code).get(name)
        content = None if code is None or template is None else code.content(template.id, MAX_TEMPLATE_BYTES)
    return None if content is None else content.decode(errors="replace").replace("\0", "")


def _names(project: Project, prefix: str) -> list[str]:
    with code_of(project) as code:
        if code is None:
            return []
        raw = prefix.encode()
        return sorted(text_of(name.removeprefix(raw)) for name in code.refs.names(raw))


def _templates(code: CodeRepository | None) -> dict[str, Entry]:
    # contents are read only when a template is used
    if code is None:
        return {}
    try:
        commit = code.resolve(HEAD)
        folder = None if commit is None else trees.folder(code, commit, TEMPLATES)
        files = [] if folder is None else folder[:MAX_FILES]
        templates = [file for file in files if file.type == BLOB and file.name.endswith(".md")]
        first = sorted(templates, key=lambda file: file.name)[:MAX_TEMPLATES]
        return {file.name.removesuffix(".md"): file for file in first if code.size_of(file.id) <= MAX_TEMPLATE_BYTES}
    except ReadingFailed:
        return {}
