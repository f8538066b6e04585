"""Rules through the API, and their preview."""

from __future__ import annotations

import pytest

from tests.support.sample_data import DEV, PAGER

MEMBERS = {"type": "members", "access_level": 40}
RULE = {"name": "Worst", "events": ["alert_triggered"], "targets": [MEMBERS]}


def rules(project):
    return f"/projects/{project.id}/notification_rules"


def test_a_rule_has_defaults(as_maintainer, project):
    created = as_maintainer.post(rules(project), json=RULE)

    assert created.status_code == 201
    assert {name: value for name, value in created.json.items() if name not in ("id", "created_at", "updated_at")} == {
        **RULE,
        "scope": "project",
        "enabled": True,
        "min_severity": None,
        "environment": None,
        "integration_ids": [],
        "matchers": [],
        "group_by": [],
        "group_wait": 5,
        "group_interval": 300,
        "repeat_interval": None,
        "active_periods": [],
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"targets": [{"type": "channel", "id": 99}]}, {"targets": ["channel 99 does not exist"]}),
        (
            {"targets": [{"type": "user", "username": "rita"}]},
            {"targets": ["user rita cannot read alerts of this project"]},
        ),
        ({"events": []}, {"events": ["is empty"]}),
        ({"group_wait": 301}, {"group_wait": ["must be from 0 to 300"]}),
        ({"matchers": [{"field": "x", "operator": "is", "value": ""}]}, {"matchers": ["x is not a field"]}),
        (
            {"active_periods": [{"time_zone": "Mars", "from": "08:00", "to": "18:00"}]},
            {"active_periods": ["time_zone is not included in the list"]},
        ),
    ],
    ids=["channel", "user", "events", "wait", "matcher", "zone"],
)
def test_bad_rules_are_refused(fields, message, as_maintainer, project):
    response = as_maintainer.post(rules(project), json=RULE | fields)

    assert (response.status_code, response.json) == (400, {"message": message})


@pytest.mark.parametrize("kind", ["schedule", "escalation_policy"])
def test_targets_that_do_not_exist_yet_are_no_valid_value(kind, as_maintainer, project):
    response = as_maintainer.post(rules(project), json=RULE | {"targets": [{"type": kind, "id": 1}]})

    assert (response.status_code, response.json) == (400, {"error": "targets does not have a valid value"})


def test_a_pager_takes_alerts_and_incidents_only(as_maintainer, project):
    number = as_maintainer.post(f"/projects/{project.id}/notification_channels", json={"name": "p"} | PAGER).json["id"]

    fields = RULE | {"events": ["new_error"], "targets": [{"type": "channel", "id": number}]}
    response = as_maintainer.post(rules(project), json=fields)

    assert response.json == {"message": {"targets": ["a PagerDuty channel takes alerts and incidents only"]}}


def test_a_preview_says_what_matches_and_why_not(as_, as_maintainer, project):
    first = as_maintainer.post(rules(project), json=RULE).json["id"]
    other = as_maintainer.post(rules(project), json=RULE | {"name": "Prod", "environment": "production"}).json["id"]

    response = as_(DEV).post(f"{rules(project)}/preview", json={"severity": "low", "title": "x"})

    assert (response.status_code, response.json) == (
        200,
        {
            "silenced_by": [],
            "matches": [{"rule_id": first, "rule_name": "Worst", "targets": ["@max", "@olive"]}],
            "not_matching": [{"rule_id": other, "because": "environment"}],
        },
    )
