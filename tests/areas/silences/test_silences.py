"""Silences: API, what they match, and their states (silences reference)."""

from __future__ import annotations

import pytest

from project_service.areas.alerts.models import IncidentSetting
from project_service.kit.db.session import db, unit_of_work
from tests.areas.silences.conftest import TITLE
from tests.support.sample_data import DEV, MAX, NOBODY, OLIVE, RITA, SAM


def test_a_silence_matches_open_and_new_alerts_until_it_ends(shop):
    before, other = shop.alert(), shop.alert("cpu hot")
    silence = shop.silence()
    during = shop.alert("Disk slow")

    assert [shop.read(iid)["silence_id"] for iid in (before, other, during)] == [silence["id"], None, silence["id"]]
    assert [one["iid"] for one in shop.client.get(f"{shop.address}?silenced=true").json] == [during, before]
    assert [one["iid"] for one in shop.client.get(f"{shop.address}?silenced=false").json] == [other]
    assert shop.client.get(f"{shop.silences}/{silence['id']}").json["matched_count"] == 2
    shop.passes(hours=2)
    assert shop.read(before)["silence_id"] is None


def test_states_follow_the_clock_and_expired_ones_stay_listed_for_30_days(shop):
    shop.silence(starts_at="2027-03-01T13:00:00Z")
    states = []
    for time in ({}, {"minutes": 61}, {"hours": 1}, {"days": 31}):
        shop.passes(**time)
        states.append([one["state"] for one in shop.client.get(shop.silences).json])

    assert states == [["pending"], ["active"], ["expired"], []]


def test_a_resolved_alert_is_not_shown_as_silenced(shop):
    iid = shop.alert()
    shop.silence()
    shop.resolve(iid)

    assert shop.read(iid)["silence_id"] is None


def test_the_answer_to_a_change_names_the_silence(shop):
    iid = shop.alert()
    silence = shop.silence()

    changed = shop.client.put(f"{shop.address}/{iid}", json={"status": "acknowledged"}).json

    assert changed["silence_id"] == silence["id"]


def test_ending_a_silence_keeps_it_in_the_list(shop):
    silence = shop.silence()
    address = f"{shop.silences}/{silence['id']}"

    assert [shop.client.delete(address).status_code for _ in range(2)] == [204, 404]
    ended = shop.client.get(address).json
    assert (ended["state"], ended["ended_by"]["username"], ended["ended_at"]) == ("expired", "max", ended["ends_at"])
    response = shop.client.put(address, json={"comment": "again"})
    assert (response.status_code, response.json) == (
        400,
        {"message": {"base": ["an expired silence cannot be changed"]}},
    )


def test_an_active_silence_changes_only_its_end_and_comment(shop):
    address = f"{shop.silences}/{shop.silence()['id']}"

    changed = shop.client.put(address, json={"ends_at": "2027-03-10T12:00:00Z", "comment": "Longer"}).json
    refused = shop.client.put(address, json={"matchers": []})

    assert (changed["ends_at"], changed["comment"]) == ("2027-03-10T12:00:00.000Z", "Longer")
    assert changed["warning"] == "lasts longer than 7 days"
    assert refused.json == {"message": {"matchers": ["cannot be changed while the silence is active"]}}
    assert shop.client.put(address, json={}).json == {"error": "No parameters provided"}


def test_developers_change_their_own_silences_and_only_maintainers_silence_a_project(shop, as_):
    dev = as_(DEV)
    own, other = shop.silence(by=dev), shop.silence()

    assert dev.put(f"{shop.silences}/{own['id']}", json={"comment": "x"}).status_code == 200
    assert dev.delete(f"{shop.silences}/{other['id']}").status_code == 403
    assert dev.post(shop.silences, json={"matchers": [], "duration": 60, "comment": "x"}).status_code == 403
    assert shop.silence([])["matchers"] == []


@pytest.mark.parametrize(
    ("person", "status"), [(MAX, 200), (DEV, 200), (RITA, 403), (SAM, 404), (NOBODY, 401)], ids=str
)
def test_developers_read_silences(person, status, as_, shop):
    assert as_(person).get(shop.silences).status_code == status


REFUSALS = [
    ({"comment": None}, {"error": "comment is missing"}),
    ({"matchers": None}, {"error": "matchers is missing"}),
    ({"duration": None}, {"error": "ends_at, duration are missing, exactly one parameter must be provided"}),
    ({"comment": " "}, {"message": {"comment": ["can't be blank"]}}),
    ({"duration": 0}, {"message": {"ends_at": ["must be after the start"]}}),
    ({"duration": 366 * 86_400}, {"message": {"ends_at": ["must be at most 365 days after the start"]}}),
    (
        {"matchers": [{"field": "x", "operator": "is", "value": ""}]},
        {"message": {"matchers": ["have an unknown field: x"]}},
    ),
    (
        {"matchers": [{"field": "title", "operator": "like", "value": ""}]},
        {"error": "matchers[0][operator] does not have a valid value"},
    ),
]


@pytest.mark.parametrize(("fields", "body"), REFUSALS, ids=map(str, range(len(REFUSALS))))
def test_invalid_silences_are_refused(fields, body, shop):
    sent = {"comment": "Move", "matchers": TITLE, "duration": 60} | fields
    response = shop.client.post(shop.silences, json={name: value for name, value in sent.items() if value is not None})

    assert (response.status_code, response.json) == (400, body)


def test_no_incident_is_opened_by_itself_for_a_silenced_alert(shop, as_admin, project):
    with unit_of_work():
        db.session.add(IncidentSetting(project_id=project.id, create_issue=True))
    silence = shop.silence()
    silenced = shop.alert()
    shop.client.delete(f"{shop.silences}/{silence['id']}")
    shop.passes()
    other = shop.alert("disk slow")

    assert (shop.read(silenced)["issue"], shop.read(other)["issue"] is None) == (None, False)


def test_a_silence_is_made_from_an_alert_changed_and_ended_on_pages(shop, maintainer, project):
    iid = shop.alert()
    own = f"/{project.full_path}/-/silences"
    assert "While a silence lasts" in maintainer.get(own).text
    assert f"{own}/new?title=disk+full" in maintainer.get(f"/{project.full_path}/-/alert_management/{iid}/details").text
    assert 'value="disk full"' in maintainer.get(f"{own}/new?title=disk+full").text

    refused = maintainer.send(f"{own}/new", field_1="title", operator_1="is", value_1="disk full", length="3600")
    assert (refused.status_code, "Comment can&#39;t be blank" in refused.text) == (422, True)
    maintainer.send(f"{own}/new", field_1="title", operator_1="is", value_1="disk full", length="3600", comment="Move")
    shop.passes()
    [silence] = shop.client.get(shop.silences).json
    assert "title is “disk full”" in maintainer.get(f"{own}?state=active").text
    assert "Silenced until" in maintainer.get(f"/{project.full_path}/-/alert_management?silenced=yes").text
    maintainer.send(f"{own}/{silence['id']}", length="until", ends_at="2027-03-01T15:00", comment="Longer")
    assert shop.client.get(shop.silences).json[0]["ends_at"] == "2027-03-01T15:00:00.000Z"
    maintainer.send(f"{own}/{silence['id']}/end")
    assert "ended early by Max" in maintainer.get(own).text


def test_a_silence_of_a_group_concerns_the_projects_below_it(shop, as_, group):
    address = f"/groups/{group.id}/silences"
    made = as_(OLIVE).post(address, json={"matchers": TITLE, "duration": 3600, "comment": "Move"}).json
    shop.passes()
    iid = shop.alert()

    listed = shop.client.get(shop.silences).json
    assert (made["scope"], [one["id"] for one in listed], shop.read(iid)["silence_id"]) == (
        *("group", [made["id"]]),
        made["id"],
    )
    changed = [shop.client.put(f"{shop.silences}/{made['id']}", json={"comment": "Mine"}).status_code]
    changed += [shop.client.delete(f"{shop.silences}/{made['id']}").status_code]
    assert changed == [404, 404]
    assert [as_(name).post(address, json={}).status_code for name in (MAX, SAM)] == [403, 404]
    assert as_(OLIVE).delete(f"{address}/{made['id']}").status_code == 204


def test_a_silence_ends_ten_minutes_after_nothing_is_open(shop):
    silence = shop.silence(ends_when_resolved=True)
    shop.passes(minutes=11)
    first, second = shop.alert(), shop.alert("disk slow")
    shop.resolve(first)
    shop.passes(minutes=11)
    shop.resolve(second)
    shop.passes()
    before = shop.client.get(f"{shop.silences}/{silence['id']}").json
    shop.passes(minutes=10)

    after = shop.client.get(f"{shop.silences}/{silence['id']}").json
    assert (before["state"], before["ends_when_resolved"]) == ("active", True)
    assert (after["state"], after["ended_at"], after["ended_by"]) == ("expired", "2027-03-01T12:32:00.000Z", None)


def test_pages_of_silences_of_a_group(shop, visit, group):
    owner = visit(OLIVE)
    own = f"/groups/{group.full_path}/-/silences"
    form = {"field_1": "title", "operator_1": "matches", "value_1": "disk*", "length": "3600", "comment": "Move"}

    address = owner.send(f"{own}/new", **form | {"ends_when_resolved": "y"}).headers["Location"]
    shop.passes()
    assert "or 10 minutes after nothing that it matched is open" in owner.get(address).text
    listed = visit(DEV).get(f"/{shop.project.full_path}/-/silences").text
    shown = visit(DEV).get(f"/{shop.project.full_path}/-/silences/{address.rpartition('/')[2]}").text
    assert ("(group)" in listed, "with all projects below it" in shown, "End now" in shown) == (True, True, False)
    owner.send(f"{address}/end")
    assert "ended early by Olive" in owner.get(own).text
