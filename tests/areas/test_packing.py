"""Archives as they are written: one stream of gzip, whoever reads it."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import threading
import zlib

import pytest

from project_service.transfers.packing import packing

ROWS = b"".join(b'{"iid":%d,"title":"The till is open"}\n' % number for number in range(60_000))
BUNDLE = os.urandom(3_000_000)  # takes no compression
LONG = f"uploads/{'a' * 120}/file.txt"


@pytest.fixture
def archive(tmp_path):
    """An archive with members of each way in."""
    path = tmp_path / "archive.tar.gz"
    with path.open("wb") as file, packing(file) as packer:
        packer.add_bytes("VERSION", b"0.2.4")
        with packer.made("tree/project/issues.ndjson", tmp_path / "piece") as rows:
            for start in range(0, len(ROWS), 3001):
                rows.write(ROWS[start : start + 3001])
        with packer.made("tree/project/empty.ndjson", tmp_path / "piece"):
            pass
        packer.add_folder("snippets")
        packer.add_stream("project.bundle", io.BytesIO(BUNDLE), len(BUNDLE))
        packer.add_bytes(LONG, b"x")
    assert not (tmp_path / "piece").exists()
    return path


def test_members_come_out_as_they_went_in(archive):
    with tarfile.open(archive, "r:gz") as tar:
        found = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}

    assert found == {
        "./VERSION": b"0.2.4",
        "./tree/project/issues.ndjson": ROWS,
        "./tree/project/empty.ndjson": b"",
        "./project.bundle": BUNDLE,
        f"./{LONG}": b"x",
    }


def test_programs_of_the_system_find_nothing_wrong(archive):
    listed = subprocess.run(["tar", "tzf", archive], check=True, capture_output=True, text=True)
    subprocess.run(["gzip", "-t", archive], check=True)

    assert (listed.stderr, listed.stdout.splitlines()[:2]) == ("", ["./VERSION", "./tree/project/issues.ndjson"])


def test_it_is_one_member_of_gzip(archive):
    """Some readers stop at the end of the first."""
    stream = zlib.decompressobj(wbits=31)
    stream.decompress(archive.read_bytes())

    assert (stream.eof, stream.unused_data) == (True, b"")


def test_it_is_about_as_small_as_it_can_be(archive):
    assert archive.stat().st_size < 1.2 * (len(zlib.compress(ROWS)) + len(BUNDLE)) + 2000


class Full(io.BytesIO):
    """A disk without room."""

    def write(self, block):
        if self.tell() + len(block) > 100_000:
            raise OSError(28, "No space left on device")
        return super().write(block)


def test_a_full_disk_is_told():
    with pytest.raises(OSError, match="No space left"), packing(Full()) as packer:
        packer.add_stream("project.bundle", io.BytesIO(BUNDLE), len(BUNDLE))


def test_a_file_that_became_shorter_is_told():
    with pytest.raises(OSError, match="shorter than 10 bytes"), packing(io.BytesIO()) as packer:
        packer.add_stream("project.bundle", io.BytesIO(b"short"), 10)


def test_rows_that_cannot_be_made_leave_no_thread_behind(tmp_path):
    def make():
        with packing(io.BytesIO()) as packer, packer.made("tree/project/issues.ndjson", tmp_path / "piece"):
            raise LookupError("the database has gone")

    with pytest.raises(LookupError):
        make()

    assert not [thread for thread in threading.enumerate() if thread.name == "press"]
