"""REST of web hooks (webhooks reference, sections 1 to 7)."""

from __future__ import annotations

import pytest

from project_service.kit import deliveries
from project_service.kit.db.session import db
from project_service.kit.security.outgoing_http import rules
from tests.support.sample_data import DEV, MAX, NOBODY, OLIVE, SAM

SECRETS = ("token", "signing_token")
SIGNING_TOKEN = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="  # the key of a published vector


def hooks(project):
    return f"/projects/{project.id}/hooks"


def test_a_hook_has_the_defaults_of_the_reference(make_hook, project, receiver):
    hook = make_hook(token="secret")

    assert (hook["url"], hook["project_id"], hook["push_events"]) == (receiver.url, project.id, True)
    assert (hook["issues_events"], hook["confidential_note_events"], hook["token_present"]) == (False, None, True)
    assert (hook["alert_status"], hook["disabled_until"], hook["branch_filter_strategy"]) == (
        *("executable", None, "wildcard"),
    )
    assert not set(SECRETS) & set(hook)


def test_a_blank_branch_filter_is_shown_as_it_was_sent(as_maintainer, make_hook, project):
    hook = make_hook(push_events_branch_filter="")

    changed = as_maintainer.put(f"{hooks(project)}/{hook['id']}", json={"push_events_branch_filter": None})

    assert (hook["push_events_branch_filter"], changed.json["push_events_branch_filter"]) == ("", None)


def test_hooks_are_listed_without_names_of_secrets_and_shown_with_them(as_maintainer, make_hook, project):
    hook = make_hook(custom_headers=[{"key": "X-Key", "value": "v"}])

    [listed] = as_maintainer.get(hooks(project)).json
    shown = as_maintainer.get(f"{hooks(project)}/{hook['id']}").json

    assert "custom_headers" not in listed
    assert (shown["custom_headers"], shown["url_variables"]) == ([{"key": "X-Key"}], [])


@pytest.mark.parametrize(("person", "status"), [(MAX, 200), (OLIVE, 200), (DEV, 403), (SAM, 404), (NOBODY, 401)])
def test_maintainers_list_hooks(person, status, as_, project):
    assert as_(person).get(hooks(project)).status_code == status


REFUSALS = [
    ({}, 400, {"error": "url is missing"}),
    ({"url": "http://127.0.0.1:1/", "push_events": "maybe"}, 400, {"error": "push_events is invalid"}),
    (
        {"url": "http://127.0.0.1:1/", "branch_filter_strategy": "x"},
        400,
        {"error": "branch_filter_strategy does not have a valid value"},
    ),
    ({"url": "ftp://127.0.0.1/"}, 422, {"error": "Invalid url given"}),
    ({"url": ""}, 422, {"error": "Invalid url given"}),
    ({"url": "http://127.0.0.1:1/{key}"}, 422, {"error": "Invalid url given"}),
    (
        {"url": "http://127.0.0.1:1/", "push_events_branch_filter": "a..b"},
        422,
        {"error": "Invalid branch filter given"},
    ),
    (
        {"url": "http://127.0.0.1:1/", "push_events_branch_filter": "(", "branch_filter_strategy": "regex"},
        422,
        {"error": "Invalid branch filter given"},
    ),
    (
        {"url": "http://127.0.0.1:1/", "custom_headers": [{"key": "a b", "value": "v"}]},
        422,
        {"error": "Custom headers must be a valid json schema"},
    ),
    ({"url": "http://127.0.0.1:1/", "token": "a\nb"}, 422, {"error": "Token is invalid"}),
]


@pytest.mark.parametrize(("fields", "status", "body"), REFUSALS)
def test_bad_hooks_are_refused(fields, status, body, as_maintainer, local_hooks, project):
    response = as_maintainer.post(hooks(project), json=fields)

    assert (response.status_code, response.json) == (status, body)


def test_a_local_address_is_refused(as_maintainer, project):
    response = as_maintainer.post(hooks(project), json={"url": "http://127.0.0.1:80/"})

    assert (response.status_code, response.json) == (422, {"error": "Invalid url given"})


def test_secrets_do_not_follow_another_url(as_maintainer, make_hook, project):
    hook = make_hook(token="secret", custom_headers=[{"key": "X-Key", "value": "v"}])

    response = as_maintainer.put(f"{hooks(project)}/{hook['id']}", json={"url": "http://127.0.0.1:9/"})

    assert (response.status_code, response.json["token_present"], response.json["custom_headers"]) == (200, False, [])


def test_an_update_without_parameters_is_refused(as_maintainer, make_hook, project):
    path = f"{hooks(project)}/{make_hook()['id']}"

    assert as_maintainer.put(path).json == {"error": "No parameters provided"}
    assert as_maintainer.put(path, json={"token": "a\nb"}).json == {"message": {"token": ["is invalid"]}}


def test_url_variables_are_set_and_removed(as_maintainer, make_hook, project, receiver):
    hook = make_hook(url=f"{receiver.url}/{{key}}", url_variables=[{"key": "key", "value": "one"}])
    path = f"{hooks(project)}/{hook['id']}/url_variables"

    assert as_maintainer.put(f"{path}/key", json={"value": "two"}).status_code == 204
    assert as_maintainer.put(f"{path}/key").json == {"error": "value is missing"}
    assert as_maintainer.put(f"{path}/-", json={"value": "x"}).json == {"error": "Illegal key or value"}
    assert as_maintainer.delete(f"{path}/other").json == {"message": "404 URL variable Not Found"}
    as_maintainer.post(f"{hooks(project)}/{hook['id']}/test/push_events")
    assert [address for address, _, _ in receiver.requests] == ["/hook/two"]


def test_a_hook_is_deleted_with_what_waits(as_maintainer, make_hook, project, receiver):
    hook = make_hook(issues_events=True)
    as_maintainer.post(f"/projects/{project.id}/issues", json={"title": "A"})

    statuses = [as_maintainer.delete(f"{hooks(project)}/{hook['id']}").status_code for _ in range(2)]
    deliveries.send_all_due()

    assert (statuses, receiver.requests) == ([204, 404], [])


def test_a_test_sends_now_and_enables_the_hook(as_maintainer, make_hook, project, receiver):
    path = f"{hooks(project)}/{make_hook()['id']}"

    response = as_maintainer.post(f"{path}/test/milestone_events")

    assert (response.status_code, response.json) == (201, {"message": "201 Created"})
    assert receiver.header("X-Gitlab-Event") == ["Milestone Hook"]
    receiver.status, receiver.body = 500, b"broken"
    assert as_maintainer.post(f"{path}/test/milestone_events").json == {"message": "broken"}
    missing = as_maintainer.post(f"{path}/test/issues_events")
    assert (missing.status_code, missing.json) == (422, {"message": "Ensure the project has issues."})
    assert as_maintainer.post(f"{path}/test/x").json == {"error": "trigger does not have a valid value"}


def test_tests_are_limited(as_maintainer, make_hook, project):
    path = f"{hooks(project)}/{make_hook()['id']}/test/milestone_events"

    assert [as_maintainer.post(path).status_code for _ in range(6)] == [201] * 5 + [429]


def test_the_log_is_redacted_filtered_and_repeated(as_maintainer, make_hook, project, receiver):
    hook = make_hook(issues_events=True, token="secret", custom_headers=[{"key": "X-Key", "value": "v"}])
    as_maintainer.post(f"/projects/{project.id}/issues", json={"title": "A", "description": "a@example.org"})
    deliveries.send_all_due()
    path = f"{hooks(project)}/{hook['id']}/events"

    [row] = as_maintainer.get(f"{path}?status=successful").json

    assert (row["trigger"], row["response_status"], row["response_body"]) == ("issue_hooks", "200", "thanks")
    headers = row["request_headers"]
    assert (headers["X-Gitlab-Token"], headers["X-Key"]) == ("[REDACTED]", "[REDACTED]")
    assert row["request_data"]["object_attributes"]["description"] == "[REDACTED]"
    assert as_maintainer.get(f"{path}?status=500").json == []
    assert as_maintainer.get(f"{path}?status=x").json == {"error": "status does not have a valid value"}
    response = as_maintainer.post(f"{path}/{row['id']}/resend")
    assert (response.status_code, response.json) == (201, {"response_status": 200})
    assert receiver.requests[0][2] == receiver.requests[1][2]
    assert len(set(receiver.header("Idempotency-Key"))) == 1


def test_an_attempt_is_not_repeated_to_another_url(as_maintainer, make_hook, project, receiver):
    path = f"{hooks(project)}/{make_hook()['id']}"
    as_maintainer.post(f"{path}/test/milestone_events")
    [row] = as_maintainer.get(f"{path}/events").json
    as_maintainer.put(path, json={"url": f"{receiver.url}/2"})

    response = as_maintainer.post(f"{path}/events/{row['id']}/resend")

    text = "The hook URL has changed. This log entry cannot be retried."
    assert (response.status_code, response.json) == (422, {"message": text})


def test_a_hook_of_a_group_is_tested_with_a_project_of_a_subgroup(as_, local_hooks, receiver):
    owner = as_(OLIVE)
    top = owner.post("/groups", json={"name": "Top", "path": "top"}).json["id"]
    subgroup = owner.post("/groups", json={"name": "Sub", "path": "sub", "parent_id": top}).json["id"]
    owner.post("/projects", json={"name": "deep", "namespace_id": subgroup})
    hook = owner.post(f"/groups/{top}/hooks", json={"url": receiver.url}).json["id"]

    tested = owner.post(f"/groups/{top}/hooks/{hook}/test/milestone_events")

    assert (tested.status_code, receiver.bodies[0]["project"]["path_with_namespace"]) == (201, "top/sub/deep")


def test_owners_manage_hooks_of_groups_and_admins_those_of_the_instance(as_, as_admin, group, local_hooks, receiver):
    created = as_(OLIVE).post(f"/groups/{group.id}/hooks", json={"url": receiver.url, "member_events": True})
    assert (created.status_code, created.json["group_id"], created.json["member_events"]) == (201, group.id, True)
    assert as_(MAX).get(f"/groups/{group.id}/hooks").status_code == 404

    system = as_admin.post("/hooks", json={"url": receiver.url})
    assert (system.json["push_events"], system.json["repository_update_events"]) == (False, True)
    tested = as_admin.post(f"/hooks/{system.json['id']}")
    assert (tested.status_code, tested.json["event_name"]) == (201, "project_create")
    assert receiver.header("X-Gitlab-Event") == ["System Hook"]


def test_no_transaction_is_open_while_the_host_of_a_hook_is_resolved(as_maintainer, project, monkeypatch):
    open_transactions = []
    monkeypatch.setattr(rules, "validate", lambda *_: open_transactions.append(db.session().in_transaction()))

    hook = as_maintainer.post(
        hooks(project), json={"url": "http://a.test/{a}", "url_variables": [{"key": "a", "value": "b"}]}
    )
    one = f"{hooks(project)}/{hook.json['id']}"
    answers = [
        as_maintainer.put(one, json={"url": "http://b.test/"}),
        as_maintainer.put(f"{one}/url_variables/c", json={"value": "d"}),
        as_maintainer.delete(f"{one}/url_variables/c"),
    ]

    assert [hook.status_code, *(answer.status_code for answer in answers)] == [201, 200, 204, 204]
    assert open_transactions == [False] * 4
