"""The framing of git's protocol: lines with their length in front (git, gitprotocol-common)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

MAX_LINE_BYTES = 65520
HEADER_BYTES = 4
FLUSH = b"0000"
PACK_DATA, PROGRESS = 1, 2  # side bands
MAX_BAND_BYTES = MAX_LINE_BYTES - HEADER_BYTES - 1


class BadLine(Exception):
    """Bytes that are no pkt-line."""


def encode_line(data: bytes | str) -> bytes:
    """Return a pkt-line."""
    raw = data.encode() if isinstance(data, str) else data
    return b"%04x%s" % (len(raw) + HEADER_BYTES, raw)


def encode_band(band: int, data: bytes) -> bytes:
    """Return pkt-lines of a side band."""
    parts = (data[start : start + MAX_BAND_BYTES] for start in range(0, len(data), MAX_BAND_BYTES))
    return b"".join(encode_line(bytes([band]) + part) for part in parts)


def read_lines(stream: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    """Generate the lines up to a flush packet; raises ``BadLine``, also when they are longer together than allowed."""
    total = 0
    while (line := read_line(stream)) is not None:
        total += len(line) + HEADER_BYTES
        if total > max_bytes:
            raise BadLine("too many lines")
        yield line


def read_line(stream: IO[bytes]) -> bytes | None:
    """Return the next line, ``None`` for a flush packet; raises ``BadLine``."""
    header = read_exactly(stream, HEADER_BYTES)
    if not all(byte in b"0123456789abcdefABCDEF" for byte in header):
        raise BadLine("the length of a line is no number")
    length = int(header, 16)
    if length == 0:
        return None
    if not HEADER_BYTES <= length <= MAX_LINE_BYTES:
        raise BadLine("the length of a line is not valid")
    return read_exactly(stream, length - HEADER_BYTES)


def read_exactly(stream: IO[bytes], count: int) -> bytes:
    """Read a number of bytes; raises ``BadLine`` if there are fewer."""
    content = b""
    while len(content) < count:
        data = stream.read(count - len(content))
        if not data:
            raise BadLine("the data ends too early")
        content += data
    return content
