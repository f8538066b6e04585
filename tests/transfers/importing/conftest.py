"""Fixtures shared by the tests of imports."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _empty_storage(empty_storage):
    """Begin each test without stored files."""
