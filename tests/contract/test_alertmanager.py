"""A real Alertmanager, configured with the URL and key of an integration: its alerts fire and resolve."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import re
import subprocess
from contextlib import suppress

import pytest
import requests

from tests.contract.alerting import Maintainer
from tests.contract.service import REPOSITORY, free_port, wait_for

PATIENCE = 60.0
CONFIGURATION = """
route:
  receiver: shop
  group_by: [alertname]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: shop
    webhook_configs:
      - url: {url}
        send_resolved: true
        http_config:
          authorization: {{type: Bearer, credentials: {key}}}
"""
EVENTS = re.compile(r"<dt>Events</dt><dd>(\d+)</dd>")
STATUS = re.compile(r'class="badge">(\w+)</span>')


class Alertmanager:
    """Alertmanager, started on free ports; alerts are sent to its API."""

    def __init__(self, program, directory):
        self.program, self.directory, self.process = program, directory, None
        self.url = f"http://127.0.0.1:{free_port()}"
        self.began = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)

    def start(self, credentials):
        configuration = self.directory / "alertmanager.yml"
        configuration.write_text(CONFIGURATION.format(url=credentials.url, key=credentials.key))
        options = {
            "config.file": configuration,
            "storage.path": self.directory / "data",
            "web.listen-address": self.url.removeprefix("http://"),
            "cluster.listen-address": "",
        }
        with (self.directory / "alertmanager.log").open("wb") as log:
            command = [self.program, *(f"--{name}={value}" for name, value in options.items())]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        assert wait_for(self.is_ready, PATIENCE), self.log()

    def is_ready(self):
        with suppress(requests.ConnectionError):
            return requests.get(f"{self.url}/-/ready", timeout=5).ok

    def tell(self, name, *, over=False, **annotations):
        """Send an alert as Prometheus does: a resolved one has an end time."""
        alert = {
            "labels": {"alertname": name, "severity": "warning"},
            "annotations": annotations,
            "generatorURL": "http://prometheus.example.com/graph?g0.expr=up+%3D%3D+0",
            "startsAt": self.began.isoformat(),
        }
        if over:
            alert["endsAt"] = dt.datetime.now(dt.UTC).isoformat()
        requests.post(f"{self.url}/api/v2/alerts", json=[alert], timeout=10).raise_for_status()

    def log(self):
        return (self.directory / "alertmanager.log").read_text()

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)


@pytest.fixture
def alertmanager(tmp_path):
    program = [REPOSITORY / "scripts/foreign-programs", "prometheus-alertmanager"]
    found = subprocess.run(program, check=False, capture_output=True, text=True)
    if found.returncode:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(found.stderr.strip())
    started = Alertmanager(found.stdout.strip(), tmp_path)
    yield started
    started.stop()


@pytest.fixture
def maintainer(service):
    visitor = Maintainer(service)
    yield visitor
    visitor.close()


@pytest.mark.parametrize("kind", ["prometheus", "http"])
def test_alerts_of_alertmanager_fire_and_resolve(kind, alertmanager, maintainer, project):
    path = project.path_with_namespace
    credentials = maintainer.add_integration(path, type=kind, name="Cluster")
    maintainer.save_incident_settings(path, create_issue="y", auto_close_incident="y")
    alertmanager.start(credentials)

    alertmanager.tell("ShopIsDown", summary="The shop is down", runbook="https://runbooks.example.com/shop")
    assert wait_for(lambda: maintainer.counts(path).get("Triggered") == 1, PATIENCE), alertmanager.log()

    page = maintainer.get(f"/{path}/-/alert_management/1/details")
    assert "The shop is down" in page
    assert "up == 0" in page or "up+%3D%3D+0" in page
    assert (STATUS.search(page)[1], EVENTS.search(page)[1]) == ("Triggered", "1")
    incident = project.issues.get(1)
    assert (incident.title, incident.state) == ("The shop is down", "opened")

    alertmanager.tell("ShopIsDown", over=True, summary="The shop is down")
    assert wait_for(lambda: maintainer.counts(path).get("Resolved") == 1, PATIENCE), alertmanager.log()

    assert maintainer.counts(path)["All"] == 1
    assert project.issues.get(1).state == "closed"


def test_a_wrong_key_creates_no_alert(alertmanager, maintainer, project):
    path = project.path_with_namespace
    credentials = maintainer.add_integration(path, type="prometheus", name="Cluster")
    alertmanager.start(dataclasses.replace(credentials, key="another-key"))

    alertmanager.tell("ShopIsDown", summary="The shop is down")

    assert wait_for(lambda: "401" in alertmanager.log(), PATIENCE), alertmanager.log()
    assert maintainer.counts(path)["All"] == 0
