"""Fixtures shared by the tests of archives."""

from __future__ import annotations

import pytest

from project_service.transfers.archive import extraction


@pytest.fixture
def take(tmp_path):
    """Extracts an archive, checks for files outside, and returns the content."""

    def run(archive, limits=None, **more):
        place, folder = tmp_path / "archive.tar.gz", tmp_path / "work" / "unpacked"
        place.write_bytes(archive)
        outside = tmp_path / "outside"
        outside.write_text("untouched")
        try:
            return extraction.unpack(place, folder, limits, **more)
        finally:
            assert {path.name for path in tmp_path.iterdir()} <= {"archive.tar.gz", "work", "outside"}
            assert outside.read_text() == "untouched"
            written = list((tmp_path / "work").rglob("*"))
            assert all(path.is_file() and not path.is_symlink() for path in written if path != folder)
            assert all(path.parent == folder for path in written if path != folder)

    return run
