"""Written archives: one gzip stream for every reader."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import threading
import zlib
from pathlib import Path

import pytest

from project_service.transfers.archive.tar_reader import LimitedTarFile, LimitedTarInfo
from project_service.transfers.archive.writer import open_archive

ROWS = b"".join(b'{"iid":%d,"title":"The till is open"}\n' % number for number in range(60_000))
BUNDLE = os.urandom(3_000_000)  # takes no compression
MIB = 1 << 20
LONG = f"uploads/{'a' * 120}/file.txt"


@pytest.fixture
def archive(tmp_path):
    """An archive with members of each way in."""
    path = tmp_path / "archive.tar.gz"
    with open_archive(path) as writer:
        writer.add_bytes("VERSION", b"0.2.4")
        writer.add_stream("tree/project/issues.ndjson", io.BytesIO(ROWS), len(ROWS))
        writer.add_bytes("tree/project/empty.ndjson", b"")
        writer.add_directory("snippets")
        writer.add_stream("project.bundle", io.BytesIO(BUNDLE), len(BUNDLE))
        writer.add_bytes(LONG, b"x")
    return path


def test_members_are_read_back_unchanged(archive):
    with tarfile.open(archive, "r:gz") as tar:
        found = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}

    assert found == {
        "./VERSION": b"0.2.4",
        "./tree/project/issues.ndjson": ROWS,
        "./tree/project/empty.ndjson": b"",
        "./project.bundle": BUNDLE,
        f"./{LONG}": b"x",
    }


def test_tar_and_gzip_accept_the_archive(archive):
    listed = subprocess.run(["tar", "tzf", archive], check=True, capture_output=True, text=True)
    subprocess.run(["gzip", "-t", archive], check=True)

    assert (listed.stderr, listed.stdout.splitlines()[:2]) == ("", ["./VERSION", "./tree/project/issues.ndjson"])


def test_an_archive_is_one_gzip_member(archive):
    """Some readers stop at the end of the first."""
    stream = zlib.decompressobj(wbits=31)
    stream.decompress(archive.read_bytes())

    assert (stream.eof, stream.unused_data) == (True, b"")


def test_the_archive_is_well_compressed(archive):
    assert archive.stat().st_size < 1.2 * (len(zlib.compress(ROWS)) + len(BUNDLE)) + 2000


def test_a_full_disk_raises_its_error_and_leaves_no_thread_behind():
    threads = threading.active_count()
    with pytest.raises(OSError, match="No space left"), open_archive(Path("/dev/full")) as writer:
        writer.add_stream("project.bundle", io.BytesIO(BUNDLE), len(BUNDLE))

    assert threading.active_count() == threads


def test_a_file_that_became_shorter_is_an_error(tmp_path):
    with pytest.raises(OSError, match="unexpected end of data"), open_archive(tmp_path / "archive.tar.gz") as writer:
        writer.add_stream("project.bundle", io.BytesIO(b"short"), 10)


def test_an_archive_that_was_not_completed_is_damaged_and_leaves_no_thread_behind(tmp_path):
    path, threads = tmp_path / "archive.tar.gz", threading.active_count()

    def write():
        with open_archive(path) as writer:
            writer.add_bytes("VERSION", b"0.2.4")
            raise LookupError("the database is gone")

    with pytest.raises(LookupError):
        write()

    assert threading.active_count() == threads


def test_tarfile_calls_the_hook_that_limits_headers(archive, monkeypatch):
    """``_proc_member`` is the hook of ``tarfile`` for subclasses; it is not part of its documentation."""
    calls = []
    hook = LimitedTarInfo._proc_member
    monkeypatch.setattr(LimitedTarInfo, "_proc_member", lambda self, tar: calls.append(self.name) or hook(self, tar))

    with LimitedTarFile.open(archive, "r:gz", tarinfo=LimitedTarInfo) as tar:
        names = tar.getnames()

    assert (len(names), set(names) - {f"./{LONG}"} <= set(calls)) == (6, True)
