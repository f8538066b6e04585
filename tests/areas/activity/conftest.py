"""Fixtures shared by the tests of feeds of events."""

from __future__ import annotations

import contextvars

import pytest
from flask.testing import FlaskClient

from tests.support.sample_data import (
    make_group,
    make_project,
)


@pytest.fixture(autouse=True)
def _own_contexts(monkeypatch):
    # a request in the context of the test would see the ``g`` of the previous one
    send = FlaskClient.open
    monkeypatch.setattr(FlaskClient, "open", lambda *args, **options: contextvars.Context().run(send, *args, **options))


@pytest.fixture
def shop(people):
    """The public project ``open/shop`` without members."""
    return make_project("shop", make_group("open", visibility="public"), visibility="public")
