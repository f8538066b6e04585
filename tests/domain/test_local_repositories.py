"""What a machine has of repositories on its disk: caches that are removed when nothing needs them."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from project_service.domain.repositories import bundle_cache, contents, eviction, models
from project_service.domain.repositories.local_folders import in_use
from project_service.kit import storage
from project_service.kit.db.session import db
from tests.support.git_repositories import keep_bundle, keep_repository, make_bundle, repository_folder
from tests.support.sample_data import ADA, make_project

BUNDLES_FOLDER = "*-project-*.git*"


@pytest.fixture
def stored_bundle(project, tmp_path):
    """The repository of a project in the way of former releases."""
    return keep_bundle(project, make_bundle(tmp_path / "bundle", "v1"))


def test_the_repository_of_a_bundle_is_removed_when_its_bundle_was_replaced(stored_bundle, project):
    bundle_cache.remove_unused()  # those of other tests
    assert contents.tag_names(project) == ["v1"]
    assert bundle_cache.remove_unused() == 0
    stored_bundle.version = "2"
    db.session.commit()

    assert bundle_cache.remove_unused() == 1
    assert contents.tag_names(project) == ["v1"]


@pytest.mark.parametrize(("days", "stays"), [(0, True), (1, True), (3, False)])
def test_old_files_of_a_killed_process_are_removed(days, stays, project):
    models.root().mkdir(parents=True, exist_ok=True)
    folder = models.root() / f".{project.id}-project-{'0' * 32}.git.a069401a"
    bundle = folder.with_name(f"{folder.name}.bundle")
    (folder / "objects").mkdir(parents=True)
    bundle.write_bytes(b"# v2 git bundle\n")
    for path in (folder, bundle):
        os.utime(path, (time.time() - days * 86400,) * 2)

    bundle_cache.remove_unused()

    assert [folder.exists(), bundle.exists()] == [stays, stays]


def test_a_removed_project_leaves_no_local_files(project, as_, run_jobs, tmp_path):
    kept = keep_repository(project, tmp_path / "repository", "v1")
    contents.tag_names(project)
    assert (models.root() / "cache" / str(kept.id)).exists()

    as_(ADA).delete(f"/projects/{project.id}")
    run_jobs()

    assert not (models.root() / "cache" / str(kept.id)).exists()


def test_old_unused_caches_are_removed(project, tmp_path):
    kept = keep_repository(project, tmp_path / "repository", "v1")
    base = models.root() / "cache" / str(kept.id)
    with repository_folder(project) as view:
        eviction.remove_unused(0)
        assert view.exists()
    eviction.remove_unused(3600)
    assert base.exists()

    eviction.remove_unused(0)

    assert not base.exists()
    assert contents.tag_names(project) == ["v1"]


def test_least_recently_used_caches_are_removed_above_a_size(project, group, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_hard_link", lambda source, target: False)  # as with a bucket
    other = make_project("other", group)
    bases = []
    for number, each in enumerate((project, other)):
        stored = keep_repository(each, tmp_path / str(number), "v1")
        assert contents.tag_names(each) == ["v1"]
        bases.append(models.root() / "cache" / str(stored.id))
    size = sum(path.stat().st_size for path in bases[1].rglob("*") if path.is_file())

    for number, path in ((number, path) for number, base in enumerate(bases) for path in (base, *base.glob("views/*"))):
        os.utime(path, (time.time() - 3600 + number,) * 2)

    eviction.remove_above(size * 3)
    assert [base.exists() for base in bases] == [True, True]
    eviction.remove_above(size * 3 // 2)

    assert [base.exists() for base in bases] == [False, True]
    assert contents.tag_names(project) == ["v1"]


def test_a_cache_in_use_is_not_removed(project, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_hard_link", lambda source, target: False)
    keep_repository(project, tmp_path / "repository", "v1")

    with repository_folder(project) as view:
        eviction.remove_above(0, min_age_seconds=0)
        assert view.exists()
    eviction.remove_above(0)
    assert view.exists()  # read within the last minute

    eviction.remove_above(0, min_age_seconds=0)
    assert not view.exists()


def test_a_view_in_use_survives_a_push(project, tmp_path):
    keep_repository(project, tmp_path / "repository", "v1")
    with repository_folder(project) as view, in_use(view):
        shutil.rmtree(models.root() / "slots", ignore_errors=True)
        models.repository_of(project).version = "other"
        db.session.commit()
        with repository_folder(project) as newer:
            assert newer != view
            assert view.exists()
