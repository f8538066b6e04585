"""Several processes send errors to a running service: every event counts, and a kill loses none."""

from __future__ import annotations

import gzip
import http.client
import json
import multiprocessing
import os
import signal
import threading
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests.contract.service import TOKEN, Service, is_running, tree_of, wait_for
from tests.support.databases import create_database

PROCESSES = 10
HEADERS = {"PRIVATE-TOKEN": TOKEN}
MIB = 1 << 20


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def service(request, tmp_path):
    """A running service without a limit of events."""
    environment = {}
    if request.param == "postgresql":
        name = f"error_events_{os.environ.get('PYTEST_XDIST_WORKER', 'gw')}"
        environment["PROJECT_SERVICE_DATABASE_URL"] = create_database(name)
    running = Service(tmp_path / "service", **environment)
    running.start()
    try:
        address = f"{running.url}/api/v4/application/settings"
        requests.put(address, json={"error_tracking_event_limit": 0}, headers=HEADERS, timeout=30).raise_for_status()
        yield running
    finally:
        running.stop()


@pytest.fixture
def collector(service):
    """The path for events of a project, with its key."""
    api = f"{service.url}/api/v4/projects"
    number = requests.post(api, {"name": "shop"}, headers=HEADERS, timeout=30).json()["id"]
    tracking = f"{api}/{number}/error_tracking"
    requests.put(f"{tracking}/settings", {"active": "true", "integrated": "true"}, headers=HEADERS, timeout=30)
    key = requests.get(f"{tracking}/client_keys", headers=HEADERS, timeout=30).json()[0]["public_key"]
    return f"/api/v4/error_tracking/collector/api/{number}/envelope/?sentry_key={key}"


def event(number):
    """Return an envelope; the numbers give five errors, two environments, three users."""
    fields = {"exception": {"type": f"Error{'abcde'[number % 5]}", "value": str(number)}, "user": {"id": number % 3}}
    fields["environment"] = ("production", "staging")[number % 2]
    lines = ({"event_id": uuid.uuid4().hex}, {"type": "event"}, fields)
    return "\n".join(map(json.dumps, lines)).encode()


def send(netloc, path, count, statuses, stops_at_failure=False):
    """Send events on one connection; put their statuses into a queue, 0 for no answer."""
    connection, found = http.client.HTTPConnection(netloc, timeout=60), []
    for number in range(count):
        try:
            connection.request("POST", path, event(number), {"Content-Type": "application/x-sentry-envelope"})
            response = connection.getresponse()
            response.read()
            found.append(response.status)
        except (OSError, http.client.HTTPException):
            found.append(0)
            if stops_at_failure:
                break
    statuses.put(found)


def errors_at(service, collector):
    """Return the errors of the project."""
    number = collector.split("/")[6]
    address = f"{service.url}/api/v4/projects/{number}/error_tracking/errors"
    return requests.get(address, headers=HEADERS, timeout=30).json()


@pytest.mark.parametrize("each", [50, pytest.param(1000, marks=pytest.mark.nightly)])
def test_ten_processes_lose_no_event(service, collector, each):
    context = multiprocessing.get_context("fork")
    statuses, netloc, began = context.Queue(), urlsplit(service.url).netloc, time.monotonic()
    senders = [context.Process(target=send, args=(netloc, collector, each, statuses)) for _ in range(PROCESSES)]
    for sender in senders:
        sender.start()
    answered = [status for _ in senders for status in statuses.get(timeout=600)]
    for sender in senders:
        sender.join()
    print(f"{len(answered) / (time.monotonic() - began):.0f} events/s")

    assert set(answered) == {200}
    found = errors_at(service, collector)
    assert sorted(error["count"] for error in found) == [PROCESSES * each // 5] * 5
    assert {error["user_count"] for error in found} == {3}
    assert {tuple(error["environments"]) for error in found} == {("production", "staging")}


@pytest.mark.nightly
def test_accepted_events_survive_a_kill(service, collector):
    statuses, netloc = multiprocessing.get_context("fork").Queue(), urlsplit(service.url).netloc
    senders = [threading.Thread(target=send, args=(netloc, collector, 10_000, statuses, True)) for _ in range(4)]
    for sender in senders:
        sender.start()
    time.sleep(2)
    processes = [service.pid, *tree_of(service.pid)]
    for one in processes:
        os.kill(one, signal.SIGKILL)
    wait_for(lambda: not any(map(is_running, processes)))
    answered = [status for _ in senders for status in statuses.get(timeout=60)]

    service.start()

    stored = sum(error["count"] for error in errors_at(service, collector))
    assert answered.count(200) > 20
    assert answered.count(200) <= stored <= len(answered)


@pytest.mark.nightly
def test_hostile_events_get_clear_responses_and_little_memory(service, collector):
    def post(body, **headers):
        return requests.post(service.url + collector, body, headers=headers, timeout=60).status_code

    def envelope(text):
        return b'{}\n{"type":"event"}\n' + text

    def memory():
        web = [service.child("web"), *tree_of(service.child("web"))]
        return max(peak_of(pid) for pid in web)

    frames = b",".join(b'{"function":"f%d"}' % number for number in range(40_000))
    bodies = {
        "deep": (envelope(b'{"extra":' + b"[" * 500_000), 400),
        "many frames": (envelope(b'{"exception":{"type":"E","stacktrace":{"frames":[%s]}}}' % frames), 200),
        "NUL": (envelope(b'{"message":"a\\u0000b"}'), 200),
        "half a character": (envelope(b'{"message":"\\ud83d"}'), 200),
        "no UTF-8": (envelope(b'{"message":"\xff"}'), 400),
        "large": (envelope(b'{"message":"%s"}' % (b"x" * 5 * MIB)), 413),
        "keys": (envelope(b'{"extra":{%s}}' % b",".join(b'"%d":1' % number for number in range(80_000))), 200),
    }
    for body, status in bodies.values():
        assert post(body) == status
    before = memory()

    for _ in range(3):
        for name, (body, status) in bodies.items():
            assert (name, post(body)) == (name, status)
        bomb = gzip.compress(b"{}\n" + b" " * (150 * MIB), compresslevel=1)
        assert post(bomb, **{"Content-Encoding": "gzip"}) == 413
        assert post(gzip.compress(envelope(b'{"message":"' + b"x" * 90 * MIB)), **{"Content-Encoding": "gzip"}) == 413

    assert memory() - before < 30 * MIB


def peak_of(pid):
    """Return the peak memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
