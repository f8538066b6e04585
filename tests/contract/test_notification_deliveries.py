"""Web hooks and messages of a running service: with python-gitlab, beside a receiver that hangs, and after kill -9."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import gitlab
import pytest
import requests

from tests.contract import service as services
from tests.contract.alerting import Maintainer
from tests.contract.service import TOKEN, Service, wait_for

ALERTS, HOOKS = 100, 10
MAX_PROCESSOR_SECONDS, MAX_FIRST_SECONDS = 20.0, 10.0  # of the worker; beside other load the time is longer
MAX_PATIENCE_SECONDS = 120.0


class Receiver(ThreadingHTTPServer):
    """Records the keys and bodies of requests; paths that begin with ``/hang`` are answered after 9 seconds."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.keys, self.bodies = Counter(), []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.startswith("/hang"):
            time.sleep(9)
        else:
            self.server.keys[self.headers["Idempotency-Key"]] += 1
            self.server.bodies.append(json.loads(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def receiver():
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def own_service(tmp_path):
    """A service of this test alone, which may send to this machine."""
    made = Service(tmp_path / "service")
    made.start()
    with gitlab.Gitlab(made.url, private_token=TOKEN) as client:
        client.http_put("/application/settings", post_data={"allow_local_requests_from_web_hooks_and_services": True})
        yield made, client
    made.stop()


@pytest.fixture
def post(own_service):
    """Sends alerts to an endpoint of a project, one request for each."""
    maintainer, credentials = Maintainer(own_service[0]), {}

    def send(project, numbers):
        path = project.path_with_namespace
        known = credentials.get(path) or maintainer.add_integration(path, type="http", name="Tool")
        credentials[path] = known
        for number in numbers:
            alert = {"title": f"Alert {number}", "fingerprint": str(number)}
            headers = {"Authorization": f"Bearer {known.key}"}
            assert requests.post(known.url, json=alert, headers=headers, timeout=30).status_code == 200

    return send


def workers(service):
    """Return the pids of the worker that sends, and of the processes that it has forked."""
    pid = wait_for(lambda: service.child("delivery worker"), service.patience)
    return [pid, *services.tree_of(pid)]


def processor_seconds(service):
    """Return the processor time that the worker has used."""
    seconds = 0.0
    for pid in workers(service):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # with those of children that have ended
    return seconds


def test_hooks_are_objects_of_python_gitlab(project):
    hook = project.hooks.create({"url": "https://93.184.215.14/hook", "alert_events": True, "token": "secret"})
    hook.name = "Chat"
    hook.save()

    [listed] = project.hooks.list(get_all=True)
    assert (listed.name, listed.alert_events, project.hooks.get(hook.id).url) == ("Chat", True, hook.url)
    assert "token" not in listed.attributes
    hook.delete()
    assert project.hooks.list(get_all=True) == []


@pytest.mark.nightly
def test_a_receiver_that_hangs_delays_no_other_and_kill_9_loses_nothing(own_service, post, receiver):
    service, client = own_service
    project = client.projects.create({"name": "Shop"})
    for number in range(HOOKS):
        project.hooks.create({"url": f"{receiver.url}/fast/{number}", "alert_events": True, "push_events": False})
    project.hooks.create({"url": f"{receiver.url}/hang", "alert_events": True, "push_events": False})
    began = processor_seconds(service)
    post(project, range(ALERTS))

    assert wait_for(lambda: len(receiver.keys) >= ALERTS * HOOKS, MAX_PATIENCE_SECONDS)
    assert processor_seconds(service) - began <= MAX_PROCESSOR_SECONDS
    receiver.keys.clear()
    post(project, range(ALERTS, 2 * ALERTS))
    for pid in workers(service):
        services.kill(pid)
    assert wait_for(lambda: len(receiver.keys) >= ALERTS * HOOKS, MAX_PATIENCE_SECONDS)


@pytest.mark.nightly
def test_the_first_message_is_sent_within_seconds(own_service, post, receiver):
    _, client = own_service
    project = client.projects.create({"name": "Shop"})
    channel = client.http_post(
        f"/projects/{project.id}/notification_channels",
        post_data={"name": "ops", "type": "webhook", "url": f"{receiver.url}/fast"},
    )
    rule = {"name": "All", "events": ["alert_triggered"], "targets": [{"type": "channel", "id": channel["id"]}]}
    client.http_post(f"/projects/{project.id}/notification_rules", post_data=rule)
    post(project, range(1))

    assert wait_for(lambda: receiver.bodies, MAX_FIRST_SECONDS)
    assert receiver.bodies[0]["title"] == "[CRITICAL] Alert 0"
