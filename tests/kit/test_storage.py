"""Files in a directory and in an object store."""

from __future__ import annotations

import errno
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from project_service.kit.storage import Storage, open_storage
from project_service.settings import Settings


@pytest.fixture
def storage(tmp_path):
    """A storage in a directory."""
    return Storage.at(f"file://{tmp_path}/storage")


def put(storage, name, content):
    with storage.write(name) as file:
        file.write(content)


def test_objects_are_written_read_measured_and_removed(storage):
    put(storage, "uploads/1/archive.tar.gz", b"some bytes")

    with storage.open("uploads/1/archive.tar.gz") as file:
        read = file.read()
    found = (storage.exists("uploads/1/archive.tar.gz"), storage.size("uploads/1/archive.tar.gz"))
    storage.delete("uploads/1/archive.tar.gz")
    storage.delete("uploads/1/archive.tar.gz")

    assert (read, found) == (b"some bytes", (True, 10))
    assert not storage.exists("uploads/1/archive.tar.gz")


def test_an_object_appears_only_when_complete(storage):
    with storage.write("a/b") as file:
        file.write(b"first half, ")
        file.flush()
        early = storage.exists("a/b")
        file.write(b"second half")

    with storage.open("a/b") as read:
        assert (early, read.read()) == (False, b"first half, second half")


def test_a_failed_write_leaves_no_object(storage):
    put(storage, "a/old", b"as it was")

    for name in ("a/new", "a/old"):
        with pytest.raises(LookupError):
            write_half(storage, name)

    with storage.open("a/old") as file:
        assert file.read() == b"as it was"
    assert not storage.exists("a/new")
    assert [Path(name).name for name in storage.filesystem.ls(storage.path("a"), detail=False)] == ["old"]


def write_half(storage, name):
    with storage.write(name) as file:
        file.write(b"half")
        raise LookupError


@pytest.fixture(params=["links", "no links"])
def disk(request, monkeypatch):
    """A disk where a file can have a second name, and one where it cannot."""
    if request.param == "no links":

        def refuse(*_paths):
            raise OSError(errno.EXDEV, "Invalid cross-device link")

        monkeypatch.setattr(os, "link", refuse)
    return request.param


def inode(path):
    return Path(path).stat().st_ino


def test_a_file_is_stored_and_opened_locally_with_few_copies(disk, storage, tmp_path):
    place, lent = tmp_path / "made", tmp_path / "lent"
    place.write_bytes(b"some bytes")

    storage.store_file(place, "a/b")
    storage.provide_file("a/b", lent)
    shared = {inode(storage.path("a/b")), inode(lent)} == {inode(place)}
    place.unlink()
    lent.unlink()

    with storage.open("a/b") as file:
        assert (file.read(), shared) == (b"some bytes", disk == "links")


@pytest.mark.usefixtures("disk")
def test_storing_a_file_replaces_the_old_object_without_leftovers(storage, tmp_path):
    put(storage, "a/b", b"as it was")
    place = tmp_path / "made"
    place.write_bytes(b"as it is")

    for _ in range(2):  # the second time both are names of one file
        storage.store_file(place, "a/b")

    with storage.open("a/b") as file:
        assert file.read() == b"as it is"
    assert storage.names("a") == ["a/b"]
    assert place.read_bytes() == b"as it is"


@pytest.mark.usefixtures("disk")
def test_missing_files_can_neither_be_stored_nor_opened(storage, tmp_path):
    with pytest.raises(FileNotFoundError):
        storage.store_file(tmp_path / "missing", "a/b")
    with pytest.raises(FileNotFoundError):
        storage.provide_file("missing", tmp_path / "lent")

    assert storage.names("a") == []


def folders(storage):
    return sorted(str(place.relative_to(storage.root)) for place in Path(storage.root).rglob("*") if place.is_dir())


def test_deleting_the_last_object_removes_its_folder(storage):
    for name in ("projects/1/files/a", "projects/1/files/b", "projects/1/exports/c", "projects/2/files/a"):
        put(storage, name, b"content")

    storage.delete("projects/1/files/a")
    some = folders(storage)
    storage.delete("projects/1/files/b")
    storage.delete("projects/1/exports/c")
    storage.delete("projects/1/exports/c")

    assert some == [
        "projects",
        "projects/1",
        "projects/1/exports",
        "projects/1/files",
        "projects/2",
        "projects/2/files",
    ]
    assert folders(storage) == ["projects", "projects/2", "projects/2/files"]


@pytest.mark.usefixtures("disk")
def test_a_write_during_the_removal_of_its_folder_succeeds(storage, tmp_path, monkeypatch):
    real, removed = os.makedirs, []

    def made_and_removed(path, *arguments, **options):
        real(path, *arguments, **options)
        if len(removed) < 3 and not os.listdir(path):
            removed.append(path)
            os.rmdir(path)

    monkeypatch.setattr(os, "makedirs", made_and_removed)
    place = tmp_path / "made"
    place.write_bytes(b"kept")

    storage.store_file(place, "projects/1/files/kept")
    put(storage, "projects/1/exports/written", b"written")

    assert len(removed) == 3
    assert storage.names("projects/1") == ["projects/1/exports/written", "projects/1/files/kept"]


def test_concurrent_writes_and_deletions_in_a_folder_succeed(storage, tmp_path):
    def come_and_go(writer):
        place = tmp_path / f"made{writer}"
        place.write_bytes(b"content")
        for _ in range(200):
            put(storage, f"projects/1/files/{writer}", b"content")
            storage.delete(f"projects/1/files/{writer}")
            storage.store_file(place, f"projects/1/files/{writer}")
            storage.delete(f"projects/1/files/{writer}")

    with ThreadPoolExecutor(4) as threads:
        for one in [threads.submit(come_and_go, writer) for writer in range(4)]:
            one.result()

    assert folders(storage) == ["projects"]


def test_a_missing_object_cannot_be_read(storage):
    with pytest.raises(FileNotFoundError):
        storage.open("missing")


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../outside", "a/../../outside", "a/..", "..", "", ".", "a//b", "a/./b"]
)
def test_an_invalid_object_name_is_refused(name, storage):
    for act in (storage.open, storage.exists, storage.size, storage.delete, lambda name: put(storage, name, b"")):
        with pytest.raises(ValueError, match="is not a name in the storage"):
            act(name)


def test_dots_inside_an_object_name_are_accepted(storage):
    put(storage, "v1..2/.hidden", b"x")

    assert storage.exists("v1..2/.hidden")


def test_the_storage_check_leaves_no_object(storage):
    storage.check()

    assert storage.filesystem.find(storage.root) == []


def test_a_read_only_storage_fails_the_check(tmp_path):
    (tmp_path / "storage").write_text("a file in the place of the directory")

    with pytest.raises(OSError, match="storage"):
        Storage.at(f"file://{tmp_path}/storage").check()


def test_a_data_directory_may_have_any_name(tmp_path):
    directory = tmp_path / "with blank, 100% and ünïcödé"
    settings = Settings.from_environment({"PROJECT_SERVICE_DATA_DIR": str(directory)})

    put(open_storage(settings), "a", b"x")

    assert (directory / "storage" / "a").read_bytes() == b"x"


def test_an_object_store_works_in_a_forked_process():
    storage = Storage.at("s3://bucket/prefix")
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    assert storage.filesystem.loop.is_running()

    process = context.Process(target=lambda: found.put(storage.filesystem.loop.is_running()))
    process.start()
    process.join(30)

    assert process.exitcode == 0
    assert found.get()


def test_object_names_in_a_bucket_start_with_the_prefix():
    assert Storage.at("s3://bucket/prefix").path("a/b") == "bucket/prefix/a/b"
    assert Storage.at("s3://bucket").path("a/b") == "bucket/a/b"
