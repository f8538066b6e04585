"""Heartbeats: API, calls, missing ones, downtime (heartbeats reference)."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.areas.heartbeats.checking import allow_for_downtime
from project_service.areas.heartbeats.jobs import check_heartbeats
from project_service.domain.heartbeats.models import Heartbeat, HeartbeatPing
from project_service.domain.heartbeats.pings import STORED_PINGS
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import DEV, MAX, NOBODY, OLIVE, RITA, SAM

NOON = dt.datetime(2027, 3, 1, 12, tzinfo=dt.UTC)
HOUR, MINUTE = dt.timedelta(hours=1), dt.timedelta(minutes=1)


class Time:
    """A clock that tests move; heartbeats are checked every 10 seconds unless the service is down."""

    def __init__(self):
        self.now = NOON

    def passes(self, time, *, down=False):
        if not down:
            check()
            with unit_of_work():
                db.session.execute(db.text("UPDATE heartbeat_checks SET checked_at = :now"), {"now": self._text(time)})
        self.now += time
        check()

    def _text(self, time):
        moment = self.now + time
        return moment.replace(tzinfo=None) if db.engine.dialect.name == "sqlite" else moment


def check():
    db.session.remove()
    check_heartbeats()
    db.session.remove()


@pytest.fixture
def time(monkeypatch):
    time = Time()
    monkeypatch.setattr(clock, "now", lambda: time.now)
    return time


@pytest.fixture
def api(as_maintainer, project, time):
    """The heartbeats of the shop, as a maintainer."""

    class Heartbeats:
        address = f"/projects/{project.id}/heartbeats"

        def create(self, **fields):
            response = as_maintainer.post(self.address, json={"name": "Backup"} | fields)
            assert response.status_code == 201, response.json
            return response.json

        def read(self, heartbeat):
            return as_maintainer.get(f"{self.address}/{heartbeat['id']}").json

        def alerts(self):
            return as_maintainer.get(f"/projects/{project.id}/alert_management_alerts").json

    return Heartbeats()


@pytest.fixture
def call(browser):
    def send(heartbeat, end="", method="GET", **options):
        path = "/-/heartbeats/" + heartbeat["ping_url"].rpartition("/")[2] + end
        db.session.remove()
        response = browser.open(path, method=method, **options)
        db.session.remove()
        return response.status_code, response.text

    return send


def test_a_heartbeat_has_defaults_and_waits_for_its_first_call_for_ever(api, time):
    heartbeat = api.create()
    time.passes(400 * 24 * HOUR)

    heartbeat = api.read(heartbeat)
    assert (heartbeat["kind"], heartbeat["period"], heartbeat["grace"]) == ("interval", 86_400, 3_600)
    assert (heartbeat["state"], heartbeat["due_at"], heartbeat["severity"]) == ("new", None, "critical")
    assert api.alerts() == []


def test_a_missing_call_opens_an_alert_and_the_next_call_resolves_it(api, call, time):
    heartbeat = api.create(period=3600, grace=600, severity="high")
    assert call(heartbeat) == (200, "OK")
    time.passes(HOUR + MINUTE)
    late = api.read(heartbeat)["state"]
    time.passes(10 * MINUTE)
    check()

    [alert] = api.alerts()
    down = api.read(heartbeat)
    call(heartbeat)

    assert (late, down["state"], down["alert_iid"]) == ("late", "down", alert["iid"])
    assert (alert["title"], alert["status"], alert["severity"]) == ("Heartbeat missing: Backup", "triggered", "high")
    assert alert["description"] == ("No call since 2027-03-01 12:00:00 UTC; expected every 1 hour, grace 10 minutes.")
    assert (alert["monitoring_tool"], alert["started_at"]) == ("Heartbeat", "2027-03-01T13:00:00.000Z")
    [alert] = api.alerts()
    assert (alert["status"], alert["ended_at"]) == ("resolved", "2027-03-01T13:11:00.000Z")
    assert (api.read(heartbeat)["state"], api.read(heartbeat)["alert_iid"]) == ("up", None)


def test_an_alert_resolved_by_hand_stays_so_until_the_heartbeat_was_up_again(api, call, time, as_maintainer, project):
    heartbeat = api.create(period=60, grace=60)
    call(heartbeat)
    time.passes(HOUR)
    address = f"/projects/{project.id}/alert_management_alerts/1"
    assert as_maintainer.put(address, json={"status": "resolved"}).status_code == 200
    time.passes(HOUR)
    call(heartbeat, "/fail")
    still = [one["status"] for one in api.alerts()]
    call(heartbeat)
    time.passes(HOUR)

    assert (still, sorted(one["status"] for one in api.alerts())) == (["resolved"], ["resolved", "triggered"])


@pytest.mark.parametrize("end", ["/1", "/255", "/fail"], ids=["1", "255", "fail"])
def test_a_failure_sets_it_down_at_once_with_the_body_as_description(end, api, call, time):
    heartbeat = api.create()

    assert call(heartbeat, end, "POST", data="disk full\0") == (200, "OK")

    [alert] = api.alerts()
    assert (alert["title"], api.read(heartbeat)["state"]) == ("Heartbeat failed: Backup", "down")
    assert alert["description"].endswith("disk full")


@pytest.mark.parametrize(
    ("end", "answer"),
    [("/0", (200, "OK")), ("/256", (400, "invalid exit status")), ("/stop", (404, "not found"))],
    ids=["0", "256", "word"],
)
def test_exit_statuses_end_at_255(end, answer, api, call):
    assert call(api.create(), end) == answer


def test_unknown_keys_are_not_found_and_calls_are_limited(api, call, browser, as_maintainer):
    heartbeat = api.create()
    answers = [call(heartbeat, method="HEAD")[0] for _ in range(61)]
    rotated = as_maintainer.post(f"{api.address}/{heartbeat['id']}/rotate_key").json

    assert (answers, rotated["ping_url"] == heartbeat["ping_url"]) == ([200] * 60 + [429], False)
    assert call(heartbeat) == (404, "not found")
    assert browser.get("/-/heartbeats/zz").status_code == 404


def test_a_run_that_does_not_end_within_the_grace_is_missing(api, call, time):
    heartbeat = api.create(grace=60)
    call(heartbeat, "/start")
    time.now += 30 * dt.timedelta(seconds=1)
    call(heartbeat)
    call(heartbeat, "/start")
    time.passes(2 * MINUTE)

    [alert] = api.alerts()
    durations = [ping.duration for ping in db.session.query(HeartbeatPing).order_by(HeartbeatPing.id)]
    assert alert["description"] == "Started at 2027-03-01 12:00:30 UTC; no success within 1 minute."
    assert durations == [None, 30.0, None]


def test_paused_heartbeats_are_not_missing_and_a_call_ends_the_pause(api, call, time, as_maintainer):
    heartbeat = api.create(period=60, grace=60)
    call(heartbeat)
    paused = as_maintainer.post(f"{api.address}/{heartbeat['id']}/pause")
    time.passes(HOUR)
    alerts = api.alerts()
    call(heartbeat)

    assert (paused.status_code, paused.json["state"], alerts) == (201, "paused", [])
    assert api.read(heartbeat)["state"] == "up"


def test_downtime_of_the_service_opens_no_alert(api, call, time):
    heartbeats = [api.create(name=name, period=period) for name, period in (("a", 60), ("b", 3600), ("c", 86_400))]
    for heartbeat in heartbeats:
        call(heartbeat)
    check()
    time.passes(26 * HOUR, down=True)

    assert api.alerts() == []
    assert {api.read(heartbeat)["state"] for heartbeat in heartbeats} == {"up"}
    time.passes(24 * HOUR + 3 * HOUR)
    assert len(api.alerts()) == 3


def test_only_the_last_calls_are_stored(api, call, time, people, as_):
    heartbeat = api.create()
    for _ in range(STORED_PINGS + 2):
        call(heartbeat, "/0", "POST", data="done")
        time.now += 2 * MINUTE

    listed = as_(DEV).get(f"{api.address}/{heartbeat['id']}/pings?per_page=100")
    assert (listed.headers["X-Total"], listed.json[0]["body"], listed.json[0]["exit_status"]) == ("100", "done", 0)


def test_a_changed_period_applies_to_the_next_call(api, call, time, as_maintainer):
    heartbeat = api.create()
    call(heartbeat)
    time.now += 5 * HOUR

    changed = as_maintainer.put(f"{api.address}/{heartbeat['id']}", json={"period": 3600}).json

    assert (changed["due_at"], changed["state"]) == ("2027-03-01T18:00:00.000Z", "up")


REFUSALS = [
    ({"name": None}, {"error": "name is missing"}),
    ({"name": " "}, {"message": {"name": ["can't be blank"]}}),
    ({"name": "n" * 101}, {"message": {"name": ["is too long (maximum is 100 characters)"]}}),
    ({"kind": "daily"}, {"error": "kind does not have a valid value"}),
    ({"period": 59}, {"message": {"period": ["must be between 60 and 31536000 seconds"]}}),
    ({"grace": 31_536_001}, {"message": {"grace": ["must be between 60 and 31536000 seconds"]}}),
    ({"kind": "cron", "schedule": "61 * * * *"}, {"message": {"schedule": ["is not a valid cron expression"]}}),
    ({"kind": "cron", "schedule": "0 0 30 2 *"}, {"message": {"schedule": ["is not a valid cron expression"]}}),
    ({"kind": "cron"}, {"message": {"schedule": ["is not a valid cron expression"]}}),
    ({"time_zone": "Mars/Base"}, {"message": {"time_zone": ["is not a known time zone"]}}),
    ({"runbook": "javascript:alert(1)"}, {"message": {"runbook": ["must be an HTTP URL"]}}),
]


@pytest.mark.parametrize(
    ("fields", "body"), REFUSALS, ids=[next(iter(body[1].values())) and str(n) for n, body in enumerate(REFUSALS)]
)
def test_invalid_heartbeats_are_refused(fields, body, as_maintainer, project):
    sent = {name: value for name, value in ({"name": "Backup"} | fields).items() if value is not None}
    response = as_maintainer.post(f"/projects/{project.id}/heartbeats", json=sent)

    assert (response.status_code, response.json) == (400, body)


@pytest.mark.both_databases
def test_names_are_unique_and_heartbeats_are_limited(api, as_maintainer, project):
    heartbeat = api.create()
    taken = as_maintainer.post(api.address, json={"name": "Backup"})
    nothing = as_maintainer.put(f"{api.address}/{heartbeat['id']}", json={})
    with unit_of_work():
        rows = [
            Heartbeat(
                project_id=project.id, name=str(n), key="k", key_digest=str(n), period_seconds=60, grace_seconds=60
            )
            for n in range(99)
        ]
        db.session.add_all(rows)

    assert (taken.status_code, taken.json) == (400, {"message": {"name": ["has already been taken"]}})
    assert (nothing.status_code, nothing.json) == (400, {"error": "No parameters provided"})
    assert as_maintainer.post(api.address, json={"name": "One more"}).json == {
        "message": {"base": ["Maximum number of heartbeats (100) exceeded"]}
    }


@pytest.mark.parametrize(
    ("person", "status"), [(MAX, 200), (OLIVE, 200), (DEV, 200), (RITA, 403), (SAM, 404), (NOBODY, 401)]
)
def test_developers_list_heartbeats_and_maintainers_see_their_urls(person, status, as_, api):
    api.create()
    response = as_(person).get(api.address)

    assert response.status_code == status
    if status == 200:
        assert ("ping_url" in response.json[0]) == (person is not DEV)


def test_a_deleted_heartbeat_is_not_found(api, as_maintainer):
    address = f"{api.address}/{api.create()['id']}"

    assert [as_maintainer.delete(address).status_code for _ in range(2)] == [204, 404]
    assert as_maintainer.get(address).json == {"message": "404 Heartbeat Not Found"}


def test_a_firing_watchdog_is_a_call_and_is_stored_nowhere(api, as_maintainer, browser, project, time):
    heartbeat = api.create(kind="alert", period=600, grace=60)
    integration = as_maintainer.post(
        f"/projects/{project.id}/alert_integrations", json={"name": "Prom", "type": "http", "active": True}
    )
    url, token = integration.json["url"], integration.json["token"]
    send = {"headers": {"Authorization": f"Bearer {token}"}, "json": {"title": "Watchdog"}}
    answer = browser.post(url.partition("localhost")[2], **send)
    db.session.remove()

    assert (answer.status_code, api.alerts(), api.read(heartbeat)["state"]) == (200, [], "up")
    time.passes(HOUR)
    assert [one["title"] for one in api.alerts()] == ["Heartbeat missing: Backup"]


def test_two_schedulers_open_one_alert(api, call, time):
    call(api.create(period=60, grace=60))
    time.passes(HOUR)
    with unit_of_work():
        allow_for_downtime()
    check()
    check()

    assert [(one["title"], one["event_count"]) for one in api.alerts()] == [("Heartbeat missing: Backup", 1)]
