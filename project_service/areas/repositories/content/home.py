"""The panel of the repository on the page of a project: clone address, last commit, files with theirs, README."""

from __future__ import annotations

from typing import Any

import structlog

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.page_parts import panels
from project_service.areas.repositories.content.readmes import find_readme
from project_service.areas.repositories.revision_paths import RevisionPath
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, TAGS
from project_service.domain.repositories.git import BadBundle
from project_service.domain.repositories.models import repository_of
from project_service.domain.repositories.reading import history, trees
from project_service.domain.repositories.reading.budget import ReadingFailed, ReadingTooLarge
from project_service.domain.repositories.reading.history import HistoryFilter
from project_service.domain.repositories.reading.repository import HEAD, CodeRepository, code_of
from project_service.domain.repositories.views import head_of
from project_service.kit.http import urls
from project_service.kit.http.errors import Unavailable

MAX_COUNTED_COMMITS = 1000
MAX_SHOWN_ENTRIES = 30

log = structlog.get_logger(__name__)


def fill(project: Project) -> dict[str, Any]:
    """Fill the panel of a project for callers who may read its code."""
    if not allowed(caller(), Ability.READ_CODE, project):
        return {"shown": False}
    about = clone_facts(project)
    try:
        with code_of(project) as code:
            commit = None if code is None else code.resolve(HEAD)
            if code is None or commit is None or project.default_branch is None:
                return about | {"shown": True, "empty": True}
            return about | {"shown": True} | _content(project, code, RevisionPath(project.default_branch, "", commit))
    except ReadingTooLarge:
        return about | {"shown": True, "failed": True, "too_large": True}
    except (ReadingFailed, BadBundle, Unavailable, OSError) as error:  # the page has more than the repository
        log.warning("the repository cannot be read", project_id=project.id, error=str(error))
        return about | {"shown": True, "failed": True}


def clone_facts(project: Project) -> dict[str, Any]:
    """The template variables of the clone address and of the commands that fill an empty repository."""
    return {
        "clone_url": urls.absolute(f"/{project.full_path}.git"),
        "branch": head_of(project, repository_of(project)),
    }


def _content(project: Project, code: CodeRepository, place: RevisionPath) -> dict[str, Any]:
    entries = trees.folder(code, place.commit, "") or trees.Folder([], b"")
    shown_entries = entries[:MAX_SHOWN_ENTRIES]
    wanted = HistoryFilter(revisions=[place.commit.id])
    return {
        "place": place,
        "entries": shown_entries,
        "last": history.last_commits(code, place.commit, b"", shown_entries),
        "has_more_entries": len(entries) > MAX_SHOWN_ENTRIES,
        # counted up to a limit, since a long history takes long to walk
        "commit_count": len(history.commit_ids(code, wanted, 0, MAX_COUNTED_COMMITS + 1)),
        "max_commits": MAX_COUNTED_COMMITS,
        "branch_count": code.refs.count(BRANCHES.encode()),
        "tag_count": code.refs.count(TAGS.encode()),
        "readme": find_readme(project, code, place, entries),
    }


panels.add(panels.Panel("project", 10, "repositories/home.html", fill))
