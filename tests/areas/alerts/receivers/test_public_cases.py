"""Messages of real tools that were handled wrongly once: small ones of our own, and those of public reports."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from project_service.areas.alerts.models import HTTP, PROMETHEUS, Severity, Status
from tests.areas.alerts.receivers.receiver_client import alerts, make_receiver

pytestmark = pytest.mark.both_databases

CASES = (
    Path(os.environ.get("PROJECT_SERVICE_TEST_DATA") or Path(__file__).parents[5] / "shared" / "data")
    / "public-cases"
    / "alerts"
)
needs_cases = pytest.mark.skipif(not CASES.exists(), reason=f"{CASES} is missing")
TRIGGERED, RESOLVED = Status.TRIGGERED, Status.RESOLVED
END = "2026-11-27T06:20:00+00:00"
# by case: for each alert in order what is expected of it
EXPECTED = {
    "G1-grafana-unified": [
        {"title": "eu-1 above 90 %", "severity": 3, "started_at": "2026-11-27T06:01:00+00:00", "status": 2}
        | {"ended_at": "2026-11-27T06:31:00+00:00", "monitoring_tool": "Grafana"},
        {"title": "us-2 above 90 %", "severity": 3, "started_at": "2026-11-27T06:01:00+00:00", "status": 2},
    ],
    "N1-stale-notice": [{"status": 2, "ended_at": "2026-11-27T08:44:02+00:00", "unreadable_times": None}],
    "P1-same-rule-two-targets": [{"status": 0, "events": 2}, {"status": 2, "ended_at": END}],
    "P2-value-in-summary": [{"events": 2, "status": 2, "ended_at": "2026-11-27T06:40:00+00:00"}],
    "P3-starts-at-moved": [{"status": 2, "events": 2}],
    "P4-resolved-sent-again": [{"status": 2, "ended_at": END, "events": 1}],
    "P6-mapping-ignored-for-batch": [{"hosts": ["n-7:9100"], "service": "node"}],
    "P7-severity-none": [{"severity": Severity.INFO}],
    "T2-epoch-text": [{"status": 0, "ended_at": None}],
    "W1-recovery-by-word": [{"status": 2, "events": 1, "unreadable_times": None}],
    "W2-status-number-as-end": [{"status": 0, "ended_at": None, "events": 2}],
}


def read_case(name):
    return json.loads((CASES / f"{name}.json").read_text())


def shown(value):
    return value.isoformat() if hasattr(value, "isoformat") else value


def receiver_of(case, app, project):
    integration = case.get("integration", {"type": HTTP})
    mapping = {name: {"path": path, "type": "string"} for name, path in integration.get("mapping", {}).items()}
    return make_receiver(app, project, type=integration["type"], mapping=mapping)


@needs_cases
@pytest.mark.parametrize("name", EXPECTED)
def test_a_case_of_a_public_report_is_right(app, project, name):
    case = read_case(name)
    send = receiver_of(case, app, project)

    answers = [send(body).status_code for body in case["steps"]]

    found = [
        {column: shown(getattr(alert, column)) for column in expected}
        for alert, expected in zip(alerts(), EXPECTED[name], strict=True)
    ]
    assert (set(answers), found) == ({200}, EXPECTED[name])


@needs_cases
@pytest.mark.parametrize(
    ("preset", "mapping"),
    [
        ("grafana-legacy", None),
        ("", None),
        ("generic", None),
        ("", {"fingerprint": ["ruleId"]}),
        ("", {"fingerprint": ["ruleId"], "end_time": ["state"]}),
    ],
    ids=["preset", "none", "generic", "fingerprint", "end"],
)
def test_a_recovery_of_grafana_7_is_told_by_a_word(app, project, preset, mapping):
    fields = {"preset": preset} if preset else {}
    stored = {name: {"path": path, "type": "string"} for name, path in (mapping or {}).items()}
    send = make_receiver(app, project, mapping=stored, **fields)

    for body in read_case("G2-grafana-legacy")["steps"]:
        send(body)

    assert [alert.status for alert in alerts()] == [RESOLVED]


@needs_cases
@pytest.mark.parametrize(
    ("name", "title", "description"),
    [
        ("J1-raw-newline", "Ping failed", "PING 192.0.2.7\n1 packets, 100 % loss"),
        ("J2-quoted-json", "Ping failed", None),
        ("J3-lone-surrogate", "Disk full \ufffd", None),
    ],
)
def test_json_that_tools_write_is_read(app, project, name, title, description):
    send = make_receiver(app, project)

    response = send((CASES / f"{name}.body").read_bytes(), content_type="text/plain")

    assert response.status_code == 200
    assert [(alert.title, alert.description) for alert in alerts()] == [(title, description)]


@pytest.mark.parametrize("receiver_type", [HTTP, PROMETHEUS])
def test_all_of_many_alerts_open_and_recover(app, project, receiver_type):
    send = make_receiver(app, project, type=receiver_type)
    keys = ("groupKey", "receiver", "groupLabels", "commonLabels", "commonAnnotations", "externalURL", "status")
    batch = dict.fromkeys(keys, "x") | {"version": "4"}
    element = {"status": "firing", "annotations": {}, "startsAt": "2026-11-27T06:00:15.1Z"}
    elements = [element | {"labels": {"alertname": "PodCrash", "pod": f"pod-{number}"}} for number in range(150)]
    ended = [one | {"status": "resolved", "endsAt": "2026-11-27T06:20:00Z"} for one in reversed(elements)]

    opened, closed = send(batch | {"alerts": elements}), send(batch | {"alerts": ended})

    assert (len(opened.json), len(closed.json)) == (150, 150)
    assert [alert.status for alert in alerts()] == [RESOLVED] * 150


@needs_cases
def test_times_in_the_notations_of_tools_start_and_end_alerts(app, project):
    send = make_receiver(app, project)
    times = read_case("T1-times")["right"]

    for number, text in enumerate(times):
        body = {"title": "A", "fingerprint": str(number), "start_time": text}
        send(body)
        send(body | {"end_time": text})

    expected = [moment.split()[0].replace("Z", "+00:00") for moment in times.values()]
    found = [(alert.started_at, alert.ended_at) for alert in alerts()]
    assert [(one.isoformat().replace("000+", "+"), other == one) for one, other in found] == [
        (moment, True) for moment in expected
    ]


def test_a_recovery_that_arrives_again_stores_nothing(app, project):
    send = make_receiver(app, project)
    body = {"title": "A", "fingerprint": "a"}
    ended = body | {"end_time": "2026-11-27T06:20:00Z"}

    iids = [[one["iid"] for one in send(sent).json] for sent in (ended, ended, body, ended, ended)]

    assert iids == [[1], [1], [2], [2], [2]]
    assert [(alert.status, alert.events) for alert in alerts()] == [(RESOLVED, 1), (RESOLVED, 1)]


def test_the_key_is_accepted_as_password_after_a_challenge(app, project):
    send = make_receiver(app, project)

    refused = send({"title": "A"}, key=None)
    basic = "Basic YWxlcnRzOjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm"
    accepted = send({"title": "A"}, key=None, Authorization=basic)

    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="alerts"')
    assert accepted.status_code == 200


def test_a_batch_of_many_new_alerts_takes_no_more_statements(app, project, count_queries):
    send = make_receiver(app, project, type=PROMETHEUS)
    keys = ("groupKey", "receiver", "groupLabels", "commonLabels", "commonAnnotations", "externalURL", "status")
    batch = dict.fromkeys(keys, "x") | {"version": "4"}
    element = {"status": "firing", "annotations": {}, "startsAt": "2026-11-27T06:00:15.1Z"}
    counts = []

    for size in (1, 10, 100):
        elements = [element | {"labels": {"alertname": f"{size}-{number}"}} for number in range(size)]
        with count_queries() as queries:
            send(batch | {"alerts": elements})
        counts.append(len(queries))

    assert counts[2] - counts[1] <= 2
