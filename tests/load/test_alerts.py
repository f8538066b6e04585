"""A burst of alerts at a running service: none is refused, and no occurrence is lost."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests
from sqlalchemy import create_engine, text

from tests.contract.alerting import Maintainer
from tests.contract.service import TOKEN, Service
from tests.support.databases import create_database

CONNECTIONS = 50


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    """The URL of a new database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/service/data/project-service.db"
    return create_database(f"burst_{os.environ.get('PYTEST_XDIST_WORKER', 'gw')}")


@pytest.fixture
def endpoint(database, tmp_path):
    """URL and key of an integration of a running service."""
    running = Service(tmp_path / "service", PROJECT_SERVICE_DATABASE_URL=database)
    running.start()
    try:
        response = requests.post(
            f"{running.url}/api/v4/projects", {"name": "shop"}, headers={"PRIVATE-TOKEN": TOKEN}, timeout=30
        )
        maintainer = Maintainer(running)
        yield maintainer.add_integration(response.json()["path_with_namespace"], type="http", name="Burst")
        maintainer.close()
    finally:
        running.stop()


class Sender:
    """Sends on one persistent connection, and records statuses and durations."""

    def __init__(self, endpoint):
        self.address = urlsplit(endpoint.url)
        self.headers = {"Authorization": f"Bearer {endpoint.key}", "Content-Type": "application/json"}
        self.seconds = []
        self.statuses = []

    def send(self, fingerprints):
        connection = http.client.HTTPConnection(self.address.netloc, timeout=60)
        for fingerprint in fingerprints:
            began = time.perf_counter()
            body = json.dumps({"title": f"Alert {fingerprint}", "fingerprint": fingerprint})
            connection.request("POST", self.address.path, body, self.headers)
            response = connection.getresponse()
            response.read()
            self.seconds.append(time.perf_counter() - began)
            self.statuses.append(response.status)
        connection.close()


@pytest.mark.parametrize(
    ("posts", "fingerprints"),
    [
        pytest.param(500, 50, id="500"),
        pytest.param(10_000, 500, id="10000", marks=pytest.mark.nightly),
    ],
)
def test_every_alert_of_a_burst_is_counted(posts, fingerprints, endpoint, database, capsys):
    senders = [Sender(endpoint) for _ in range(CONNECTIONS)]
    # connections start at different fingerprints, so that each fingerprint comes from several connections
    shares = [[number * 7 % fingerprints for number in range(own, posts, CONNECTIONS)] for own in range(CONNECTIONS)]

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for running in [pool.submit(sender.send, share) for sender, share in zip(senders, shares, strict=True)]:
            running.result()

    engine = create_engine(database)
    with engine.connect() as connection:
        count, events, distinct = connection.execute(
            text("SELECT count(*), sum(events), count(DISTINCT fingerprint) FROM alerts WHERE status <> 2")
        ).one()
    engine.dispose()
    seconds = sorted(one for sender in senders for one in sender.seconds)
    with capsys.disabled():
        median, slowest = statistics.median(seconds), seconds[int(0.99 * len(seconds))]
        print(f"\n{engine.dialect.name}: {posts} posts, median {median * 1000:.0f} ms, p99 {slowest * 1000:.0f} ms")
    assert {status for sender in senders for status in sender.statuses} == {200}
    assert (count, events, distinct) == (fingerprints, posts, fingerprints)
