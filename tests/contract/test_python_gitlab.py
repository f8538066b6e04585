"""python-gitlab, unmodified, against the running service."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import gitlab
import pytest

from tests.contract.conftest import make_person
from tests.contract.service import TOKEN, wait_for

CLI = Path(sys.executable).with_name("gitlab")
MAX_WAIT_SECONDS = (
    dt.date.today() + dt.timedelta(days=2)
).isoformat()  # two days, so that midnight during a test does not matter


def names(found, attribute="name"):
    return [getattr(one, attribute) for one in found]


def is_gone(get, *args):
    """Whether the response becomes 404, at the latest after the removing job."""
    try:
        get(*args)
    except gitlab.exceptions.GitlabGetError as error:
        return error.response_code == 404
    return False


# Authentication


def test_a_client_authenticates_and_reads_the_version(gl):
    gl.auth()
    version, revision = gl.version()

    assert (gl.user.username, gl.user.is_admin) == ("root", True)
    assert version[0].isdigit()
    assert revision != "unknown"


@pytest.mark.parametrize("token", ["nobody-has-this-token", ""])
def test_a_wrong_token_is_an_authentication_error(token, client_with):
    with pytest.raises(gitlab.exceptions.GitlabAuthenticationError) as refused:
        client_with(token).auth()

    assert refused.value.response_code == 401


def test_access_tokens_are_accepted_as_oauth_tokens(service):
    client = gitlab.Gitlab(service.url, oauth_token=TOKEN)

    client.auth()

    assert client.user.username == "root"
    client.session.close()


def test_an_administrator_acts_for_a_user_with_sudo(gl, person):
    assert gl.http_get("/user", sudo=person.username)["id"] == person.id


# Users


def test_users_are_created_found_and_updated(gl, person):
    assert gl.users.list(username=person.username)[0].id == person.id
    assert person.id in names(gl.users.list(search=person.email), "id")

    person.name, person.bio = "Paula P.", "Once a sailor."
    person.save()
    shown = gl.users.get(person.id)
    assert (shown.name, shown.bio) == ("Paula P.", "Once a sailor.")


def test_users_are_removed(gl, person):
    person.delete()

    assert is_gone(gl.users.get, person.id)


def test_blocked_users_are_refused_until_they_are_unblocked(gl, person, client_with):
    client = client_with(person.personal_access_tokens.create({"name": "t", "scopes": ["api"]}).token)
    client.auth()

    assert person.block() is True
    with pytest.raises(gitlab.exceptions.GitlabHttpError) as refused:
        client.http_get("/user")
    assert refused.value.response_code == 403

    assert person.unblock() is True
    client.auth()


def test_a_duplicate_username_is_refused(gl, person):
    with pytest.raises(gitlab.exceptions.GitlabCreateError) as refused:
        make_person(gl, person.username)

    assert refused.value.response_code == 409


# Access tokens


def test_an_administrator_creates_a_token_for_a_user(gl, person, client_with):
    token = person.personal_access_tokens.create({"name": "ci", "scopes": ["read_api"], "expires_at": MAX_WAIT_SECONDS})
    client = client_with(token.token)
    own = client.personal_access_tokens.get("self")

    assert (own.id, own.name, own.scopes, own.expires_at) == (token.id, "ci", ["read_api"], MAX_WAIT_SECONDS)
    assert names(client.personal_access_tokens.list(), "id") == [token.id]
    assert names(gl.personal_access_tokens.list(user_id=person.id), "id") == [token.id]
    assert not hasattr(own, "token")


def test_a_read_only_token_cannot_write(person, client_with, name):
    client = client_with(person.personal_access_tokens.create({"name": "r", "scopes": ["read_api"]}).token)

    with pytest.raises(gitlab.exceptions.GitlabCreateError) as refused:
        client.groups.create({"name": name, "path": name})

    assert refused.value.response_code == 403


def test_a_rotated_token_replaces_the_old_one(person, client_with):
    token = person.personal_access_tokens.create({"name": "r", "scopes": ["api"]})
    old = client_with(token.token)

    rotated = old.personal_access_tokens.get(token.id).rotate()

    assert rotated["token"] != token.token
    assert client_with(rotated["token"]).personal_access_tokens.get("self").name == "r"
    with pytest.raises(gitlab.exceptions.GitlabAuthenticationError):
        old.auth()


def test_a_revoked_token_is_refused(gl, person, client_with):
    token = person.personal_access_tokens.create({"name": "r", "scopes": ["api"]})

    gl.personal_access_tokens.delete(token.id)

    assert gl.personal_access_tokens.get(token.id).revoked
    with pytest.raises(gitlab.exceptions.GitlabAuthenticationError):
        client_with(token.token).auth()


# Groups


def test_groups_have_subgroups_and_projects(gl, group, project):
    subgroup = gl.groups.create({"name": "Deck", "path": "deck", "parent_id": group.id})

    assert subgroup.full_path == f"{group.path}/deck"
    assert gl.groups.get(f"{group.path}/deck").id == subgroup.id
    assert names(group.subgroups.list(), "id") == [subgroup.id]
    assert names(group.descendant_groups.list(), "id") == [subgroup.id]
    assert names(group.projects.list(), "id") == [project.id]


def test_a_renamed_group_moves_its_subgroups_and_projects(gl, group, project):
    group.path, group.description = f"{group.path}-2", "The crew"
    group.save()

    assert gl.groups.get(group.id).description == "The crew"
    assert gl.projects.get(f"{group.path}/my.shop").id == project.id


def test_a_removed_group_takes_its_projects_along(gl, group, project):
    group.delete()

    assert is_gone(gl.groups.get, group.id)
    assert is_gone(gl.projects.get, project.id)


# Projects


def test_projects_are_found_by_id_and_by_path(gl, group, project):
    by_path = gl.projects.get(f"{group.path}/my.shop")

    assert by_path.id == project.id == gl.projects.get(project.id).id
    assert by_path.path_with_namespace == f"{group.path}/my.shop"
    assert by_path.visibility == "private"


def test_projects_are_updated(gl, group, project):
    group.visibility = "internal"
    group.save()
    project.description, project.visibility = "Sells things", "internal"
    project.save()

    shown = gl.projects.get(project.id)
    assert (shown.description, shown.visibility) == ("Sells things", "internal")


def test_projects_are_archived_and_unarchived(gl, project):
    project.archive()
    archived = gl.projects.get(project.id).archived

    project.unarchive()

    assert (archived, gl.projects.get(project.id).archived) == (True, False)


def test_projects_are_removed_by_a_job(gl, group, project):
    project.delete()

    assert is_gone(gl.projects.get, project.id)
    assert wait_for(lambda: not group.projects.list(get_all=True))


def test_a_list_is_read_page_by_page(gl, group):
    made = [gl.projects.create({"name": f"p{number}", "namespace_id": group.id}).id for number in range(5)]

    walk = group.projects.list(iterator=True, per_page=2, order_by="id", sort="asc")
    first = group.projects.list(per_page=2, page=1, order_by="id", sort="asc")

    assert (walk.total, walk.total_pages, walk.per_page, walk.next_page) == (5, 3, 2, 2)
    assert names(walk, "id") == made
    assert names(first, "id") == made[:2]
    assert names(group.projects.list(get_all=True, per_page=2, order_by="id", sort="asc"), "id") == made


def test_projects_are_read_with_keyset_pagination(gl, group):
    made = {gl.projects.create({"name": f"p{number}", "namespace_id": group.id}).id for number in range(5)}

    walk = gl.projects.list(iterator=True, pagination="keyset", order_by="id", sort="desc", per_page=2, simple=True)
    found = [next(walk).id for _ in range(5)]

    assert made <= set(names(gl.projects.list(iterator=True, pagination="keyset", order_by="id", per_page=2), "id"))
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("path", ["none/none", "0", "%2e%2e"])
def test_a_missing_project_is_a_get_error(path, gl):
    with pytest.raises(gitlab.exceptions.GitlabGetError) as refused:
        gl.projects.get(path)

    assert refused.value.response_code == 404
    assert refused.value.error_message == "404 Project Not Found"


def test_hidden_projects_are_not_found_and_forbidden_actions_are_403(gl, project, person, client_with):
    client = client_with(person.personal_access_tokens.create({"name": "t", "scopes": ["api"]}).token)
    with pytest.raises(gitlab.exceptions.GitlabGetError) as hidden:
        client.projects.get(project.id)
    project.members.create({"user_id": person.id, "access_level": gitlab.const.AccessLevel.REPORTER})

    with pytest.raises(gitlab.exceptions.GitlabListError) as forbidden:
        client.projects.get(project.id).variables.list()

    assert (hidden.value.response_code, forbidden.value.response_code) == (404, 403)


# Members


@pytest.mark.parametrize("kind", ["group", "project"])
def test_members_are_added_updated_and_removed(kind, request, person):
    place = request.getfixturevalue(kind)
    member = place.members.create({"user_id": person.id, "access_level": 20, "expires_at": MAX_WAIT_SECONDS})
    assert (member.access_level, member.expires_at) == (20, MAX_WAIT_SECONDS)

    member.access_level = 30
    member.save()
    assert place.members.get(person.id).access_level == 30
    assert person.id in names(place.members.list(get_all=True), "id")

    member.delete()

    assert is_gone(place.members.get, person.id)


def test_inherited_members_are_listed(group, project, person):
    group.members.create({"user_id": person.id, "access_level": 30})

    assert person.id not in names(project.members.list(), "id")
    assert person.id in names(project.members_all.list(), "id")
    assert project.members_all.get(person.id).access_level == 30


# Variables


def test_variables_are_created_updated_and_deleted(project):
    made = project.variables.create({"key": "REGION", "value": "eu", "masked": False, "protected": True})
    assert (made.value, made.protected, made.environment_scope) == ("eu", True, "*")

    made.value = "us"
    made.save()
    assert project.variables.get("REGION").value == "us"
    assert names(project.variables.list(), "key") == ["REGION"]

    made.delete()

    assert project.variables.list() == []


def test_variables_with_the_same_key_are_selected_by_scope(project):
    for scope in ("production", "review/*"):
        project.variables.create({"key": "URL", "value": scope, "environment_scope": scope})
    only = {"filter": {"environment_scope": "review/*"}}

    with pytest.raises(gitlab.exceptions.GitlabGetError) as ambiguous:
        project.variables.get("URL")
    found = project.variables.get("URL", **only).value
    project.variables.update("URL", {"value": "changed", **only})
    project.variables.delete("URL", **only)

    assert (ambiguous.value.response_code, found) == (409, "review/*")
    assert names(project.variables.list(), "value") == ["production"]


@pytest.mark.parametrize("kind", ["group", "gl"])
def test_group_and_instance_variables_are_created_updated_and_deleted(kind, request, name):
    variables, key = request.getfixturevalue(kind).variables, f"HOST_{name}".replace("-", "_").replace(".", "_")
    variable = variables.create({"key": key, "value": "web01.example.org", "masked": True})

    variable.value = "web02.example.org"
    variable.save()

    assert (variables.get(key).value, variables.get(key).masked) == ("web02.example.org", True)
    assert key in [one.key for one in variables.list(iterator=True)]
    variable.delete()
    assert is_gone(variables.get, key)


@pytest.mark.parametrize("kind", ["project", "group"])
def test_project_and_group_tokens_are_created_rotated_and_revoked(kind, request, client_with):
    place = request.getfixturevalue(kind)
    token = place.access_tokens.create(
        {"name": "ci", "scopes": ["api"], "access_level": 30, "expires_at": MAX_WAIT_SECONDS}
    )
    client = client_with(token.token)
    client.auth()
    assert client.user.username.startswith(f"{kind}_{place.id}_bot_")

    new_token = place.access_tokens.get(token.id).rotate()["token"]

    assert [one.active for one in place.access_tokens.list(iterator=True)] == [False, True]
    assert [one.name for one in place.access_tokens.list(state="active")] == ["ci"]
    client_with(new_token).auth()
    assert client_with(new_token).personal_access_tokens.get("self").user_id == token.user_id
    place.access_tokens.delete(place.access_tokens.list(state="active")[0].id)
    assert is_gone(place.members.get, token.user_id)


def test_an_invalid_variable_is_refused_with_reasons(project):
    with pytest.raises(gitlab.exceptions.GitlabCreateError) as refused:
        project.variables.create({"key": "A", "value": "short", "masked": True})

    assert refused.value.response_code == 400
    assert refused.value.error_message == {"value": ["is invalid"]}


# Protected tags


def test_tags_are_protected_and_unprotected(project):
    made = project.protectedtags.create({"name": "*-stable/1.0", "create_access_level": "40"})
    assert made.create_access_levels == [{"access_level": 40, "access_level_description": "Maintainers"}]
    assert project.protectedtags.get("*-stable/1.0").name == "*-stable/1.0"
    with pytest.raises(gitlab.exceptions.GitlabCreateError) as twice:
        project.protectedtags.create({"name": "*-stable/1.0"})

    made.delete()

    assert twice.value.response_code == 422
    assert project.protectedtags.list() == []


# Protected branches


def test_branches_are_protected_and_unprotected(project):
    made = project.protectedbranches.create({"name": "release/*", "push_access_level": 0, "merge_access_level": "30"})
    levels = [level["access_level"] for level in (*made.push_access_levels, *made.merge_access_levels)]
    assert (levels, made.allow_force_push) == ([0, 30], False)
    made.allow_force_push = True
    made.save()
    assert project.protectedbranches.get("release/*").allow_force_push is True
    assert [one.name for one in project.protectedbranches.list(search="release")] == ["release/*"]
    with pytest.raises(gitlab.exceptions.GitlabCreateError) as twice:
        project.protectedbranches.create({"name": "release/*"})

    made.delete()

    assert (twice.value.response_code, twice.value.error_message) == (
        409,
        "Protected branch 'release/*' already exists",
    )
    assert project.protectedbranches.list() == []


# Namespaces


def test_namespaces_are_listed_shown_and_searched(gl, group):
    found = gl.namespaces.list(search=group.path)[0]

    assert (found.id, found.kind, found.full_path) == (group.id, "group", group.path)
    assert gl.namespaces.get(group.path).id == group.id
    assert gl.namespaces.exists(group.path).exists
    assert gl.namespaces.exists(group.path).suggests == [f"{group.path}1"]
    assert not gl.namespaces.exists(f"{group.path}-none").exists


# Error tracking


def test_error_tracking_is_created_switched_and_shown(gl, project):
    address = f"/projects/{project.encoded_id}/error_tracking/settings"
    with pytest.raises(gitlab.exceptions.GitlabHttpError) as missing:
        gl.http_get(address)
    gl.http_put(address, post_data={"active": True, "integrated": True})

    gl.http_patch(address, query_data={"active": False})

    assert missing.value.response_code == 404
    assert gl.http_get(address) == {
        "active": False,
        "project_name": None,
        "sentry_external_url": None,
        "tracker_external_url": None,
        "api_url": None,
        "integrated": True,
    }


# Notification settings


def test_notification_settings_are_read_and_saved(gl, project):
    everywhere, own = gl.notificationsettings.get(), project.notificationsettings.get()
    everywhere.level, own.level, own.new_error = "watch", "custom", True

    everywhere.save()
    own.save()

    assert gl.notificationsettings.get().level == "watch"
    assert (own.level, project.notificationsettings.get().events["new_error"]) == ("custom", True)


# The instance


def test_features_are_set_listed_and_deleted(gl, name):
    gl.features.set(name, True)
    made = next(feature for feature in gl.features.list() if feature.name == name)
    assert made.state == "on"
    gl.features.set(name, 40, feature_group=None)
    gates = next(feature for feature in gl.features.list() if feature.name == name).gates

    gl.features.delete(name)

    assert {"key": "percentage_of_time", "value": 40} in gates
    assert name not in names(gl.features.list())


def test_application_settings_are_read_and_updated(gl):
    settings = gl.settings.get()
    before = settings.max_attachment_size

    settings.max_attachment_size = before + 1
    settings.save()

    assert gl.settings.get().max_attachment_size == before + 1


def test_administration_is_refused_to_other_users(person, client_with, name):
    client = client_with(person.personal_access_tokens.create({"name": "t", "scopes": ["api"]}).token)

    with pytest.raises(gitlab.exceptions.GitlabSetError) as refused:
        client.features.set(name, True)

    assert refused.value.response_code == 403


# The command line tool


def run(service, *words, **environment):
    """Return the output of the ``gitlab`` command."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GITLAB_URL": service.url, "GITLAB_PRIVATE_TOKEN": TOKEN}
    done = subprocess.run([CLI, *words], check=False, env=env | environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_tool_reads_and_writes(service, project):
    run(service, "project-variable", "create", "--project-id", str(project.id), "--key", "A", "--value", "b")
    text = run(service, "-o", "json", "project-variable", "list", "--project-id", project.path_with_namespace)

    assert [(one["key"], one["value"]) for one in json.loads(text)] == [("A", "b")]


def test_the_command_line_tool_reads_its_configuration(service, project, tmp_path):
    config = tmp_path / "python-gitlab.cfg"
    config.write_text(f"[global]\ndefault = here\n[here]\nurl = {service.url}\nprivate_token = {TOKEN}\n")

    text = run(service, "-c", str(config), "-g", "here", "-o", "json", "project", "get", "--id", str(project.id))

    assert json.loads(text)["path_with_namespace"] == project.path_with_namespace
