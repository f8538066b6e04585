"""Imports that overwrite a project, and overrides of its settings."""

from __future__ import annotations

import json
import re

import pytest

from project_service.domain.access_levels import Role
from project_service.kit.db.session import db
from tests.support.archives import make_archive, make_issue, send
from tests.support.sample_data import (
    ADA,
    DEV,
    MAX,
    OLIVE,
    add_member,
    make_group,
    make_project,
    share,
)
from tests.transfers.importing.support import error_of, export


def test_overwriting_a_missing_project_is_an_ordinary_import(bring):
    assert bring(make_archive({}), overwrite="true")["path_with_namespace"] == "max/tools"


@pytest.mark.both_databases
def test_an_overwrite_keeps_name_and_members(as_, people, run_jobs):
    client = as_(MAX)
    old = make_project("tools", people[MAX], name="Old tools")
    for name, role in ((MAX, Role.MAINTAINER), (DEV, Role.DEVELOPER)):
        add_member(old, people[name], role)
    friends = make_group("friends")
    share(old, friends, Role.REPORTER)
    old_id = old.id

    response = send(client, make_archive({"issues": [make_issue(1)]}), overwrite="true", name="Lost")
    waiting = client.get("/projects/max%2Ftools").json["id"]
    run_jobs()

    number = response.json["id"]
    shown = client.get("/projects/max%2Ftools").json
    assert (response.status_code, number != old_id, waiting) == (201, True, old_id)
    assert re.fullmatch(r"tools-[0-9a-f]{32}", response.json["path"])
    assert response.json["name"] == "Lost"
    assert (shown["id"], shown["name"], shown["path"]) == (number, "Old tools", "tools")
    assert client.get(f"/projects/{old_id}").status_code == 404
    assert client.get(f"/projects/{number}/import").json["import_status"] == "finished"
    levels = {one["username"]: one["access_level"] for one in client.get(f"/projects/{number}/members").json}
    assert levels == {MAX: 40, DEV: 30}
    assert [one["group_name"] for one in shown["shared_with_groups"]] == ["Friends"]
    assert client.get(f"/projects/{number}/issues/1").status_code == 200


@pytest.mark.both_databases
def test_a_project_can_be_overwritten_under_the_name_it_has(as_, people, run_jobs):
    client = as_(MAX)
    make_project("tools", people[MAX], name="Old tools")
    db.session.commit()

    response = send(client, make_archive({}), overwrite="true", name="Old tools")
    run_jobs()

    shown = client.get("/projects/max%2Ftools").json
    assert response.status_code == 201
    assert (shown["id"], shown["name"], shown["path"]) == (response.json["id"], "Old tools", "tools")


@pytest.mark.both_databases
def test_a_failed_overwrite_keeps_the_old_project(as_, run_jobs):
    client = as_(MAX)
    old = send(client, make_archive({"issues": [make_issue(1)]}, {"description": "Old"})).json["id"]
    run_jobs()

    new = send(client, make_archive({"issues": [make_issue(2)]}, version="9"), overwrite="true").json["id"]
    run_jobs()

    shown = client.get("/projects/max%2Ftools").json
    assert (shown["id"], shown["description"], shown["name"]) == (old, "Old", "tools")
    assert [issue["iid"] for issue in client.get(f"/projects/{old}/issues").json] == [1]
    state = client.get(f"/projects/{new}/import").json
    assert (state["import_status"], state["path"][:6]) == ("failed", "tools-")


def test_only_owners_may_overwrite(as_, people, group, run_jobs):
    add_member(group, people[MAX], Role.MAINTAINER)
    old = make_project("tools", group)

    response = send(as_(MAX), namespace="acme", overwrite="true")
    run_jobs()

    state = as_(MAX).get(f"/projects/{response.json['id']}/import").json
    assert (response.status_code, state["import_status"]) == (201, "failed")
    assert f"User max ({people[MAX].id}) cannot overwrite a project in acme" in state["import_error"]
    assert as_(OLIVE).get("/projects/acme%2Ftools").json["id"] == old.id


def test_a_refused_overwrite_does_not_reveal_the_namespace(as_, people, group, run_jobs):
    sub = make_group("sub", group)
    add_member(sub, people[MAX], Role.MAINTAINER)
    make_project("tools", sub)

    response = send(as_(MAX), namespace="acme/sub", overwrite="true")
    run_jobs()

    state = as_(MAX).get(f"/projects/{response.json['id']}/import").json
    assert error_of(state) == f"User max ({people[MAX].id}) cannot overwrite a project in [FILTERED]"


def test_an_overwrite_succeeds_when_the_old_project_was_removed(as_, people, run_jobs):
    client = as_(MAX)
    old = make_project("tools", people[MAX])
    add_member(old, people[MAX], Role.OWNER)
    number = send(client, overwrite="true").json["id"]
    client.delete(f"/projects/{old.id}")
    run_jobs()

    shown = client.get(f"/projects/{number}").json
    assert (shown["path"], shown["name"]) == ("tools", "tools")


def test_overrides_replace_values_of_the_archive(bring, as_):
    state = bring(
        make_archive({}, {"description": "Theirs", "build_timeout": 60, "visibility_level": 0}),
        **{
            "override_params[description]": "Ours",
            "override_params[visibility]": "public",
            "override_params[build_timeout]": "120",
            "override_params[issues_access_level]": "disabled",
            "override_params[tag_list]": "a,b",
            "override_params[unheard_of]": "x",
        },
    )

    shown = as_(MAX).get(f"/projects/{state['id']}").json
    assert (state["import_status"], shown["description"], shown["visibility"]) == ("finished", "Ours", "public")
    assert (shown["build_timeout"], shown["issues_access_level"], shown["tag_list"]) == (120, "disabled", ["a", "b"])


def test_overrides_replace_fields_that_only_archives_set(bring, as_, run_jobs):
    theirs = {
        "archived": True,
        "public_builds": True,
        "service_desk_enabled": False,
        "approvals_before_merge": 2,
        "issues_template": "Theirs",
        "merge_requests_template": "Theirs",
    }
    ours = {
        "service_desk_enabled": True,
        "approvals_before_merge": 3,
        "issues_template": "Ours",
        "merge_requests_template": "Ours",
        "external_authorization_classification_label": "secret",
    }
    overrides = {"archived": False, "public_jobs": False, **ours}

    number = bring(
        make_archive({}, theirs), **{f"override_params[{name}]": str(value) for name, value in overrides.items()}
    )["id"]

    shown = as_(MAX).get(f"/projects/{number}").json
    assert (shown["archived"], shown["public_jobs"]) == (False, False)
    attributes = json.loads(export(as_(MAX), number, run_jobs)["tree/project.json"])
    assert {name: attributes[name] for name in ours} == ours
    assert (attributes["archived"], attributes["public_builds"]) == (False, False)


def test_overrides_apply_when_the_import_has_finished(as_, run_jobs):
    client = as_(MAX)
    number = send(client, **{"override_params[description]": "Ours"}).json["id"]

    before = client.get(f"/projects/{number}").json["description"]
    run_jobs()

    assert (before, client.get(f"/projects/{number}").json["description"]) == (None, "Ours")


def test_blank_overrides_and_those_of_name_and_path_are_ignored(bring, as_):
    state = bring(
        make_archive({}, {"description": "Theirs"}),
        **{
            "override_params[description]": "",
            "override_params[name]": "Other",
            "override_params[path]": "other",
            "override_params[visibility]": "",
            "override_params[lfs_enabled]": "false",
            "override_params[packages_enabled]": "false",
            "override_params[emails_disabled]": "true",
        },
    )

    assert (state["description"], state["name"], state["path"]) == ("Theirs", "tools", "tools")
    shown = as_(MAX).get(f"/projects/{state['id']}").json
    assert [shown[name] for name in ("lfs_enabled", "packages_enabled", "emails_disabled")] == [True, True, None]


@pytest.mark.parametrize(("of_group", "archive", "shown"), [("private", 20, "private"), ("internal", 20, "internal")])
def test_an_imported_project_is_not_more_visible_than_its_group(of_group, archive, shown, bring, people, as_):
    add_member(make_group("place", visibility=of_group), people[MAX], Role.OWNER)

    state = bring(make_archive({}, {"visibility_level": archive}), namespace="place")

    assert as_(MAX).get(f"/projects/{state['id']}").json["visibility"] == shown


def test_a_restricted_visibility_becomes_private(bring, as_, settings):
    settings(restricted_visibility_levels=["public"])

    of_archive = bring(make_archive({}, {"visibility_level": 20}), path="a")
    of_override = bring(make_archive({}), path="b", **{"override_params[visibility]": "public"})

    assert [as_(MAX).get(f"/projects/{one['id']}").json["visibility"] for one in (of_archive, of_override)] == [
        "private",
        "private",
    ]


def test_settings_of_the_archive_are_imported(bring, as_):
    attributes = {
        "archived": True,
        "merge_requests_ff_only_enabled": True,
        "build_allow_git_fetch": False,
        "request_access_enabled": False,
        "only_allow_merge_if_pipeline_succeeds": True,
        "ci_config_path": ".ci.yml",
        "auto_cancel_pending_pipelines": "disabled",
    }
    state = bring(make_archive({"project_feature": [{"wiki_access_level": 0, "issues_access_level": 10}]}, attributes))

    shown = as_(MAX).get(f"/projects/{state['id']}").json
    assert {name: shown[name] for name in ("archived", "merge_method", "build_git_strategy")} == {
        "archived": True,
        "merge_method": "ff",
        "build_git_strategy": "clone",
    }
    assert (shown["wiki_access_level"], shown["issues_access_level"]) == ("disabled", "private")
    assert (shown["request_access_enabled"], shown["only_allow_merge_if_pipeline_succeeds"]) == (False, True)
    assert (shown["ci_config_path"], shown["auto_cancel_pending_pipelines"]) == (".ci.yml", "disabled")


def test_an_archive_cannot_set_name_namespace_or_owner(bring, as_, people):
    attributes = {
        "id": 1,
        "name": "Theirs",
        "path": "theirs",
        "namespace_id": 1,
        "creator_id": people[ADA].id,
        "created_at": "2001-01-01T00:00:00.000Z",
        "runners_token": "secret",
    }
    state = bring(make_archive({}, attributes))

    shown = as_(MAX).get(f"/projects/{state['id']}").json
    assert (shown["name"], shown["path_with_namespace"], shown["creator_id"]) == ("tools", "max/tools", people[MAX].id)
    assert not shown["created_at"].startswith("2001")
    assert shown.get("runners_token") != "secret"
