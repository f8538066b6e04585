"""What hooks are sent, and how: a real receiver that fails, redirects and answers too much."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import os
from pathlib import Path

import pytest
from sqlalchemy import select

from project_service.areas.alerts.alerts.service import change_status
from project_service.areas.alerts.effects.hooks import SHOWN, announce_ingested, listeners
from project_service.areas.alerts.models import Alert, Status
from project_service.areas.webhooks.models import WebHook, WebHookLog
from project_service.areas.webhooks.requests import signature
from project_service.areas.webhooks.sender import share_of
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit import clock, deliveries
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.deliveries import Delivery
from tests.areas.webhooks.test_hook_routes import SIGNING_TOKEN, hooks
from tests.support.sample_data import OLIVE, SAM

SAMPLES = Path(os.environ.get("PROJECT_SERVICE_SHARED", "../shared")) / "data" / "webhooks"


@pytest.fixture
def later(monkeypatch):
    real, passed = clock.now, [dt.timedelta()]
    monkeypatch.setattr(clock, "now", lambda: real() + passed[0])

    def move(**time):
        passed[0] += dt.timedelta(**time)

    return move


def open_issue(client, project, title="A", **fields):
    return client.post(f"/projects/{project.id}/issues", json={"title": title} | fields).json


def keys_of(value):
    return {key: keys_of(item) for key, item in value.items()} if isinstance(value, dict) else None


def missing_keys(expected, actual, at=""):
    """The keys of a sample that a payload lacks; those of free-form changes are not compared."""
    for key, item in expected.items():
        if key not in actual:
            yield f"{at}{key}"
        elif isinstance(item, dict) and isinstance(actual[key], dict) and key != "changes":
            yield from missing_keys(item, actual[key], f"{at}{key}.")


def check_sample(name, payload):
    path = SAMPLES / f"{name}.json"
    if not path.exists():
        pytest.skip("no sample data")
    assert list(missing_keys(json.loads(path.read_text()), payload)) == []


def test_hooks_of_all_projects_of_a_person_use_the_same_threads():
    personal = [Project(id=number, namespace=Namespace(kind="user", owner_id=7)) for number in (1, 2)]
    in_group = Project(id=3, namespace=Namespace(kind="group"))

    shares = [share_of(WebHook(project=project, project_id=project.id)) for project in (*personal, in_group)]

    assert shares == ["user:7", "user:7", "project:3"]


def test_the_signature_is_that_of_the_published_vector():
    key = "f5e5f430-f57b-4e6e-9fac-d9128cd7232f"

    assert signature(SIGNING_TOKEN, key, 1772600767, b'{"object_kind":"push"}') == (
        "v1,fNrhi5P747kgQapPAc6XUOlmCVL/K93aIRysbZjcvaM="
    )


def test_an_issue_is_sent_signed_with_all_headers(as_maintainer, make_hook, project, receiver):
    make_hook(
        issues_events=True,
        token="secret",
        signing_token=SIGNING_TOKEN,
        custom_headers=[{"key": "X-Own", "value": "v"}, {"key": "x-gitlab-event", "value": "forged"}],
    )
    open_issue(as_maintainer, project)

    deliveries.send_all_due()

    [(_, headers, body)] = receiver.requests
    assert (headers["X-Gitlab-Event"], headers["X-Gitlab-Token"], headers["X-Own"]) == ("Issue Hook", "secret", "v")
    assert headers["User-Agent"].startswith("GitLab/")
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(base64.b64decode(SIGNING_TOKEN.removeprefix("whsec_")), signed, hashlib.sha256)
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert headers["webhook-id"] == headers["Idempotency-Key"]


def test_events_of_issues_have_the_keys_of_the_samples_and_arrive_in_order(as_maintainer, make_hook, project, receiver):
    make_hook(issues_events=True, confidential_issues_events=True, note_events=True, confidential_note_events=True)
    issue = open_issue(as_maintainer, project, labels="bug", assignee_ids=[project.creator_id or 0])
    path = f"/projects/{project.id}/issues/{issue['iid']}"
    as_maintainer.post(f"{path}/notes", json={"body": "Seen"})
    as_maintainer.put(path, json={"title": "B"})
    as_maintainer.put(path, json={"title": "B"})
    as_maintainer.put(path, json={"confidential": True})
    as_maintainer.post(f"{path}/notes", json={"body": "Secret"})
    as_maintainer.put(path, json={"state_event": "close"})

    deliveries.send_all_due()

    assert receiver.header("X-Gitlab-Event") == [
        *("Issue Hook", "Note Hook", "Issue Hook", "Confidential Issue Hook"),
        *("Confidential Note Hook", "Confidential Issue Hook"),
    ]
    opened, noted, updated, hidden, _, closed = receiver.bodies
    check_sample("issue_open", opened | {"assignees": []})
    check_sample("note_on_issue", noted)
    check_sample("confidential_issue_update", hidden | {"assignees": []})
    assert updated["changes"]["title"] == {"previous": "A", "current": "B"}
    assert hidden["changes"]["confidential"] == {"previous": False, "current": True}
    assert set(hidden["changes"]["updated_at"]) == {"previous", "current"}
    attributes = closed["object_attributes"]
    assert (attributes["action"], attributes["state_id"], closed["event_type"]) == ("close", 2, "confidential_issue")


def test_who_changed_a_comment_or_an_issue_last_is_in_the_payloads(as_, as_maintainer, make_hook, project, receiver):
    issue = open_issue(as_(OLIVE), project)
    path = f"/projects/{project.id}/issues/{issue['iid']}"
    note = as_(OLIVE).post(f"{path}/notes", json={"body": "Seen"}).json
    make_hook(issues_events=True, note_events=True)
    as_maintainer.put(path, json={"title": "B"})
    as_maintainer.put(path, json={"title": "C"})
    as_maintainer.put(f"{path}/notes/{note['id']}", json={"body": "Seen twice"})

    deliveries.send_all_due()

    first, second, noted = receiver.bodies
    editor = first["user"]["id"]
    assert first["changes"]["updated_by_id"] == {"previous": None, "current": editor}
    assert "updated_by_id" not in second["changes"]
    assert second["object_attributes"]["updated_by_id"] == noted["issue"]["updated_by_id"] == editor
    attributes = noted["object_attributes"]
    assert (attributes["action"], attributes["updated_by_id"], attributes["author_id"]) == (
        *("update", editor),
        note["author"]["id"],
    )


def test_a_comment_has_the_id_of_its_discussion(as_maintainer, make_hook, project, receiver):
    make_hook(note_events=True)
    path = f"/projects/{project.id}/issues/{open_issue(as_maintainer, project)['iid']}/discussions"
    discussion = as_maintainer.post(path, json={"body": "Why?"}).json

    deliveries.send_all_due()

    assert receiver.bodies[0]["object_attributes"]["discussion_id"] == discussion["id"]


def test_a_hook_is_not_sent_again_in_a_chain_that_it_began(as_maintainer, make_hook, project, receiver):
    make_hook(issues_events=True)
    open_issue(as_maintainer, project, title="First")
    deliveries.send_all_due()
    [chain] = receiver.header("X-Gitlab-Event-UUID")
    make_hook(issues_events=True, url=receiver.url + "/other")
    path, headers = f"/projects/{project.id}/issues", {"X-Gitlab-Event-UUID": chain}

    for title in ("Answer", "Answer of the answer"):
        as_maintainer.post(path, json={"title": title}, headers=headers)
    deliveries.send_all_due()

    sent = [
        (to, body["object_attributes"]["title"])
        for (to, _, _), body in zip(receiver.requests, receiver.bodies, strict=True)
    ]
    assert sent == [("/hook", "First"), ("/hook/other", "Answer")]
    assert receiver.header("X-Gitlab-Event-UUID") == [chain, chain]


def test_payloads_have_public_addresses_of_users_and_absolute_addresses_of_images(
    as_maintainer, make_hook, people, project, receiver
):
    make_hook(issues_events=True)
    with unit_of_work():
        people["max"].public_email = "max@example.org"
        db.session.add(people["max"])
    open_issue(as_maintainer, project, description="![a](/uploads/1/a.png) `![b](/b.png)` ![c](https://c.org/c.png)")

    deliveries.send_all_due()

    [body] = receiver.bodies
    image = f"![a]({body['project']['web_url']}/uploads/1/a.png)"
    assert body["user"]["email"] == "max@example.org"
    assert body["object_attributes"]["description"] == f"{image} `![b](/b.png)` ![c](https://c.org/c.png)"


def test_confidential_issues_are_hidden_from_other_hooks(as_maintainer, make_hook, project, receiver):
    make_hook(issues_events=True, note_events=True)
    issue = open_issue(as_maintainer, project, confidential=True)
    as_maintainer.post(f"/projects/{project.id}/issues/{issue['iid']}/notes", json={"body": "Secret"})

    deliveries.send_all_due()

    assert receiver.requests == []


def test_milestones_are_sent(as_maintainer, make_hook, project, receiver):
    make_hook(milestone_events=True)
    path = f"/projects/{project.id}/milestones"
    milestone = as_maintainer.post(path, json={"title": "v1"}).json
    as_maintainer.put(f"{path}/{milestone['id']}", json={"state_event": "close"})
    as_maintainer.delete(f"{path}/{milestone['id']}")

    deliveries.send_all_due()

    assert [body["action"] for body in receiver.bodies] == ["create", "close", "delete"]
    check_sample("milestone", receiver.bodies[1])


def failures(project):
    db.session.remove()
    hook = db.session.scalars(select(WebHook)).one()
    return hook.recent_failures, hook.alert_status


@pytest.mark.parametrize(("status", "attempts"), [(500, 2), (429, 2), (404, 1), (302, 1)])
def test_failures_are_repeated_or_final(status, attempts, as_maintainer, later, make_hook, project, receiver):
    make_hook(issues_events=True)
    receiver.status, receiver.headers = status, {"Location": "http://169.254.169.254/"}
    open_issue(as_maintainer, project)

    for _ in range(2):
        deliveries.send_all_due()
        later(seconds=11)

    assert len(receiver.requests) == attempts
    assert len(set(receiver.header("Idempotency-Key"))) == 1
    assert len(set(receiver.header("X-Gitlab-Webhook-UUID"))) == attempts


def test_a_first_attempt_passes_a_retry(as_maintainer, later, make_hook, project, receiver):
    make_hook(issues_events=True)
    receiver.status = 500
    open_issue(as_maintainer, project, "A")
    deliveries.send_all_due()
    receiver.status = 200
    open_issue(as_maintainer, project, "B")
    deliveries.send_all_due()
    later(seconds=11)
    deliveries.send_all_due()

    assert [body["object_attributes"]["title"] for body in receiver.bodies] == ["A", "B", "A"]


def test_a_hook_that_fails_is_disabled_for_a_while_and_its_events_wait(
    as_maintainer, later, make_hook, project, receiver
):
    make_hook(issues_events=True)
    receiver.status = 400
    for number in range(5):
        open_issue(as_maintainer, project, str(number))
    deliveries.send_all_due()

    assert (len(receiver.requests), failures(project)) == (4, (4, "temporarily_disabled"))

    receiver.status = 200
    later(seconds=61)
    deliveries.send_all_due()
    assert (len(receiver.requests), failures(project)) == (5, (0, "executable"))


def test_a_hook_is_disabled_for_good_drops_and_is_enabled_by_a_test(as_maintainer, make_hook, project, receiver):
    hook = make_hook(issues_events=True)
    with unit_of_work():
        db.session.get(WebHook, hook["id"]).recent_failures = 40
    open_issue(as_maintainer, project)
    deliveries.send_all_due()

    stored = db.session.get(WebHook, hook["id"])
    assert (receiver.requests, stored.dropped_events) == ([], 1)
    as_maintainer.post(f"{hooks(project)}/{hook['id']}/test/milestone_events")
    assert failures(project) == (0, "executable")


def test_a_large_answer_is_read_to_8_kilobytes(as_maintainer, make_hook, project, receiver):
    make_hook(issues_events=True)
    receiver.body = b"a" * (10 << 20)
    open_issue(as_maintainer, project)

    deliveries.send_all_due()

    assert len(db.session.scalars(select(WebHookLog.response_body)).one()) == 8 << 10


def test_an_address_that_became_forbidden_is_not_reached(as_admin, as_maintainer, make_hook, project, receiver):
    make_hook(issues_events=True)
    as_admin.put("/application/settings", json={"allow_local_requests_from_web_hooks_and_services": False})
    open_issue(as_maintainer, project)

    deliveries.send_all_due()

    log = db.session.scalars(select(WebHookLog)).one()
    assert (receiver.requests, log.response_status) == ([], "internal error")
    assert log.error == "Requests to loopback addresses are not allowed"


def test_a_template_shapes_the_body(as_maintainer, make_hook, project, receiver):
    make_hook(
        issues_events=True,
        custom_webhook_template='{"text": "{{object_attributes.title}}", "id": {{project.id}}, "no": {{a.b}}}',
    )
    open_issue(as_maintainer, project, 'A "quoted" one')

    deliveries.send_all_due()

    assert receiver.bodies == [{"text": 'A "quoted" one', "id": project.id, "no": None}]


def test_the_payload_is_stored_once_for_all_hooks(as_maintainer, make_hook, project):
    for _ in range(3):
        make_hook(issues_events=True)
    open_issue(as_maintainer, project)

    assert db.session.scalar(select(db.func.count(db.distinct(Delivery.payload_id)))) == 1
    assert db.session.scalar(select(db.func.count(Delivery.id))) == 3


def test_hooks_cost_a_change_at_most_three_statements(as_maintainer, count_queries, make_hook, project):
    path = f"/projects/{project.id}/milestones"
    as_maintainer.post(path, json={"title": "v0"})
    with count_queries() as without:
        as_maintainer.post(path, json={"title": "v1"})
    for _ in range(2):
        make_hook(milestone_events=True)
    with count_queries() as with_hooks:
        as_maintainer.post(path, json={"title": "v2"})

    assert len(with_hooks) - len(without) <= 2  # the look-up of hooks is in both


def test_members_of_projects_go_to_system_hooks_and_those_of_groups_to_both(
    as_, as_admin, group, local_hooks, people, project, receiver
):
    as_admin.post("/hooks", json={"url": f"{receiver.url}/system"})
    as_(OLIVE).post(f"/groups/{group.id}/hooks", json={"url": f"{receiver.url}/group", "member_events": True})
    member = {"user_id": people[SAM].id, "access_level": 30}
    as_(OLIVE).post(f"/projects/{project.id}/members", json=member)
    as_(OLIVE).post(f"/groups/{group.id}/members", json=member)
    as_(OLIVE).put(f"/groups/{group.id}/members/{member['user_id']}", json={"access_level": 40})

    deliveries.send_all_due()

    sent = [(path.rpartition("/")[2], json.loads(body)["event_name"]) for path, _, body in receiver.requests]
    assert sorted(sent) == [
        *(("group", "user_add_to_group"), ("group", "user_update_for_group"), ("system", "user_add_to_group")),
        *(("system", "user_add_to_team"), ("system", "user_update_for_group")),
    ]
    by_name = {body["event_name"]: body for body in receiver.bodies}
    check_sample("members", by_name)


def test_pushes_have_the_keys_of_the_samples_and_pass_the_filter_of_branches(
    as_maintainer, make_hook, project, receiver
):
    make_hook(tag_push_events=True, push_events_branch_filter="feature/*")
    make_hook(push_events=True, branch_filter_strategy="regex", push_events_branch_filter="^ma.n$")
    path = f"/projects/{project.id}/repository"
    content = {"commit_message": "Add a file", "content": "x"}
    created = as_maintainer.post(f"{path}/files/a.txt", json=content | {"branch": "main"})
    assert created.status_code == 201, created.json
    tagged = as_maintainer.post(f"{path}/tags", json={"tag_name": "v1", "ref": "main", "message": "First"})
    assert tagged.status_code == 201, tagged.json

    deliveries.send_all_due()

    by_kind = {body["object_kind"]: body for body in receiver.bodies}
    assert (len(receiver.requests), by_kind["tag_push"]["message"]) == (2, "First")
    check_sample("push", by_kind["push"])
    check_sample("tag_push", by_kind["tag_push"])
    [commit] = by_kind["push"]["commits"]
    assert (commit["title"], commit["added"], by_kind["push"]["total_commits_count"]) == ("Add a file", ["a.txt"], 1)


def test_an_alert_is_sent_when_it_is_opened_and_when_its_status_changes(make_hook, people, project, receiver):
    make_hook(alert_events=True)
    with unit_of_work():
        now = clock.now()
        alert = Alert(project_id=project.id, iid=1, title="Disk full", started_at=now)
        db.session.add(alert)
        db.session.flush()
        announce_ingested([alert], {}, listeners(project.id), has_silences=False)
        change_status(people["max"], alert, Status.RESOLVED)

    deliveries.send_all_due()

    assert [body["object_attributes"]["action"] for body in receiver.bodies] == ["open", "resolve"]
    check_sample("alert", receiver.bodies[0])


def test_hooks_cost_a_batch_of_alerts_as_few_statements_as_one_alert(count_queries, make_hook, project, receiver):
    make_hook(alert_events=True)
    counts = []
    for number in (1, 20):
        with unit_of_work():
            about = {"project_id": project.id, "title": "A", "started_at": clock.now()}
            db.session.add_all(Alert(iid=len(counts) * 100 + n, **about) for n in range(number))
        db.session.remove()
        with unit_of_work(), count_queries() as queries:
            newest = select(Alert).order_by(Alert.id.desc()).limit(number).options(*SHOWN)
            announce_ingested(db.session.scalars(newest).all(), {}, listeners(project.id), has_silences=False)
        counts.append(len(queries))
    deliveries.send_all_due()

    assert (counts[0], len(receiver.requests)) == (counts[1], 21)
