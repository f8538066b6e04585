"""What a machine has of repositories on its disk: caches that are removed when nothing needs them."""

from __future__ import annotations

import os
import shutil
import time

from project_service.domain.repositories import contents, eviction, models
from project_service.domain.repositories.local_folders import in_use
from project_service.kit import storage
from project_service.kit.db.session import db
from tests.support.git_repositories import keep_repository, repository_folder
from tests.support.sample_data import ADA, make_project


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
