"""Reading of gzip as a stream."""

from __future__ import annotations

import gzip
import io
import time
import tracemalloc

import pytest

from project_service.kit.gzip_reading import MAX_MEMBERS, BadGzip, GzipReader

TEXT = bytes(range(256)) * 4000


def read(raw, size=-1):
    return io.BufferedReader(GzipReader(io.BytesIO(raw))).read(size)


@pytest.mark.parametrize("parts", [[TEXT], [b""], [TEXT[:7], b"", TEXT, b"x"], [b"a"] * 5000])
def test_all_members_are_read(parts):
    raw = b"".join(map(gzip.compress, parts))

    assert read(raw) == read(raw + b"\0" * 100_000) == b"".join(parts)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"plain",
        gzip.compress(TEXT)[:-1],
        gzip.compress(TEXT)[:-8] + b"checksum",
        gzip.compress(TEXT) + b"behind",
        gzip.compress(TEXT) + gzip.compress(TEXT)[:20],
    ],
)
def test_invalid_data_are_refused(raw):
    with pytest.raises(BadGzip):
        read(raw)


def test_empty_members_are_limited():
    raw = gzip.compress(b"") * (MAX_MEMBERS + 1)
    start = time.process_time()

    with pytest.raises(BadGzip, match="members"):
        read(raw)
    assert time.process_time() - start < 2


def test_a_small_body_that_becomes_large_takes_no_memory():
    raw = gzip.compress(bytes(100 << 20))
    tracemalloc.start()
    try:
        reader = io.BufferedReader(GzipReader(io.BytesIO(raw)))
        while reader.read(1 << 16):
            pass
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
