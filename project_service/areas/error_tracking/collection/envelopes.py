"""Bodies of SDKs: bounded, streamed decompression, and the envelope (error collection reference, sections 6 and 7)."""

from __future__ import annotations

import base64
import binascii
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

import brotli
import zstandard

from project_service.kit import exact_json
from project_service.kit.gzip_reading import BadGzip, GzipReader

MAX_DECOMPRESSED_BYTES = 100 << 20
MAX_HEADER_BYTES = 64 << 10
MAX_REPORT_BYTES = 1 << 20
MAX_REPORTS = 10
CHUNK_BYTES = 64 << 10
BASE64_MARGIN_BYTES = 64 << 10  # line breaks
# one call for a piece of zstd returns all that it stands for, at most 128 KiB for every four bytes
ZSTD_PIECE_BYTES = 256
MAX_ZSTD_WINDOW_BYTES = 8 << 20
EVENT_ID = re.compile(r"[0-9a-f]{32}")
DEFLATE, RAW_DEFLATE = 15, -15  # the parameters of zlib
MAX_FRAMES = 10_000  # empty ones take processor time and become nothing
GZIP = "gzip"
EVENT, CLIENT_REPORT, CHECK_IN, OTHER = "event", "client_report", "check_ins", "other items"
MAX_COUNTED_ITEMS = 100  # of one kind in one envelope
PASSED_OVER = {  # kinds of items that are only counted, by what the settings page calls them
    "check_in": CHECK_IN,
    "attachment": "attachments",
    **dict.fromkeys(("feedback", "user_report"), "user feedback"),
    **dict.fromkeys(("replay_event", "replay_recording", "replay_video"), "parts of replays"),
    **dict.fromkeys(("profile", "profile_chunk"), "profiles"),
    **dict.fromkeys(("transaction", "span"), "transactions and spans"),
    **dict.fromkeys(("session", "sessions"), "sessions"),
    **dict.fromkeys(("trace_metric", "statsd", "metric_buckets"), "metrics"),
    "log": "logs",
}


class UnknownEncoding(Exception):
    """The content encoding is not supported."""


class MalformedBody(Exception):
    """A body that is not what it should be; the text says what."""


class EventTooLarge(Exception):
    """An event, or the whole decompressed body, is too large."""


@dataclass(slots=True)
class Envelope:
    """The header of an envelope and the items that are taken: at most one event, and reports of what SDKs dropped.

    Items of other kinds are only counted, by what ``PASSED_OVER`` calls them.
    """

    header: dict[str, Any]
    event: bytes | None = None
    reports: list[bytes] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)

    def pass_over(self, kind: str) -> None:
        """Count an item that is not taken."""
        name = PASSED_OVER.get(kind, OTHER)
        self.passed_over[name] = min(self.passed_over[name] + 1, MAX_COUNTED_ITEMS)


class Decompressor(Protocol):
    """Decompresses a body piece by piece."""

    @property
    def complete(self) -> bool:
        """Whether the end of the compressed data was reached."""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decompress some data into pieces of bounded size."""


class _Identity:
    complete = True

    def pieces(self, data: bytes) -> Iterator[bytes]:
        yield data


class _Deflate:
    """Deflate, with or without the header of zlib."""

    def __init__(self) -> None:
        self._object: Any = None

    @property
    def complete(self) -> bool:
        return self._object is not None and bool(self._object.eof)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self._object is None:
            has_header = len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
            self._object = zlib.decompressobj(DEFLATE if has_header else RAW_DEFLATE)
        while data and not self._object.eof:
            yield self._object.decompress(data, CHUNK_BYTES)
            data = self._object.unconsumed_tail


class _Brotli:
    def __init__(self) -> None:
        self._object = brotli.Decompressor()

    @property
    def complete(self) -> bool:
        return bool(self._object.is_finished())

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self.complete:
            return
        yield self._object.process(data, output_buffer_limit=CHUNK_BYTES)
        # more may wait in the buffers, also where more input would be accepted
        while not self.complete:
            piece = self._object.process(b"", output_buffer_limit=CHUNK_BYTES)
            if not piece and self._object.can_accept_more_data():
                return
            yield piece


class _Zstd:
    """Zstandard (RFC 8878), of one or more frames."""

    def __init__(self) -> None:
        self._frames = 0
        self._object: Any = None

    @property
    def complete(self) -> bool:
        return self._object is not None and bool(self._object.eof)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), ZSTD_PIECE_BYTES):
            piece = data[start : start + ZSTD_PIECE_BYTES]
            while piece:
                if self._object is None or self._object.eof:
                    self._begin_frame()
                yield self._object.decompress(piece)
                piece = self._object.unused_data if self._object.eof else b""

    def _begin_frame(self) -> None:
        self._frames += 1
        if self._frames > MAX_FRAMES:
            raise MalformedBody("the compressed body has too many frames")
        self._object = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES).decompressobj()


class DecompressedBody(io.RawIOBase):
    """The decompressed body of a request as a stream of at most ``max_bytes``."""

    def __init__(self, source: IO[bytes], decompressor: Decompressor, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> None:
        self._source = source
        self._decompressor = decompressor
        self._left = max_bytes
        self._chunk = memoryview(b"")
        self._chunks = self._decompress()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._chunk:
            self._chunk = memoryview(next(self._chunks, b""))
        count = min(len(buffer), len(self._chunk))
        buffer[:count] = self._chunk[:count]
        self._chunk = self._chunk[count:]
        return count

    def _decompress(self) -> Iterator[bytes]:
        while data := self._read():
            for piece in self._pieces(data):
                self._left -= len(piece)
                if self._left < 0:
                    raise EventTooLarge
                if piece:
                    yield piece
        if not self._decompressor.complete:
            raise MalformedBody("the compressed body ends early")

    def _read(self) -> bytes:
        try:
            return self._source.read(CHUNK_BYTES)
        except BadGzip as error:
            raise MalformedBody("the body cannot be decompressed") from error

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        try:
            yield from self._decompressor.pieces(data)
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise MalformedBody("the body cannot be decompressed") from error


def decompressed(source: IO[bytes], encoding: str) -> io.BufferedReader:
    """Return the body of a request with a ``Content-Encoding``, which may be empty.

    Reading raises ``MalformedBody`` and ``EventTooLarge``.
    """
    encoding = encoding.strip().lower()
    if encoding not in DECOMPRESSORS:
        raise UnknownEncoding(encoding)
    if encoding == GZIP:
        source = io.BufferedReader(GzipReader(source), CHUNK_BYTES)
    body = DecompressedBody(source, DECOMPRESSORS[encoding](), MAX_DECOMPRESSED_BYTES)
    return io.BufferedReader(body, CHUNK_BYTES)


DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {
    "": _Identity,
    "identity": _Identity,
    GZIP: _Identity,  # its reader decompresses
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}


def read_store_body(body: io.BufferedReader, max_bytes: int) -> bytes:
    """Return the body of the older endpoint: one event of at most ``max_bytes``.

    Clients from before 2018 (raven) compress it with zlib, encode that as base64, and do not say so: a body that does
    not begin with ``{`` is decoded, whatever its type (error collection reference, section 22).
    """
    encoded_bytes = max_bytes * 4 // 3 + BASE64_MARGIN_BYTES
    raw = body.read(encoded_bytes + 1)
    if len(raw) > encoded_bytes:
        raise EventTooLarge
    if not _is_object(raw):
        raw = _decoded(raw, max_bytes)
    if len(raw) > max_bytes:
        raise EventTooLarge
    return raw


def _decoded(raw: bytes, max_bytes: int) -> bytes:
    """Decode base64, zlib, or both; data that are neither are returned for the JSON parser to refuse."""
    try:
        data = base64.b64decode(b"".join(raw.split()), validate=True)
    except binascii.Error:
        data = raw
    if not data or _is_object(data):
        return data
    try:
        return io.BufferedReader(DecompressedBody(io.BytesIO(data), _Deflate(), max_bytes)).read()
    except MalformedBody:
        return raw


def _is_object(raw: bytes) -> bool:
    return raw[:MAX_HEADER_BYTES].lstrip().startswith(b"{")


def read_header(body: io.BufferedReader) -> dict[str, Any]:
    """Read the header of an envelope, its first line."""
    line = body.readline(MAX_HEADER_BYTES)
    if not line.strip():
        raise MalformedBody("the envelope is empty")
    return _read_object(line, "the envelope header")


def read_items(header: dict[str, Any], body: io.BufferedReader, max_event_bytes: int) -> Envelope:
    """Read the items behind the header of an envelope; those that are not taken are passed over."""
    envelope = Envelope(header)
    while line := body.readline(MAX_HEADER_BYTES):
        if not line.strip():
            continue
        item = _read_object(line, "an item header")
        kind = item.get("type")
        if not isinstance(kind, str):
            raise MalformedBody("an item has no type")
        if not line.endswith(b"\n"):
            raise MalformedBody("an item has no payload")
        limit = {EVENT: max_event_bytes, CLIENT_REPORT: MAX_REPORT_BYTES}.get(kind)
        payload = _read_payload(body, item, limit)
        if kind == EVENT:
            if payload is None:
                raise EventTooLarge
            if envelope.event is not None:
                raise MalformedBody("there is more than one event")
            envelope.event = payload
        elif kind == CLIENT_REPORT and payload is not None and len(envelope.reports) < MAX_REPORTS:
            envelope.reports.append(payload)
        elif kind != CLIENT_REPORT:
            envelope.pass_over(kind)
    return envelope


def read_event_id(value: Any) -> str | None:
    """Return the id of an event as 32 hexadecimal digits, ``None`` if absent."""
    if value is None:
        return None
    event_id = value.replace("-", "").lower() if isinstance(value, str) and len(value) <= 40 else ""
    if not EVENT_ID.fullmatch(event_id):
        raise MalformedBody("the event_id is invalid")
    return event_id


def read_json(raw: bytes) -> Any:
    """Parse JSON as SDKs send it, with control characters and ``NaN``; raise ``ValueError`` if it is none."""
    if exact_json.has_too_many_values(raw):
        raise ValueError("too many values")
    return exact_json.loads(raw, lenient=True, allow_nan=True)


def _read_payload(body: io.BufferedReader, item: dict[str, Any], limit: int | None) -> bytes | None:
    """Read a payload; ``None`` if it is not taken (no ``limit``) or longer than the limit."""
    if "length" not in item:
        return _read_line(body, limit)
    length = item["length"]
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise MalformedBody("the length of an item is no number")
    if limit is not None and length <= limit:
        payload: bytes | None = body.read(length)
        missing = length - len(payload or b"")
    else:
        payload, missing = None, _skip(body, length)
    if missing:
        raise MalformedBody("an item is shorter than its length")
    if body.read(1) not in (b"", b"\n"):
        raise MalformedBody("an item is longer than its length")
    return payload


def _read_line(body: io.BufferedReader, limit: int | None) -> bytes | None:
    """Read up to the next line feed or the end."""
    parts: list[bytes] = []
    size = 0
    line = body.readline(CHUNK_BYTES)
    if not line:
        raise MalformedBody("an item has no payload")
    while line:
        size += len(line)
        if limit is not None and size <= limit + 1:
            parts.append(line)
        if line.endswith(b"\n"):
            break
        line = body.readline(CHUNK_BYTES)
    payload = b"".join(parts).removesuffix(b"\n")
    return None if limit is None or size > limit + 1 or len(payload) > limit else payload


def _skip(body: io.BufferedReader, length: int) -> int:
    """Pass over bytes; return how many are missing."""
    while length > 0 and (data := body.read(min(length, CHUNK_BYTES))):
        length -= len(data)
    return length


def _read_object(raw: bytes, what: str) -> dict[str, Any]:
    try:
        header = read_json(raw)
    except ValueError as error:
        raise MalformedBody(f"{what} is not JSON") from error
    if not isinstance(header, dict):
        raise MalformedBody(f"{what} is no object")
    return header
