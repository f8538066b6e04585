"""Pages of web hooks, as a maintainer uses them without JavaScript."""

from __future__ import annotations

from sqlalchemy import select

from project_service.areas.webhooks.models import WebHook, WebHookLog
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import ADA, DEV, OLIVE


def test_a_hook_is_added_tested_inspected_repeated_and_deleted(maintainer, local_hooks, project, receiver):
    address = f"/{project.full_path}/-/hooks"
    assert "tell another program" in maintainer.get(address).text

    refused = maintainer.send(address, url="ftp://x", branch_filter_strategy="wildcard")
    assert (refused.status_code, "Invalid url given" in refused.text) == (422, True)
    maintainer.send(address, url=receiver.url, name="Builds", branch_filter_strategy="wildcard", issues_events="y")
    hook = db.session.scalars(select(WebHook)).one()
    assert (hook.enables("push_events"), hook.enables("issues_events")) == (False, True)
    own = f"{address}/{hook.id}"

    assert "Builds" in maintainer.get(address).text
    maintainer.send(f"{own}/test", trigger="milestone_events")
    assert receiver.header("X-Gitlab-Event") == ["Milestone Hook"]
    shown = maintainer.get(own).text
    assert ("milestone_hooks" in shown, "Hook executed successfully: HTTP 200" in shown) == (True, True)

    log_id = db.session.scalars(select(WebHookLog.id)).one()
    details = maintainer.get(f"{own}/events/{log_id}").text
    assert ("thanks" in details, "&#34;object_kind&#34;" in details) == (True, True)
    maintainer.send(f"{own}/events/{log_id}/resend")
    assert len(receiver.requests) == 2

    assert "Are you sure" in maintainer.get(f"{own}/delete").text
    maintainer.send(f"{own}/delete")
    db.session.remove()
    assert db.session.scalar(select(WebHook.id)) is None


def test_a_disabled_hook_says_why_and_is_enabled(maintainer, make_hook, project):
    hook = make_hook()
    with unit_of_work():
        stored = db.session.get(WebHook, hook["id"])
        stored.recent_failures, stored.last_error, stored.dropped_events = 40, "HTTP 500", 3
    own = f"/{project.full_path}/-/hooks/{hook['id']}"

    text = maintainer.get(own).text
    maintainer.send(f"{own}/enable")
    db.session.remove()

    assert ("Webhook disabled" in text, "HTTP 500" in text, "3 so far" in text) == (True, True, True)
    assert db.session.get(WebHook, hook["id"]).alert_status == "executable"


def test_variables_and_headers_are_lines_whose_values_are_not_shown(maintainer, local_hooks, project, receiver):
    address = f"/{project.full_path}/-/hooks"
    fields = {"branch_filter_strategy": "wildcard", "url": f"{receiver.url}/{{key}}"}
    maintainer.send(address, **fields, url_variables="key=s3cret", custom_headers="X-One: 1\nX-Two: 2")
    hook = db.session.scalars(select(WebHook)).one()
    own = f"{address}/{hook.id}"
    db.session.remove()

    shown = maintainer.get(own).text
    maintainer.send(own, **fields, url_variables="key", custom_headers="X-Two\nX-Three: 3")
    db.session.remove()

    hook = db.session.get(WebHook, hook.id)
    assert ("s3cret" in shown, "X-One\nX-Two" in shown) == (False, True)
    assert hook.url_variables == {"key": "s3cret"}
    assert hook.custom_headers == {"X-Two": "2", "X-Three": "3"}


def test_owners_and_administrators_have_pages_of_their_hooks(visit, local_hooks, group, project, receiver):
    for visitor, address, event in (
        (visit(OLIVE), f"/groups/{group.full_path}/-/hooks", "member_events"),
        (visit(ADA), "/admin/hooks", "push_events"),
    ):
        fields = {"branch_filter_strategy": "wildcard", "url": receiver.url, event: "y"}
        assert visitor.send(address, **fields).status_code == 302
        hook = db.session.scalars(select(WebHook).order_by(WebHook.id.desc())).first()
        assert hook.enables(event)
        visitor.send(f"{address}/{hook.id}/test", trigger="milestone_events" if event == "member_events" else "")
        assert "Hook executed successfully: HTTP 200" in visitor.get(f"{address}/{hook.id}").text
        db.session.remove()

    assert receiver.header("X-Gitlab-Event") == ["Milestone Hook", "System Hook"]


def test_the_page_of_a_project_tells_maintainers_that_a_hook_is_disabled(maintainer, visit, make_hook, project):
    hook = make_hook()
    with unit_of_work():
        db.session.get(WebHook, hook["id"]).recent_failures = 40

    assert "A webhook of this project is disabled" in maintainer.get(f"/{project.full_path}").text
    assert "A webhook of this project is disabled" not in visit(DEV).get(f"/{project.full_path}").text
