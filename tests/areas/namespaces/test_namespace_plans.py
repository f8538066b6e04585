"""Plans, trials and seats of groups: permissions, and counting of seats (namespaces reference, section 1)."""

from __future__ import annotations

import contextvars
import datetime as dt

import pytest
from click.testing import CliRunner

from project_service.areas.namespaces import jobs as namespace_jobs
from project_service.cli import accounts, main
from project_service.domain.access_levels import Role
from project_service.domain.namespaces import Group
from project_service.kit import clock, jobs
from project_service.kit.db.session import db
from tests.support.sample_data import ADA, DEV, GUS, MAX, OLIVE, RITA, SAM, add_member, make_group, make_project, reload

pytestmark = pytest.mark.both_databases
SEATS = {"seats_in_use", "max_seats_used"}
NO_PLAN = {"plan": "default", "trial_ends_on": None, "trial": False}


def show(client, group):
    response = client.get(f"/namespaces/{group.id}")
    assert response.status_code == 200, response.json
    return response.json


def plan_of(client, group):
    return {name: value for name, value in show(client, group).items() if name in NO_PLAN}


def seats_of(client, group):
    shown = show(client, group)
    return shown["seats_in_use"], shown["max_seats_used"]


@pytest.fixture
def run_set_plan(app, monkeypatch):
    """Runs ``namespace set-plan`` on the application of the test; returns its exit status and output."""
    monkeypatch.setattr(accounts, "create_app", lambda: app)

    def call(*arguments):
        response = contextvars.Context().run(CliRunner().invoke, main.main, ["namespace", "set-plan", *arguments])
        return response.exit_code, response.output

    return call


# The command


@pytest.mark.parametrize("plan", ["default", "free", "bronze", "silver", "premium", "gold", "ultimate"])
def test_the_command_gives_a_group_a_plan(plan, run_set_plan, group, as_):
    result = run_set_plan("ACME", plan)

    assert result == (0, f"ACME: {plan}\n")
    assert plan_of(as_(OLIVE), group) == NO_PLAN | {"plan": plan}
    assert seats_of(as_(OLIVE), group) == (0, 0)


def test_the_command_gives_a_subgroup_a_trial(run_set_plan, group, as_):
    subgroup = make_group("below", group)

    run_set_plan("acme/below", "ultimate", "--trial-ends-on", "2031-02-03")

    assert plan_of(as_(OLIVE), subgroup) == {"plan": "ultimate", "trial_ends_on": "2031-02-03", "trial": True}
    assert plan_of(as_(OLIVE), group) == NO_PLAN


def test_the_command_removes_a_plan_with_its_trial_and_seats(run_set_plan, group, as_):
    run_set_plan("acme", "gold", "--trial-ends-on", "2031-02-03")

    result = run_set_plan("acme", "none")

    assert result[0] == 0
    assert plan_of(as_(OLIVE), group) == NO_PLAN
    assert not SEATS & set(show(as_(OLIVE), group))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nothing", "gold"], 1, "there is no group nothing"),
        (["sam", "gold"], 1, "there is no group sam"),
        (["acme", "platinum"], 2, "'platinum' is not one of"),
        (["acme", "gold", "--trial-ends-on", "soon"], 2, "not a date"),
    ],
)
def test_the_command_explains_its_errors(arguments, status, message, run_set_plan, group, as_):
    exit_code, output = run_set_plan(*arguments)

    assert (exit_code, message in output) == (status, True)
    assert plan_of(as_(OLIVE), group) == NO_PLAN


# The API of groups


def test_administrators_set_a_plan_through_the_group(group, as_admin, as_):
    sent = {"plan": "premium", "trial": True, "trial_ends_on": "2031-02-03"}

    response = as_admin.put(f"/groups/{group.id}", json=sent)

    assert response.status_code == 200
    assert plan_of(as_(OLIVE), group) == sent


def test_administrators_create_a_group_with_a_plan(people, as_admin):
    created = as_admin.post("/groups", json={"name": "Rich", "path": "rich", "plan": "gold"})

    assert created.status_code == 201
    assert as_admin.get("/namespaces/rich").json["plan"] == "gold"


def test_other_changes_of_a_group_keep_its_plan(group, as_admin, as_):
    sent = {"plan": "premium", "trial": True, "trial_ends_on": "2031-02-03"}
    as_admin.put(f"/groups/{group.id}", json=sent)

    response = as_(OLIVE).put(f"/groups/{group.id}", json={"description": "new"})

    assert response.status_code == 200
    assert plan_of(as_(OLIVE), group) == sent


def test_administrators_remove_a_plan_with_its_seats(group, as_admin):
    as_admin.put(f"/groups/{group.id}", json={"plan": "premium"})
    namespace_jobs.refresh_seats()

    response = as_admin.put(f"/groups/{group.id}", json={"plan": None})
    without_plan = show(as_admin, group)
    as_admin.put(f"/groups/{group.id}", json={"plan": "premium"})

    assert (response.status_code, without_plan["plan"], SEATS & set(without_plan)) == (200, "default", set())
    assert seats_of(as_admin, group) == (0, 0)


@pytest.mark.parametrize(
    "fields",
    [{"plan": "gold"}, {"plan": None}, {"trial": True}, {"trial_ends_on": "2031-02-03"}, {"trial": False, "name": "X"}],
)
@pytest.mark.parametrize("person", [OLIVE, MAX])
def test_only_administrators_set_a_plan(person, fields, group, people, as_admin, as_):
    if person == MAX:
        add_member(group, people[MAX], Role.MAINTAINER)

    changed = as_(person).put(f"/groups/{group.id}", json=fields)
    created = as_(person).post("/groups", json={"name": "Rich", "path": "rich"} | fields)

    forbidden = (403, {"message": "403 Forbidden"})
    assert [(response.status_code, response.json) for response in (changed, created)] == [forbidden] * 2
    assert (plan_of(as_admin, group), reload(group).name) == (NO_PLAN, "Acme")
    assert as_admin.get("/namespaces/rich").status_code == 404


@pytest.mark.parametrize("plan", ["platinum", "", "GOLD"])
def test_unknown_plans_are_refused(plan, group, as_admin):
    response = as_admin.put(f"/groups/{group.id}", json={"plan": plan})

    assert (response.status_code, response.json) == (400, {"error": "plan does not have a valid value"})
    assert plan_of(as_admin, group) == NO_PLAN


# Visibility


def test_members_see_seats_and_owners_see_the_plan(group, people, as_admin, as_):
    add_member(group, people[GUS], Role.GUEST)
    as_admin.put(f"/groups/{group.id}", json={"plan": "premium"})
    namespace_jobs.refresh_seats()

    shown = {person: show(as_(person), group) for person in (ADA, OLIVE, GUS)}

    assert [(shown[person]["seats_in_use"], shown[person]["max_seats_used"]) for person in shown] == [(2, 2)] * 3
    assert {person: "plan" in shown[person] for person in shown} == {ADA: True, OLIVE: True, GUS: False}
    assert list(shown[OLIVE])[-7:] == [
        *("members_count_with_descendants", "billable_members_count", "seats_in_use", "max_seats_used"),
        *("plan", "trial_ends_on", "trial"),
    ]


# Seats


def test_seats_are_counted_once_a_day(group, as_admin, run_jobs):
    as_admin.put(f"/groups/{group.id}", json={"plan": "premium"})
    entry = next(entry for name, entry in jobs.PERIODIC_JOBS.items() if name.endswith("refresh_seats"))

    jobs.start_periodic()
    jobs.start_periodic()
    run_jobs()

    assert entry.every == dt.timedelta(days=1)
    assert seats_of(as_admin, group) == (1, 1)


def test_max_seats_used_is_the_highest_count_so_far(group, people, as_admin):
    as_admin.put(f"/groups/{group.id}", json={"plan": "premium"})
    actual = []
    memberships = [add_member(group, people[name], Role.REPORTER) for name in (DEV, RITA)]
    for removed in (*memberships, None):
        namespace_jobs.refresh_seats()
        actual.append(seats_of(as_admin, group))
        if removed is not None:
            db.session.delete(reload(removed))
            db.session.commit()

    assert actual == [(3, 3), (2, 3), (1, 3)]


@pytest.mark.parametrize(
    ("plan", "seats"), [("default", 0), ("free", 0), ("bronze", 3), ("premium", 3), ("gold", 2), ("ultimate", 2)]
)
def test_free_plans_and_guests_of_the_top_plan_use_no_seats(plan, seats, group, people, as_admin):
    add_member(group, people[GUS], Role.GUEST)
    add_member(make_project("shop", make_group("below", group)), people[SAM], Role.DEVELOPER)
    as_admin.put(f"/groups/{group.id}", json={"plan": plan})

    namespace_jobs.refresh_seats()

    assert seats_of(as_admin, group) == (seats, seats)


def test_seats_are_counted_only_for_groups_with_a_plan(people, as_admin, monkeypatch):
    monkeypatch.setattr(namespace_jobs, "GROUP_BATCH_SIZE", 2)
    groups_with_plan = [make_group(f"rich{number}", plan="premium") for number in range(5)]
    group_without_plan = make_group("poor")
    for group in (*groups_with_plan, group_without_plan):
        add_member(group, people[DEV], Role.DEVELOPER)

    for _ in range(2):
        namespace_jobs.refresh_seats()

    assert [seats_of(as_admin, group) for group in groups_with_plan] == [(1, 1)] * 5
    assert not SEATS & set(show(as_admin, group_without_plan))
    assert db.session.get(Group, group_without_plan.id).seats_in_use == 0


def test_expired_and_blocked_members_use_no_seats(group, people, as_admin):
    as_admin.put(f"/groups/{group.id}", json={"plan": "premium"})
    add_member(group, people[DEV], Role.DEVELOPER, clock.today())
    add_member(group, people[RITA], Role.REPORTER)
    as_admin.post(f"/users/{people[RITA].id}/block")

    namespace_jobs.refresh_seats()

    assert seats_of(as_admin, group) == (1, 1)
