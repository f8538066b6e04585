"""Restoring the Git repositories of an archive from their bundles."""

from __future__ import annotations

import re
from concurrent.futures import Future
from pathlib import Path

from sqlalchemy import select

from project_service.domain.projects import Project
from project_service.domain.repositories import bundles, git, models, restoring
from project_service.domain.repositories.models import Repository
from project_service.kit import jobs
from project_service.kit.db.session import db
from project_service.transfers.archive import reader
from project_service.transfers.archive.contents import Unpacked, UnreadRow
from project_service.transfers.importing.mapping.parsing import parse_row

SOURCE_PROJECT, TARGET_PROJECT = (
    re.compile(rb'"%s_project_id":\s*(\d+)[,}]' % side) for side in (b"source", b"target")
)


def restore_repository(folder: Path, kind: str, bundle: Path) -> Path:
    """Make a checked bare repository of a bundle in a folder; return its path.

    Raises:
        BadBundle: the bundle is not valid.

    """
    target = folder / f"{kind}.git"
    bundles.unbundle(bundle, target)
    bundles.check_ref_names(bundle)
    git.check(target)
    return target


def store_repositories(project_id: int, unpacked: Unpacked, restored: dict[str, Future[Path]]) -> None:
    """Store the packs and refs of repositories that have been restored."""
    for kind, future in restored.items():
        folder, bundle = future.result(), unpacked.bundles[kind]
        with jobs.step():
            of_kind = Repository.project_id == project_id, Repository.kind == kind
            if db.session.scalar(select(Repository.id).where(*of_kind)) is not None:  # by a worker before
                continue
        is_changed = kind == models.CODE and bundles.add_branches(folder, _branches_of_forks(unpacked))
        content = restoring.store_content(project_id, folder, None if is_changed else bundle)
        with jobs.step():
            restoring.add_repository(project_id, kind, content)
            if kind == models.CODE and content.head:
                db.session.get_one(Project, project_id).default_branch = content.head


def _branches_of_forks(unpacked: Unpacked) -> dict[str, str]:
    """The branches of open merge requests from forks, which are not imported, with their commits.

    Archive format reference, section 6.3.
    """
    branches: dict[str, str] = {}
    for _, raw in reader.rows_of(unpacked, "merge_requests"):
        if isinstance(raw, UnreadRow) or _is_of_one_project(raw):
            continue
        row = parse_row(raw)
        if isinstance(row, dict) and row.get("source_project_id") != row.get("target_project_id"):
            name, commit = row.get("source_branch"), row.get("diff_head_sha")
            if row.get("state") == "opened" and isinstance(name, str) and isinstance(commit, str):
                branches.setdefault(name, commit)
    return branches


def _is_of_one_project(raw: bytes) -> bool:
    # true for nearly all, and much faster than parsing the row
    source, target = SOURCE_PROJECT.search(raw), TARGET_PROJECT.search(raw)
    return source is not None and target is not None and source[1] == target[1]
