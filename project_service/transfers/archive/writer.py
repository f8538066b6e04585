"""Writing an archive: a gzip-compressed tar whose members stand as the format has them (section 1).

The head of a member tells its size, which nobody knows of the rows of a relation before all are written. So these are
compressed while they are made, into a file of their own, and this piece of a deflate stream is put behind the head
afterwards: what is written twice is small, and one processor compresses while another reads rows.
"""

from __future__ import annotations

import io
import queue
import shutil
import struct
import tarfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from zlib_ng import zlib_ng

LEVEL = 4  # a tenth larger than what gzip makes, in a quarter of the time
BLOCK = 1 << 20
BYTES_OF_PIECE = 4 << 20  # compressed, about
WAITING = 4  # blocks, none larger than the others, that are made and not compressed yet
LAST_BLOCK = b"\x03\x00"  # of a deflate stream, with nothing in it
GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no name, no time, an unknown system


class Press(io.RawIOBase):
    """Compresses what is written to it, in a thread; ``crc`` and ``size`` are those of what was written."""

    def __init__(self, sink: IO[bytes]) -> None:
        self.crc = 0
        self.size = 0
        self._sink = sink
        self._compressor = _compressor()
        self._blocks: queue.Queue[bytes | threading.Event | None] = queue.Queue(WAITING)
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="press", daemon=True)
        self._thread.start()

    def writable(self) -> bool:
        """It is written to."""
        return True

    def write(self, block: Any) -> int:
        """Take a block, of which no more than some pieces wait; raises what an earlier one met."""
        self._raise_failure()
        with memoryview(block) as whole:
            for start in range(0, len(whole), BLOCK):
                self._blocks.put(bytes(whole[start : start + BLOCK]))
            return len(whole)

    def cut(self) -> None:
        """Wait until everything is compressed; what follows refers to nothing before."""
        done = threading.Event()
        self._blocks.put(done)
        done.wait()
        self._raise_failure()

    def close(self) -> None:
        """End the thread."""
        if not self.closed:
            self._blocks.put(None)
            self._thread.join()
        super().close()

    def _work(self) -> None:
        while (block := self._blocks.get()) is not None:
            try:
                if self._failure is None:
                    self._compress(block)
            except Exception as error:  # noqa: BLE001  # whatever it is: whoever writes next, or cuts, hears of it
                self._failure = error
            if isinstance(block, threading.Event):
                block.set()

    def _compress(self, block: bytes | threading.Event) -> None:
        if isinstance(block, threading.Event):
            self._sink.write(self._compressor.flush(zlib_ng.Z_FULL_FLUSH))
            return
        self.crc = zlib_ng.crc32(block, self.crc)
        self.size += len(block)
        self._sink.write(self._compressor.compress(block))

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


class Piece(NamedTuple):
    """A part of a member, compressed so that it refers to nothing before; ``crc`` and ``size`` are of what it was.

    ``lines`` is how many lines end in it.
    """

    pressed: bytes
    crc: int
    size: int
    lines: int
    is_last: bool


def press(lines: Iterable[bytes]) -> Iterator[Piece]:
    """Compress lines here and now, as one piece or as many as it takes that none is large; the last may be empty."""
    compressor, crc, size, ended = _compressor(), 0, 0, 0
    pressed: list[bytes] = []
    length = 0
    for line in lines:
        with memoryview(line) as whole:
            for start in range(0, len(whole), BLOCK):
                block = whole[start : start + BLOCK]
                crc, size = zlib_ng.crc32(block, crc), size + len(block)
                pressed.append(compressor.compress(block))
                length += len(pressed[-1])
                if length > BYTES_OF_PIECE:
                    yield Piece(_ended(pressed, compressor), crc, size, ended, is_last=False)
                    compressor, crc, size, ended = _compressor(), 0, 0, 0
                    length = 0
        ended += 1
    yield Piece(_ended(pressed, compressor), crc, size, ended, is_last=True)


def _ended(pressed: list[bytes], compressor: Any) -> bytes:
    """What was compressed, whole; the list is empty then."""
    pressed.append(compressor.flush(zlib_ng.Z_FULL_FLUSH))
    whole = b"".join(pressed)
    pressed.clear()
    return whole


class Packer:
    """Adds members to an archive."""

    def __init__(self, target: IO[bytes]) -> None:
        self.now = int(time.time())
        self._target = target
        self._target.write(GZIP_HEAD)
        self._press = Press(target)
        self._crc = self._size = 0  # of all that stands before what the press has taken

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add a small member."""
        self.add_stream(name, io.BytesIO(content), len(content))

    def add_file(self, name: str, place: Path) -> None:
        """Add a file of this machine."""
        with place.open("rb") as file:
            self.add_stream(name, file, place.stat().st_size)

    def add_stream(self, name: str, file: IO[bytes], size: int) -> None:
        """Add what a file gives, which has to be ``size`` bytes."""
        self._press.write(self._head(name, size))
        left = size
        while left:
            block = file.read(min(BLOCK, left))
            if not block:
                raise OSError(f"{name} is shorter than {size} bytes")
            self._press.write(block)
            left -= len(block)
        self._press.write(_padding(size))

    def add_folder(self, name: str) -> None:
        """Add a folder."""
        self._press.write(self._head(f"{name}/", 0, type=tarfile.DIRTYPE, mode=0o755))

    @contextmanager
    def made(self, name: str, place: Path) -> Iterator[IO[bytes]]:
        """Add a member that is written to the file this gives; at ``place`` it waits for its head."""
        with place.open("w+b") as piece:
            with Press(piece) as press:
                file = io.BufferedWriter(press, BLOCK)
                yield file
                file.flush()
                press.cut()
            self._put(name, piece, press.crc, press.size)
        place.unlink()

    def add_pieces(self, name: str, place: Path, pieces: Iterable[Piece]) -> None:
        """Add a member that was compressed in pieces, wherever; at ``place`` these wait for its head."""
        crc = size = 0
        with place.open("w+b") as file:
            for piece in pieces:
                file.write(piece.pressed)
                crc = zlib_ng.crc32_combine(crc, piece.crc, piece.size)
                size += piece.size
            self._put(name, file, crc, size)
        place.unlink()

    def _put(self, name: str, pressed: IO[bytes], crc: int, size: int) -> None:
        """Have what was compressed follow its head."""
        self._press.write(self._head(name, size))
        self._end_press()
        pressed.seek(0)
        shutil.copyfileobj(pressed, self._target, BLOCK)
        self._count(crc, size)
        self._press = Press(self._target)
        self._press.write(_padding(size))

    def finish(self) -> None:
        """End the tar, and the stream around it."""
        self._press.write(bytes(2 * tarfile.BLOCKSIZE))
        self._end_press()
        self._target.write(LAST_BLOCK + struct.pack("<LL", self._crc, self._size & 0xFFFFFFFF))

    def abandon(self) -> None:
        """End the thread; what was written is no archive."""
        self._press.close()

    def _end_press(self) -> None:
        self._press.cut()
        self._press.close()
        self._count(self._press.crc, self._press.size)

    def _count(self, crc: int, size: int) -> None:
        self._crc = zlib_ng.crc32_combine(self._crc, crc, size)
        self._size += size

    def _head(self, name: str, size: int, **fields: Any) -> bytes:
        member = tarfile.TarInfo(f"./{name}")
        member.size, member.mtime, member.mode = size, self.now, 0o644
        for field, value in fields.items():
            setattr(member, field, value)
        return member.tobuf(tarfile.GNU_FORMAT)


def _compressor() -> Any:
    return zlib_ng.compressobj(LEVEL, zlib_ng.DEFLATED, -zlib_ng.MAX_WBITS)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


@contextmanager
def packing(target: IO[bytes]) -> Iterator[Packer]:
    """Write an archive into an open file."""
    packer = Packer(target)
    try:
        yield packer
        packer.finish()
    finally:
        packer.abandon()
