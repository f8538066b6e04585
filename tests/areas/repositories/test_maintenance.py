"""Periodic jobs on repositories: merging of packs, removal of unused objects."""

from __future__ import annotations

import datetime as dt
import os
import time

import pytest
from sqlalchemy import select, update

from project_service.domain.repositories import git, maintenance, models, packs
from project_service.domain.repositories.models import RepositoryPack
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.storage import storage
from tests.support.git_repositories import repository_folder
from tests.support.sample_data import MAX

SHOP = "acme/shop"
pytestmark = pytest.mark.both_databases


def live_packs(project):
    with unit_of_work(write=False):
        found = models.repository_of(project)
        live = RepositoryPack.repository_id == found.id, RepositoryPack.replaced_at.is_(None)
        return db.session.scalars(select(RepositoryPack).where(*live)).all()


def current_repository(project):
    with unit_of_work(write=False):
        return models.repository_of(project)


@pytest.fixture
def pushed(git_of, people, project):
    """A client that has pushed three commits with a pack each."""
    client = git_of(people[MAX])
    for number in range(3):
        client.commit(f"Commit {number}", **{f"file{number}": f"{number}\n"})
        client.push(SHOP, "main")
    return client


def test_packs_are_merged_with_unreachable_objects(pushed, project, people, git_of, monkeypatch):
    monkeypatch.setattr(maintenance, "MAX_LIVE_PACKS", 2)
    pushed.push(SHOP, "main:topic")
    pushed.commit("Lost")
    lost = pushed.output("rev-parse", "main")
    pushed.push(SHOP, "main:topic")
    pushed.push(SHOP, ":topic")
    size = current_repository(project).size

    maintenance.combine_packs()

    [pack] = live_packs(project)
    assert current_repository(project).size == pack.size < size
    with unit_of_work(write=False), repository_folder(project) as folder:
        assert git.git("cat-file", "-t", lost, folder=folder) == b"commit\n"
        assert git.run("fsck", "--strict", folder=folder).returncode == 0
        assert len(list((folder.parent.parent / "objects/pack").glob("*.pack"))) in (1, 5)
    pushed.commit("After")
    pushed.push(SHOP, "main")


def test_replaced_packs_and_orphaned_objects_are_removed_after_a_day(pushed, project):
    maintenance.combine_packs_of(current_repository(project).id)
    orphan = f"{packs.folder_of_packs(project.id)}/pack-{'0' * 40}.pack"
    fresh = f"{packs.folder_of_packs(project.id)}/pack-{'1' * 40}.pack"
    for name in (orphan, fresh):
        with storage().write(name) as file:
            file.write(b"PACK")
    yesterday = time.time() - 86400 * 1.1
    os.utime(storage().path(orphan), (yesterday, yesterday))
    maintenance.remove_unused_packs()
    assert len(storage().names(packs.folder_of_packs(project.id))) == 2 * 4 + 1
    with unit_of_work():
        replaced = RepositoryPack.replaced_at.is_not(None)
        db.session.execute(
            update(RepositoryPack).where(replaced).values(replaced_at=clock.now() - dt.timedelta(days=2))
        )

    maintenance.remove_unused_packs()

    [pack] = live_packs(project)
    assert set(storage().names(packs.folder_of_packs(project.id))) == {
        f"{pack.object_name}.idx",
        f"{pack.object_name}.pack",
        fresh,
    }


def test_large_packs_are_not_rewritten():
    def combined(*sizes):
        return [pack.size for pack in maintenance.packs_to_combine([RepositoryPack(size=size) for size in sizes])]

    assert combined(1, 1000, 2, 100, 2) == [2, 2, 1]
    assert combined(3, 3, 3) == [3, 3, 3]
    assert combined(9, 1) == []
