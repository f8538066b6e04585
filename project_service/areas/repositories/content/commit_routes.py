"""API of commits (repositories reference, section 4.3)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.repositories.code_reading import CommitRow, find_commit, reading_code
from project_service.areas.repositories.content import parameter_schemas, queries, schemas
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, TAGS
from project_service.domain.repositories.reading import history
from project_service.domain.repositories.reading.history import HistoryFilter
from project_service.kit.http.errors import NotFound
from project_service.kit.http.pagination import ListedRows, Paging, PreparedPage, uncounted_headers

api = ApiBlueprint("commits", __name__, description="Commits of the repository of a project.")

COMMITS = "/projects/<project>/repository/commits"
KINDS = {"branch": BRANCHES, "tag": TAGS}


@api.get(COMMITS, reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.CommitListSchema)
@api.response(200, schemas.CommitWithStatsSchema(many=True))
@api.paged
@api.takes_paging
def list_commits(project: Project, fields: dict[str, Any], paging: Paging) -> PreparedPage:
    """List commits, newest first, without totals."""
    return queries.commits_of(project, paging, **fields)


@api.get(f"{COMMITS}/<sha>", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.CommitShowSchema)
@api.response(200, schemas.CommitFullSchema)
def show_commit(project: Project, fields: dict[str, Any], sha: str) -> CommitRow:
    """Show a commit by its id, or by a branch or tag."""
    return queries.show_commit(project, sha, stats=fields["stats"])


@api.get(f"{COMMITS}/<sha>/diff", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.response(200, schemas.DiffSchema(many=True))
@api.paged
def list_commit_diffs(project: Project, sha: str) -> queries.CommitDiffs:
    """List the files that a commit changed, with their differences."""
    return queries.CommitDiffs(project, sha)


@api.get(f"{COMMITS}/<sha>/refs", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.CommitRefsSchema)
@api.response(200, schemas.CommitRefSchema(many=True))
@api.paged
@api.takes_paging
def list_commit_refs(project: Project, fields: dict[str, Any], sha: str, paging: Paging) -> PreparedPage:
    """List the branches and tags whose histories have a commit."""
    with reading_code(project, "Commit") as code:
        commit = find_commit(code, sha)
        refs = [
            {"type": kind, "name": name}
            for kind, prefix in KINDS.items()
            if fields["type"] in (kind, "all")
            for name in history.containing(code, commit, prefix)
        ]
    some = refs[paging.offset : paging.offset + paging.size]
    return PreparedPage(some, uncounted_headers(paging, more=len(refs) > paging.offset + paging.size))


@api.get(f"{COMMITS}/<sha>/sequence", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(parameter_schemas.CommitSequenceSchema)
@api.response(200, schemas.SequenceSchema)
def show_commit_sequence(project: Project, fields: dict[str, Any], sha: str) -> dict[str, int]:
    """Count the commits of the history of a commit, itself included."""
    with reading_code(project, "Commit") as code:
        wanted = HistoryFilter(revisions=[find_commit(code, sha).id], first_parent=fields["first_parent"])
        return {"count": history.count(code, wanted)}


@api.get(f"{COMMITS}/<sha>/signature", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.response(200)
def show_commit_signature(project: Project, sha: str) -> None:
    """Refuse: signatures are not verified here."""
    with reading_code(project, "Commit") as code:
        find_commit(code, sha)
    raise NotFound("Signature")


@api.get(f"{COMMITS}/<sha>/statuses", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.response(200)
@api.paged
def list_commit_statuses(project: Project, sha: str) -> ListedRows:
    """List the statuses of a commit: there are none, for there are no pipelines."""
    with reading_code(project, "Commit") as code:
        find_commit(code, sha)
    return ListedRows([])
