"""Presets: each sample of each tool through a receiver, and files that are wrong."""

from __future__ import annotations

import copy
import datetime as dt
import json

import pytest

from project_service.areas.alerts.models import Severity, Status
from project_service.areas.alerts.receivers.presets import FILES, PRESETS, PresetError, load_presets
from project_service.domain.tracker.environments import Environment
from project_service.kit.db.session import db
from tests.areas.alerts.receivers.receiver_client import alerts, logged_requests, make_receiver

NOW = dt.datetime(2026, 9, 14, 9, 0, tzinfo=dt.UTC)
FIRING = [
    (tool, name, name.replace("firing", "resolved"))
    for tool, preset in PRESETS.items()
    for name in preset.samples
    if name.startswith("firing")
]
TESTS = [tool for tool, preset in PRESETS.items() if "test" in preset.samples]


def shown(alert):
    """What an alert stores, as it is written in the files of presets."""
    return {
        "title": alert.title,
        "description": alert.description,
        "started_at": alert.started_at.isoformat(),
        "severity": Severity(alert.severity).name.lower(),
        "service": alert.service,
        "monitoring_tool": alert.monitoring_tool,
        "hosts": alert.hosts,
        "environment": db.session.get(Environment, alert.environment_id).name if alert.environment_id else None,
    }


@pytest.fixture
def receiver(app, project, monkeypatch):
    """Make the receiver of a tool; the time of receipt is fixed."""
    monkeypatch.setattr("project_service.kit.clock.now", lambda: NOW)
    db.session.add(Environment(project_id=project.id, name="production", slug="production"))
    db.session.commit()
    return lambda tool, **fields: make_receiver(app, project, preset=tool, type=PRESETS[tool].address, **fields)


@pytest.mark.parametrize(("tool", "firing", "resolved"), FIRING)
def test_the_samples_of_a_tool_make_one_alert_that_ends(receiver, tool, firing, resolved):
    send, samples = receiver(tool), PRESETS[tool].samples
    expected = samples["expect"][firing]

    send(samples[firing])
    [first] = alerts()
    assert shown(first) == {name: value for name, value in expected.items() if name != "ended_at"}

    send(samples.get("repeated", samples[firing]))
    [repeated] = alerts()
    assert (repeated.events, repeated.status, repeated.title) == (2, Status.TRIGGERED, first.title)

    send(samples[resolved])
    [ended] = alerts()
    assert (ended.status, ended.events) == (Status.RESOLVED, 2)
    assert (ended.ended_at.isoformat() if ended.ended_at != NOW else "receipt") == expected["ended_at"]

    send(samples[resolved])
    send(samples[firing])
    assert [alert.status for alert in alerts()] == [Status.RESOLVED, Status.TRIGGERED]


@pytest.mark.parametrize("tool", TESTS)
def test_a_test_message_is_logged_and_no_alert(receiver, tool):
    send = receiver(tool)

    response = send(PRESETS[tool].samples["test"])

    assert (response.status_code, response.json, alerts()) == (200, [], [])
    assert [one.outcome for one in logged_requests()] == ["test"]


@pytest.mark.parametrize(("tool", "firing", "resolved"), FIRING)
def test_a_recovery_without_an_alert_is_stored_resolved_or_ignored(receiver, tool, firing, resolved):
    receiver(tool)(PRESETS[tool].samples[resolved])

    assert [alert.status for alert in alerts()] == ([] if PRESETS[tool].ignores_unmatched else [Status.RESOLVED])


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("alertmanager", ("alerts", 0, "fingerprint")),
        ("grafana", ("alerts", 0, "fingerprint")),
        ("datadog", ("fingerprint",)),
        ("nagios", ("fingerprint", 0)),
        ("checkmk", ("fingerprint", 1)),
        ("kibana", ("fingerprint", 1)),
        ("netdata", ("fingerprint", 0)),
    ],
)
def test_two_targets_of_one_rule_are_two_alerts_and_recover_alone(receiver, tool, path):
    send, samples = receiver(tool), PRESETS[tool].samples
    other = copy.deepcopy(samples["firing"])
    *above, last = path
    place = other
    for step in above:
        place = place[step]
    place[last] = "other"

    for body in (samples["firing"], other, samples["resolved"]):
        send(body)

    assert [alert.status for alert in alerts()] == [Status.RESOLVED, Status.TRIGGERED]


def test_a_join_tells_its_parts_apart(receiver):
    send, body = receiver("nagios"), PRESETS["nagios"].samples["firing"]

    for fingerprint in (["a", "bc"], ["ab", "c"], ["", ""], ["", ""]):
        send(body | {"fingerprint": fingerprint})

    assert [alert.fingerprint is None for alert in alerts()] == [False, False, True, True]


def test_a_severity_is_raised_and_never_lowered_where_the_preset_says_so(receiver):
    send, body = receiver("checkmk"), PRESETS["checkmk"].samples["firing"]

    for word in ("WARNING", "CRITICAL", "WARNING"):
        send(body | {"severity": word})

    [alert] = alerts()
    assert (alert.severity, alert.events) == (Severity.CRITICAL, 3)


@pytest.mark.parametrize("value", ["{EVENT.NAME}", "$HOSTNAME", "$HOSTNAME$", "{{name}}", "*UNKNOWN*", "N/A", "null"])
def test_a_placeholder_that_was_not_filled_in_counts_as_blank(receiver, value):
    send, body = receiver("template"), PRESETS["template"].samples["firing"]

    send(body | {"title": value, "description": f"see {value}"})

    [alert] = alerts()
    assert (alert.title, alert.description) == ("New: Alert", f"see {value}")


@pytest.mark.parametrize("word", ["none", "None", "NONE"])
def test_the_severity_none_of_a_label_is_info_however_it_is_written(receiver, word):
    send, body = receiver("alertmanager"), copy.deepcopy(PRESETS["alertmanager"].samples["firing"])
    body["alerts"][0]["labels"]["severity"] = word

    send(body)

    assert [alert.severity for alert in alerts()] == [Severity.INFO]


def test_a_message_of_another_shape_is_read_by_its_plain_keys(receiver):
    send = receiver("azure-monitor")

    send({"title": "Plain", "severity": "low"})

    assert [(alert.title, alert.severity) for alert in alerts()] == [("Plain", Severity.LOW)]
    assert "Azure Monitor" in logged_requests()[0].reason


def test_what_is_mapped_replaces_a_path_of_the_preset(receiver):
    send = receiver("pagerduty", mapping={"title": {"path": ["event", "data", "incident_key"], "type": "string"}})

    send(PRESETS["pagerduty"].samples["firing"])

    assert [alert.title for alert in alerts()] == ["k"]


@pytest.mark.parametrize("tool", ["alertmanager", "grafana"])
def test_a_field_mapped_over_a_preset_recovers_by_the_common_words(receiver, tool):
    send = receiver(tool, mapping={"end_time": {"path": ["labels", "state"], "type": "string"}})
    body = copy.deepcopy(PRESETS[tool].samples["firing"])

    for word in ("down", " Recovered "):
        body["alerts"][0]["labels"]["state"] = word
        send(body)

    assert [(alert.status, alert.events) for alert in alerts()] == [(Status.RESOLVED, 1)]


def test_dimensions_of_an_alarm_inside_a_text_are_hosts(receiver):
    send, body = receiver("cloudwatch-sns"), copy.deepcopy(PRESETS["cloudwatch-sns"].samples["firing"])
    message = json.loads(body["Message"])
    message["Trigger"]["Dimensions"] = [{"name": "a", "value": "i-1"}, {"name": "b", "value": "i-2"}]

    send(body | {"Message": json.dumps(message)})
    send(body | {"Message": "Budget\nis used up", "Subject": None, "MessageId": "m-2"})
    send(message)

    assert [(one.title, one.hosts, one.monitoring_tool, one.events) for one in alerts()] == [
        ("disk-depot", ["i-1", "i-2"], "CloudWatch", 2),
        ("Budget", [], "Amazon SNS", 1),
    ]


def test_an_older_script_for_zabbix_ends_an_alert_by_its_end_time(receiver):
    send, body = receiver("zabbix"), copy.deepcopy(PRESETS["zabbix"].samples["firing"])
    del body["state"], body["at"]

    send(body | {"end_time": "{EVENT.RECOVERY.DATE} {EVENT.RECOVERY.TIME}"})
    assert [alert.status for alert in alerts()] == [Status.TRIGGERED]

    send(body | {"end_time": "2026.09.14 08:44:02"})
    assert [(alert.status, alert.ended_at.hour) for alert in alerts()] == [(Status.RESOLVED, 8)]


def test_a_message_of_netdata_cloud_that_has_only_a_token_is_a_test(receiver):
    response = receiver("netdata")({"token": "abc"})

    assert (response.status_code, alerts(), logged_requests()[0].outcome) == (200, [], "test")


def test_a_subscription_is_never_an_alert(receiver):
    response = receiver("cloudwatch-sns")(PRESETS["cloudwatch-sns"].samples["subscription"])

    assert (response.status_code, alerts()) == (200, [])
    assert logged_requests()[0].outcome == "subscription"


@pytest.mark.parametrize(
    "fields",
    [{"preset": None}, {"preset": "zabbix"}, {"preset": None, "mapping": {"end_time": {"path": ["Type"]}}}],
    ids=["plain", "other tool", "mapped end"],
)
def test_a_subscription_is_never_an_alert_with_any_preset(app, project, fields):
    response = make_receiver(app, project, **fields)(PRESETS["cloudwatch-sns"].samples["subscription"])

    assert (response.status_code, alerts(), logged_requests()[0].outcome) == (200, [], "subscription")


def test_an_alarm_through_sns_is_recognized_without_a_preset(app, project):
    send, samples = make_receiver(app, project), PRESETS["cloudwatch-sns"].samples

    for name in ("firing", "resolved"):
        send(samples[name])

    assert [(alert.title, alert.status) for alert in alerts()] == [("disk-depot", Status.RESOLVED)]


@pytest.mark.parametrize("status", [0, 1, 2, 3])
@pytest.mark.parametrize("form", [int, str])
def test_the_states_of_uptime_kuma_are_told_apart(receiver, status, form):
    send, body = receiver("uptime-kuma"), copy.deepcopy(PRESETS["uptime-kuma"].samples["firing"])
    send(body)
    body["heartbeat"]["status"] = form(status)

    send(body)

    [alert] = alerts()
    assert (alert.events, alert.status) == {0: (2, 0), 1: (1, Status.RESOLVED), 2: (1, 0), 3: (1, 0)}[status]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"severity": {"p1": "grave"}}, "severity.p1"),
        ({"map": {"headline": [["a"]]}}, "map.headline"),
        ({"map": {"title": "a.b"}}, "map.title"),
        ({"titel": "x"}, "titel"),
        ({"ignore": [{"when": [], "as": "nothing"}]}, "ignore.as"),
        ({"variants": [{"when": [{"path": ["a"], "equals": 1}]}]}, "when.equals"),
    ],
)
def test_a_wrong_word_in_a_file_is_refused_with_file_and_key(tmp_path, change, key):
    data = json.loads((FILES / "datadog.json").read_text()) | change
    (tmp_path / "datadog.json").write_text(json.dumps(data))

    with pytest.raises(PresetError) as wrong:
        load_presets(tmp_path)

    assert str(wrong.value) == f"datadog.json: {key} is wrong"
