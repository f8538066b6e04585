"""What repositories contain: tags, commits and issue templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, COMMIT_ID, REF, TAGS, commit_by_id
from project_service.domain.repositories.git import opened
from project_service.domain.repositories.views import repository_view

if TYPE_CHECKING:
    import pygit2

TEMPLATES = ".gitlab/issue_templates"
MAX_TEMPLATES, MAX_TEMPLATE_BYTES = 200, 64 << 10


def tag_names(project: Project) -> list[str]:
    """The names of the tags of a project, in order; none if it has no repository."""
    return _names(project, TAGS)


def branch_names(project: Project) -> list[str]:
    """The names of the branches of a project, in order; none if it has no repository."""
    return _names(project, BRANCHES)


def commit_titles(project: Project, ids: Iterable[str]) -> dict[str, str]:
    """The first lines of the messages of commits, by id, without those that the repository does not have."""
    with _code_of(project) as repository:
        if repository is None:
            return {}
        titles: dict[str, str] = {}
        for commit_id in ids:
            commit = commit_by_id(repository, commit_id)
            if commit is not None:
                titles[commit_id] = commit.message.strip().partition("\n")[0].rstrip()
        return titles


def issue_templates(project: Project) -> list[str]:
    """The names of the templates for new issues: Markdown files of the default branch."""
    with _code_of(project) as repository:
        return list(_templates(project, repository))


def issue_template(project: Project, name: str) -> str | None:
    """The text of a template for new issues, if it exists."""
    with _code_of(project) as repository:
        found = _templates(project, repository).get(name)
        return None if found is None else found.data.decode(errors="replace").replace("\0", "")


def _names(project: Project, prefix: str) -> list[str]:
    with _code_of(project) as repository:
        if repository is None:
            return []
        return sorted(name.removeprefix(prefix) for name in repository.references if name.startswith(prefix))


def _templates(project: Project, repository: pygit2.Repository | None) -> dict[str, Any]:
    # contents are read only when a template is used
    if repository is None or project.default_branch is None:
        return {}
    commit = _commit(repository, project.default_branch)
    try:
        files = list(commit.tree[TEMPLATES]) if commit is not None else []
    except (KeyError, TypeError):
        return {}
    found = [file for file in files if file.type_str == "blob" and file.name.endswith(".md")]
    first = sorted(found, key=lambda file: str(file.name))[:MAX_TEMPLATES]
    return {
        file.name.removesuffix(".md"): file for file in first if _size_of(repository, file.id) <= MAX_TEMPLATE_BYTES
    }


def _commit(repository: pygit2.Repository, revision: str) -> Any:
    if COMMIT_ID.fullmatch(revision):
        return commit_by_id(repository, revision)
    if not REF.fullmatch(revision):
        return None
    named = (repository.references.get(kind + revision) for kind in (BRANCHES, TAGS))
    peeled: Any = next((ref.peel() for ref in named if ref is not None), None)
    return peeled if peeled is not None and peeled.type_str == "commit" else None


def _size_of(repository: pygit2.Repository, blob: Any) -> int:
    # Blob.size would load the content
    return repository.odb.read_header(blob)[1]


@contextmanager
def _code_of(project: Project) -> Iterator[pygit2.Repository | None]:
    with repository_view(project) as folder:
        yield None if folder is None else opened(folder)
