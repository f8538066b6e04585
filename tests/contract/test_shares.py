"""One client with 200 slow connections delays nobody else: bodies, archives and git on the started service."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.contract.service import TOKEN, Service
from tests.contract.slow_clients import LARGE_BODY_BYTES, Shop, slow_bodies, slow_downloads


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("shares"))
    service.start()
    yield Shop(service, service.directory)
    service.stop()


@pytest.mark.parametrize("kind", ["envelope", "push", pytest.param("import", marks=pytest.mark.nightly)])
def test_slow_bodies_do_not_delay_git_and_downloads(shop, kind):
    with ExitStack() as stack, slow_bodies(shop, stack, kind):
        assert shop.seconds_of_others() < 10


def test_slow_downloads_of_one_user_leave_archives_for_others(shop):
    with ExitStack() as stack:
        slow = slow_downloads(shop, stack)

        assert shop.seconds_of_others() < 10
        for connection in slow:
            connection.settimeout(30)
        statuses = [connection.recv(12) for connection in slow]

    assert set(statuses) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert statuses.count(b"HTTP/1.1 503") >= 4


@pytest.mark.parametrize(("headers", "length"), [({}, 2_000_000), ({"PRIVATE-TOKEN": TOKEN}, LARGE_BODY_BYTES)])
def test_a_body_that_is_too_large_is_refused_before_it_is_received(shop, headers, length):
    with ExitStack() as stack:
        connection = shop.open(stack, "POST", "/api/v4/projects", length, **headers)
        connection.settimeout(10)

        assert connection.recv(12) == b"HTTP/1.1 413"
