"""Pages of the log of requests: list, one request, send again, map fields, confirm a subscription."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from project_service.areas.alerts.models import Alert, AlertIntegration, AlertRequest
from project_service.areas.alerts.receivers.presets import PRESETS
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.security.outgoing_http.client import Client, RequestFailed
from tests.support.sample_data import MAX

BODY = {"title": "Disk is full", "level": "P2"}


@pytest.fixture
def maintainer(visit, project):
    return visit(MAX)


def log(project, body, outcome="refused", **fields):
    integration = AlertIntegration(
        project_id=project.id, name="Monitor", active=True, endpoint_identifier="1f", token="t", mapping={}
    )
    db.session.add(integration)
    db.session.flush()
    row = AlertRequest(
        integration_id=integration.id,
        received_at=clock.now(),
        outcome=outcome,
        status=200,
        reason="the key is wrong",
        address="192.0.2.7",
        size=2,
        body=json.dumps(body),
        **fields,
    )
    db.session.add(row)
    db.session.commit()
    return f"/acme/shop/-/settings/operations/integrations/{integration.id}", f"requests/{row.id}"


def test_the_requests_of_an_integration_are_listed_by_outcome(maintainer, project):
    one, _ = log(project, BODY, count=30)

    page, accepted = maintainer.get(f"{one}/requests").text, maintainer.get(f"{one}/requests?outcome=accepted").text

    assert ("the key is wrong" in page, "30 times" in page, "192.0.2.7" in page) == (True, True, True)
    assert "No such requests are in the log." in accepted
    assert "30 refused in the last day" in maintainer.get("/acme/shop/-/settings/operations").text


def test_a_request_is_sent_again_by_the_present_settings(maintainer, project):
    one, request = log(project, BODY)

    response = maintainer.send(f"{one}/{request}/send")

    assert response.status_code == 302
    assert "received once more, with 1 alert." in maintainer.get(response.location).text
    assert [alert.title for alert in db.session.query(Alert)] == ["Disk is full"]


def test_a_cut_body_is_not_sent_again(maintainer, project):
    one, request = log(project, BODY, is_cut=True)

    response = maintainer.send(f"{one}/{request}/send")

    assert (response.status_code, db.session.query(Alert).count()) == (422, 0)


def test_requests_are_listed_by_their_time(maintainer, project):
    one, _ = log(project, BODY)
    stored = db.session.query(AlertRequest).one()
    earlier = AlertRequest(
        integration_id=stored.integration_id,
        received_at=stored.received_at - dt.timedelta(seconds=1),
        outcome="accepted",
        status=200,
        reason="written late",
        size=2,
    )
    db.session.add(earlier)
    db.session.commit()

    page = maintainer.get(f"{one}/requests").text

    assert page.index(f'/requests/{stored.id}"') < page.index("written late")


def test_fields_are_mapped_from_a_request(maintainer, project):
    one, request = log(project, BODY)

    page = maintainer.get(f"{one}/edit?request={request.rpartition('/')[2]}").text

    assert "Disk is full" in page
    assert "level: P2" in page


@pytest.mark.parametrize(("change", "offered"), [({}, True), ({"SubscribeURL": "https://evil.example/"}, False)])
def test_a_subscription_has_a_button_that_confirms_it(maintainer, project, change, offered):
    one, request = log(project, PRESETS["cloudwatch-sns"].samples["subscription"] | change, outcome="subscription")

    page = maintainer.get(f"{one}/{request}").text

    assert ("Confirm subscription" in page, "cannot be confirmed here" in page) == (offered, not offered)


def test_a_severity_table_is_stored_and_shown_in_the_preview(maintainer, project):
    one, _ = log(project, BODY)
    sample = json.dumps({"title": "A", "severity": "P2"})
    fields = {"type": "http", "name": "Monitor", "payload_example": sample, "parsed_example": sample}

    saved = maintainer.send(
        f"{one}/edit", severity_word="P2", severity_value="high", resolved_words="Gone, 1", **fields
    )
    row = db.session.query(AlertIntegration).one()

    assert (saved.status_code, row.severity_mapping, row.resolved_values) == (302, {"p2": "high"}, ["gone", "1"])
    assert "P2 → High" in maintainer.get(f"{one}/edit").text


def test_another_tool_brings_its_own_severity_table(maintainer, project):
    one, _ = log(project, BODY)
    zabbix = {"severity_word": ["3", "*"], "severity_value": ["medium", "critical"], "severities_of": "zabbix"}

    maintainer.send(f"{one}/edit", type="datadog", name="Monitor", **zabbix)

    assert db.session.query(AlertIntegration).one().severity_mapping is None


def test_rows_of_a_severity_table_are_added_to_those_of_a_chosen_tool(maintainer, project):
    one, _ = log(project, BODY)

    maintainer.send(
        f"{one}/edit", type="zabbix", name="Monitor", severity_word="P9", severity_value="low", severities_of=""
    )

    stored = db.session.query(AlertIntegration).one().severity_mapping
    assert (stored["p9"], stored["3"]) == ("low", "medium")


def test_the_preview_names_the_resolved_values_of_a_chosen_tool(maintainer, project):
    response = maintainer.send("/acme/shop/-/settings/operations/integrations/preview", type="cloudwatch-sns")

    assert '<p id="default-resolved">Without an entry: ok; in a field that is mapped' in response.text


def test_no_transaction_is_open_while_a_subscription_is_confirmed(maintainer, project, monkeypatch):
    one, request = log(project, PRESETS["cloudwatch-sns"].samples["subscription"], outcome="subscription")
    open_transactions = []

    def refuse(*_args, **_options):
        open_transactions.append(db.session().in_transaction())
        raise RequestFailed("timed out")

    monkeypatch.setattr(Client, "request", refuse)
    answers = [maintainer.send(f"{one}/{request}/confirm").status_code for _ in range(6)]

    assert (answers, open_transactions) == ([422] * 5 + [429], [False] * 5)
