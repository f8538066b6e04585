"""Archives as they are written: one stream of gzip, whoever reads it."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import tarfile
import threading
import time
import tracemalloc
import zlib

import pytest

from project_service.transfers.archive import extraction
from project_service.transfers.archive import writer as packing_of_archives
from project_service.transfers.archive.writer import Press, packing, press

ROWS = b"".join(b'{"iid":%d,"title":"The till is open"}\n' % number for number in range(60_000))
BUNDLE = os.urandom(3_000_000)  # takes no compression
MIB = 1 << 20
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
        pieces = [*press([ROWS[:70_000], ROWS[70_000:90_000]]), *press([]), *press([ROWS[90_000:]])]
        packer.add_pieces("tree/project/again.ndjson", tmp_path / "piece", iter(pieces))
        packer.add_pieces("tree/project/nothing.ndjson", tmp_path / "piece", press([]))
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
        "./tree/project/again.ndjson": ROWS,
        "./tree/project/nothing.ndjson": b"",
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


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 7])
def test_what_was_packed_is_read_whole_however_late_its_last_block_comes(size, tmp_path, monkeypatch):
    content = (b"0123456789" * (size // 10 + 1))[:size]
    path = tmp_path / "some.gz"
    path.write_bytes(gzip.compress(content, 1))
    put = extraction.Unpressed._put

    def late(reader, block):
        time.sleep(0.03)
        put(reader, block)

    monkeypatch.setattr(extraction.Unpressed, "_put", late)
    with extraction._gunzip(path) as stream:
        assert stream.read() == content


@pytest.mark.parametrize("damage", [lambda packed: packed[:-20], lambda packed: packed[:50] + b"xxx" + packed[53:]])
def test_a_damaged_stream_raises_and_leaves_no_thread_behind(damage, tmp_path):
    path = tmp_path / "some.gz"
    path.write_bytes(damage(gzip.compress(os.urandom(3 * MIB), 1)))

    with pytest.raises((EOFError, OSError, zlib.error, extraction.UNREADABLE)), extraction._gunzip(path) as stream:
        stream.read()

    assert not [thread for thread in threading.enumerate() if thread.name == "unpress"]


def test_a_stream_that_is_left_early_leaves_no_thread_behind(tmp_path):
    path = tmp_path / "some.gz"
    path.write_bytes(gzip.compress(bytes(50 * MIB), 1))

    with extraction._gunzip(path) as stream:
        assert stream.read(10) == bytes(10)

    assert not [thread for thread in threading.enumerate() if thread.name == "unpress"]


def test_no_more_than_some_pieces_of_large_blocks_wait_for_a_slow_disk(tmp_path):
    """What waits is counted in pieces of one size, or the largest rows decide how much memory is taken."""
    row = memoryview(os.urandom(8 * MIB))
    goes_on = threading.Event()

    class Slow(io.BytesIO):
        def write(self, block):
            goes_on.wait(30)
            return super().write(block)

    press = Press(Slow())
    tracemalloc.start()
    writer = threading.Thread(target=lambda: [press.write(row) for _ in range(4)])
    try:
        writer.start()
        writer.join(1)
        assert writer.is_alive()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        goes_on.set()
        writer.join()
        press.cut()
        press.close()

    assert peak < 8 * MIB
    assert press.size == 32 * MIB


def test_pieces_are_small_whatever_the_lines(monkeypatch):
    monkeypatch.setattr(packing_of_archives, "BYTES_OF_PIECE", 2 * MIB)
    lines = [os.urandom(9 * MIB), b"x", b"", os.urandom(MIB)]

    pieces = list(press(lines))

    assert max(len(piece.pressed) for piece in pieces) < 4 * MIB
    assert ([piece.is_last for piece in pieces], sum(piece.lines for piece in pieces)) == ([False] * 3 + [True], 4)
    assert zlib.decompressobj(-15).decompress(b"".join(piece.pressed for piece in pieces)) == b"".join(lines)
    assert [zlib.crc32(zlib.decompressobj(-15).decompress(piece.pressed)) for piece in pieces] == [
        piece.crc for piece in pieces
    ]
