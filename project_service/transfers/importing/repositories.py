"""Restoring the Git repositories of an archive from their bundles."""

from __future__ import annotations

import re
from concurrent.futures import Future
from pathlib import Path

from project_service.domain.projects import Project, folder_of
from project_service.domain.repositories import bundles, git, models
from project_service.domain.repositories.models import Repository
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, insert
from project_service.kit.storage import storage
from project_service.transfers.archive import reader
from project_service.transfers.archive.contents import Unpacked, UnreadRow
from project_service.transfers.importing.mapping.parsing import parse_row
from project_service.transfers.workdir import version_of

SOURCE_PROJECT, TARGET_PROJECT = (
    re.compile(rb'"%s_project_id":\s*(\d+)[,}]' % side) for side in (b"source", b"target")
)


def restore_repository(root: Path, name: str, bundle: Path) -> tuple[str, Path]:
    """Make a checked bare repository of a bundle; return the version of the bundle and the path.

    Raises:
        BadBundle: the bundle is not valid.

    """
    version = version_of(bundle)
    target = root / f"{name}-{version}.git"
    if not target.exists():
        bundles.unbundle(bundle, target)
    git.check(target)
    return version, target


def store_repositories(project_id: int, unpacked: Unpacked, restored: dict[str, Future[tuple[str, Path]]]) -> None:
    """Store the bundles whose repositories have been restored."""
    for kind, future in restored.items():
        (version, target), bundle = future.result(), unpacked.bundles[kind]
        branch = None
        if kind == models.CODE:
            branch = bundles.default_branch(target)
            if (created := _with_branches_of_forks(unpacked, target)) is not None:
                bundle, version = created, version_of(created)
        name = f"{folder_of(project_id)}/{kind}-{version}.bundle"
        storage().store_file(bundle, name)
        size = bundle.stat().st_size
        with jobs.step():
            row = insert(Repository).values(
                project_id=project_id,
                kind=kind,
                version=version,
                storage_name=name,
                size=size,
                created_at=clock.now(),
                updated_at=clock.now(),
            )
            db.session.execute(row.on_conflict_do_nothing(index_elements=["project_id", "kind"]))
            if branch:
                db.session.get_one(Project, project_id).default_branch = branch


def _with_branches_of_forks(unpacked: Unpacked, restored: Path) -> Path | None:
    """Create a new bundle of the code with the branches of forks; nothing if there are none."""
    branches = _branches_of_forks(unpacked)
    return bundles.with_branches(restored, branches, unpacked.folder) if branches else None


def _branches_of_forks(unpacked: Unpacked) -> dict[str, str]:
    """The branches of open merge requests from forks, which are not imported, with their commits (section 6.3)."""
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
