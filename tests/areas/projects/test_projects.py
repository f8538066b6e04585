"""Projects through HTTP (supporting resources reference, section 6)."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from project_service.domain.access_levels import Role
from project_service.domain.events.models import Action, Event
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    PEOPLE,
    ROLES,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    reload,
    share,
)

BASIC_KEYS = {
    *("id", "description", "name", "name_with_namespace", "path", "path_with_namespace", "created_at"),
    *("default_branch", "tag_list", "topics", "ssh_url_to_repo", "http_url_to_repo", "web_url", "readme_url"),
    *("avatar_url", "forks_count", "star_count", "last_activity_at", "namespace", "visibility"),
}
KEYS_OF_LATER_RELEASES = {
    *("releases_access_level", "environments_access_level", "monitor_access_level", "feature_flags_access_level"),
    *("infrastructure_access_level", "model_experiments_access_level", "model_registry_access_level"),
    *("container_registry_access_level", "package_registry_access_level", "emails_enabled", "squash_option"),
    *("merge_commit_template", "squash_commit_template", "issue_branch_template", "merge_request_title_regex"),
    *("merge_request_title_regex_description", "group_runners_enabled", "keep_latest_artifact"),
    *("ci_separated_caches", "enforce_auth_checks_on_uploads", "warn_about_potentially_unwanted_characters"),
    *("show_diff_preview_in_email", "ci_forward_deployment_rollback_allowed"),
    *("ci_allow_fork_pipelines_to_run_in_parent_project", "resource_group_default_process_mode"),
    *("ci_pipeline_variables_minimum_override_role", "container_expiration_policy"),
}
PROJECT_KEYS = (
    BASIC_KEYS
    | KEYS_OF_LATER_RELEASES
    | {
        *("_links", "packages_enabled", "empty_repo", "archived", "resolve_outdated_diff_discussions"),
        *("container_registry_enabled", "issues_enabled", "merge_requests_enabled", "wiki_enabled", "jobs_enabled"),
        *("snippets_enabled", "service_desk_enabled", "service_desk_address", "can_create_merge_request_in"),
        *("issues_access_level", "repository_access_level", "merge_requests_access_level", "forking_access_level"),
        *("wiki_access_level", "builds_access_level", "snippets_access_level", "pages_access_level"),
        *(
            "operations_access_level",
            "analytics_access_level",
            "security_and_compliance_access_level",
            "emails_disabled",
            "shared_runners_enabled",
            "lfs_enabled",
        ),
        *("creator_id", "import_status", "open_issues_count", "ci_default_git_depth", "ci_forward_deployment_enabled"),
        *("public_jobs", "build_timeout", "auto_cancel_pending_pipelines", "build_coverage_regex", "ci_config_path"),
        *("shared_with_groups", "only_allow_merge_if_pipeline_succeeds", "allow_merge_on_skipped_pipeline"),
        *("restrict_user_defined_variables", "request_access_enabled", "remove_source_branch_after_merge"),
        *("only_allow_merge_if_all_discussions_are_resolved", "printing_merge_request_link_enabled", "merge_method"),
        *("suggestion_commit_message", "auto_devops_enabled", "auto_devops_deploy_strategy"),
        "autoclose_referenced_issues",
    }
)
MAINTAINER_KEYS = {"import_error", "build_git_strategy"}
REFUSED = {
    401: {"message": "401 Unauthorized"},
    403: {"message": "403 Forbidden"},
    404: {"message": "404 Project Not Found"},
}
UNMODIFIED_SINCE_1990 = {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}
INVALID_PATH = (
    "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', end in '.git' or end in '.atom'"
)
INVALID_NAME = (
    "can contain only letters, digits, emojis, '_', '.', dash, space. It must start with letter, digit, emoji or '_'."
)
TAKEN = "has already been taken"
TOO_LONG = "is too long (maximum is 255 characters)"
LAST_YEAR = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def paths(response):
    return [project["path"] for project in response.json]


def error_body(**messages):
    return {"message": {name: [text] for name, text in messages.items()} | {"limit_reached": []}}


@pytest.fixture
def group_with_members(people, group):
    """The private group ``acme`` in which every user except sam has a role."""
    for name, role in ROLES.items():
        if name != OLIVE:
            add_member(group, people[name], role)
    return group


@pytest.mark.parametrize(
    ("method", "path", "json", "statuses"),
    [
        ("GET", "/projects", None, "200 200 200 200 200 200 200 200"),
        ("GET", "/projects/{project}", None, "200 200 200 200 200 200 404 404"),
        ("GET", "/projects/999999", None, "404 404 404 404 404 404 404 404"),
        ("GET", "/users/{sam}/projects", None, "200 200 200 200 200 200 200 200"),
        ("GET", "/groups/{group}/projects", None, "200 200 200 200 200 200 404 404"),
        ("POST", "/projects", {"name": "fresh"}, "201 201 201 201 201 201 201 401"),
        ("POST", "/projects", {}, "400 400 400 400 400 400 400 401"),
        ("POST", "/projects?namespace_id={staffed}", {"name": "{person}"}, "201 201 201 201 400 400 400 401"),
        ("POST", "/projects/user/{sam}", {"name": "fresh"}, "201 403 403 403 403 403 403 401"),
        ("POST", "/projects/user/999999", {"name": "fresh"}, "404 403 403 403 403 403 403 401"),
        ("PUT", "/projects/{project}", {"description": "new"}, "200 200 200 403 403 403 404 401"),
        ("PUT", "/projects/{project}", {"path": "new-path"}, "200 200 200 403 403 403 404 401"),
        ("PUT", "/projects/{project}", {"name": "new name"}, "200 200 403 403 403 403 404 401"),
        ("PUT", "/projects/{project}", {"visibility": "private"}, "200 200 403 403 403 403 404 401"),
        ("PUT", "/projects/{project}", {}, "400 400 400 400 400 400 400 401"),
        ("PUT", "/projects/999999", {"description": "new"}, "404 404 404 404 404 404 404 401"),
        ("DELETE", "/projects/{project}", None, "412 412 403 403 403 403 404 401"),
        ("DELETE", "/projects/999999", None, "404 404 404 404 404 404 404 401"),
        ("POST", "/projects/{project}/archive", None, "201 201 403 403 403 403 404 401"),
        ("POST", "/projects/{project}/unarchive", None, "201 201 403 403 403 403 404 401"),
        ("PUT", "/projects/{project}/transfer", {"namespace": "{staffed}"}, "200 400 403 403 403 403 404 401"),
        ("PUT", "/projects/{project}/transfer", {"namespace": "none"}, "404 404 403 403 403 403 404 401"),
        (
            "POST",
            "/projects/{project}/share",
            {"group_id": "{shown}", "group_access": "30"},
            "201 409 409 403 403 403 404 401",
        ),
        ("DELETE", "/projects/{project}/share/{shown}", None, "404 404 404 403 403 403 404 401"),
    ],
)
def test_permissions_of_projects_by_role(method, path, json, statuses, project, people, as_):
    group_with_members = make_group("staffed")
    for name, role in ROLES.items():
        add_member(group_with_members, people[name], role)
    ids = {
        "project": project.id,
        "group": project.namespace_id,
        "sam": people[SAM].id,
        "staffed": group_with_members.id,
    }
    ids["shown"] = make_group("shown", visibility="public").id
    sent = {
        name: None if json is None else {key: text.format(person=name, **ids) for key, text in json.items()}
        for name in (*PEOPLE, NOBODY)
    }

    responses = [
        as_(name).open(
            method, path.format(**ids), json=sent[name], headers=UNMODIFIED_SINCE_1990 if method == "DELETE" else {}
        )
        for name in (*PEOPLE, NOBODY)
    ]

    assert " ".join(str(response.status_code) for response in responses) == statuses
    known = [response for response in responses if response.status_code in REFUSED and path == "/projects/{project}"]
    assert all(response.json == REFUSED[response.status_code] for response in known)


def test_a_project_is_transferred_by_id_or_path(project, as_admin):
    other = make_group("other")

    moved = as_admin.put(f"/projects/{project.id}/transfer", json={"namespace": "other"})

    assert (moved.status_code, moved.json["path_with_namespace"]) == (200, "other/shop")
    again = as_admin.put(f"/projects/{project.id}/transfer?namespace={other.id}")
    assert (again.status_code, again.json) == (400, {"message": {"namespace": ["is where the project is already"]}})
    assert as_admin.put(f"/projects/{project.id}/transfer").json == {"error": "namespace is missing"}


@pytest.mark.parametrize(
    ("visibility", "statuses"),
    [("private", "404 404 404 401"), ("internal", "200 404 404 401"), ("public", "200 200 200 401")],
)
def test_visibility_of_projects_for_non_members(visibility, statuses, as_, people, client_of):
    created = make_project("shown", make_group(visibility="public"), visibility=visibility)
    clients = [as_(SAM), client_of(make_user("outsider", external=True)), as_(NOBODY)]

    responses = [client.get(f"/projects/{created.id}") for client in clients]

    written = as_(NOBODY).put(f"/projects/{created.id}", json={"description": "x"})
    assert " ".join(str(response.status_code) for response in (*responses, written)) == statuses
    listed = [paths(client.get("/projects")) == ["shown"] for client in clients]
    assert listed == [response.status_code == 200 for response in responses]


def test_changing_a_visible_project_without_permission_is_403(people, as_stranger):
    created = make_project(visibility="internal", namespace=make_group(visibility="public"))
    path = f"/projects/{created.id}"

    responses = [
        as_stranger.put(path, json={"description": "x"}),
        as_stranger.delete(path),
        as_stranger.post(f"{path}/archive"),
    ]

    assert [(response.status_code, response.json) for response in responses] == [(403, REFUSED[403])] * 3


@pytest.mark.parametrize(
    "path", ["acme%2Fshop", "ACME%2FShop", "acme%2Fwith.dot", "acme%2Fwith%2Edot", "acme%2Fv1.0%2Ftool", "acme%2Fshop/"]
)
def test_a_project_is_found_by_its_encoded_path(path, project, group, as_admin):
    make_project("with.dot", group)
    make_project("tool", make_group("v1.0", group))

    response = as_admin.get(f"/projects/{path}")

    expected = path.lower().replace("%2f", "/").replace("%2e", ".").rstrip("/")
    assert (response.status_code, response.json["path_with_namespace"]) == (200, expected)


@pytest.mark.parametrize("path", ["shop", "acme", "acme%2F", "-5", "acme%2Fshop%2F", "acme%252Fshop", "%F0%9F%A6%8A"])
def test_an_unknown_project_is_not_found(path, project, as_admin):
    response = as_admin.get(f"/projects/{path}")

    assert (response.status_code, response.json) == (404, REFUSED[404])


def test_an_unencoded_slash_is_an_unknown_route(project, as_admin):
    response = as_admin.get("/projects/acme/shop")

    assert (response.status_code, response.json) == (404, {"error": "404 Not Found"})


@pytest.mark.parametrize(
    ("person", "keys"),
    [
        (ADA, PROJECT_KEYS | MAINTAINER_KEYS | {"permissions"}),
        (MAX, PROJECT_KEYS | MAINTAINER_KEYS | {"permissions"}),
        (DEV, PROJECT_KEYS | {"permissions"}),
        (SAM, PROJECT_KEYS | {"permissions"}),
        (NOBODY, BASIC_KEYS),
    ],
)
def test_a_project_has_the_keys_of_the_callers_role(person, keys, people, as_):
    created = make_project("shown", make_group(visibility="public"), visibility="public")
    add_member(created, people[MAX], Role.MAINTAINER)
    add_member(created, people[DEV], Role.DEVELOPER)

    assert set(as_(person).get(f"/projects/{created.id}").json) == keys


@pytest.mark.parametrize(
    ("person", "query", "keys"),
    [
        (MAX, "", PROJECT_KEYS | {"permissions"}),
        (MAX, "?simple=true", BASIC_KEYS),
        (NOBODY, "", BASIC_KEYS),
        (NOBODY, "?simple=false", BASIC_KEYS),
    ],
)
@pytest.mark.parametrize("path", ["/projects", "/groups/{}/projects"])
def test_projects_in_lists_have_the_keys_of_the_callers_role(path, person, query, keys, people, as_):
    created = make_project("shown", make_group(visibility="public"), visibility="public")

    response = as_(person).get(path.format(created.namespace_id) + query)

    assert [set(found) for found in response.json] == [keys]


def test_a_project_has_the_documented_keys(people, as_stranger):
    response = as_stranger.post("/projects", json={"name": "My Tool", "description": "d"})

    stored = db.session.get(Project, response.json["id"])
    created = clock.isoformat(stored.created_at)
    own = f"http://localhost/api/v4/projects/{stored.id}"
    assert response.status_code == 201
    assert set(response.json) == PROJECT_KEYS | MAINTAINER_KEYS | {"owner"}
    assert {
        name: response.json[name] for name in BASIC_KEYS | {"_links", "owner", "archived", "creator_id", "empty_repo"}
    } == {
        "id": stored.id,
        "description": "d",
        "name": "My Tool",
        "name_with_namespace": "Sam / My Tool",
        "path": "my-tool",
        "path_with_namespace": "sam/my-tool",
        "created_at": created,
        "default_branch": None,
        "tag_list": [],
        "topics": [],
        "ssh_url_to_repo": "git@localhost:sam/my-tool.git",
        "http_url_to_repo": "http://localhost/sam/my-tool.git",
        "web_url": "http://localhost/sam/my-tool",
        "readme_url": None,
        "avatar_url": None,
        "forks_count": 0,
        "star_count": 0,
        "last_activity_at": clock.isoformat(stored.last_activity_at),
        "namespace": {
            "id": stored.namespace_id,
            "name": "Sam",
            "path": "sam",
            "kind": "user",
            "full_path": "sam",
            "parent_id": None,
            "avatar_url": None,
            "web_url": "http://localhost/sam",
        },
        "visibility": "private",
        "_links": {
            "self": own,
            "issues": f"{own}/issues",
            "merge_requests": f"{own}/merge_requests",
            "repo_branches": f"{own}/repository/branches",
            "labels": f"{own}/labels",
            "events": f"{own}/events",
            "members": f"{own}/members",
        },
        "owner": {
            "id": people[SAM].id,
            "name": "Sam",
            "username": "sam",
            "state": "active",
            "avatar_url": f"http://localhost/-/avatars/user/{people[SAM].id}",
            "web_url": "http://localhost/sam",
        },
        "archived": False,
        "creator_id": people[SAM].id,
        "empty_repo": True,
    }


@pytest.mark.parametrize(
    ("direct", "above", "permissions"),
    [
        (None, None, (None, None)),
        (Role.DEVELOPER, None, (30, None)),
        (None, Role.REPORTER, (None, 20)),
        (Role.MAINTAINER, Role.GUEST, (40, 10)),
    ],
)
def test_permissions_distinguish_direct_and_inherited_roles(direct, above, permissions, people, as_stranger):
    top = make_group("top", visibility="public")
    created = make_project("shown", make_group("below", top, visibility="public"), visibility="public")
    if direct:
        add_member(created, people[SAM], direct)
    if above:
        add_member(top, people[SAM], above)

    responses = [as_stranger.get(f"/projects/{created.id}").json, as_stranger.get("/projects").json[0]]

    expected = [level and {"access_level": level, "notification_level": 3} for level in permissions]
    assert [response["permissions"] for response in responses] == [
        {"project_access": expected[0], "group_access": expected[1]}
    ] * 2


@pytest.mark.both_databases
@pytest.mark.parametrize("of_project", [True, False], ids=["project", "group above"])
def test_a_share_that_gives_a_higher_role_counts_as_access_by_a_group(of_project, people, as_stranger):
    top = make_group("top")
    created = make_project("shown", make_group("below", top))
    team = make_group("team")
    add_member(team, people[SAM], Role.MAINTAINER)
    share(created if of_project else top, team, Role.DEVELOPER)

    def shown():
        responses = [as_stranger.get(f"/projects/{created.id}").json, as_stranger.get("/projects").json[0]]
        return [
            tuple(access and access["access_level"] for access in response["permissions"].values())
            for response in responses
        ]

    through_share = shown()
    add_member(created, people[SAM], Role.OWNER)

    assert (through_share, shown()) == ([(None, 30)] * 2, [(50, None)] * 2)


def test_permissions_in_a_personal_project_count_its_shares_but_not_its_owner(people, as_):
    created = make_project("own", people[OLIVE])
    team = make_group("team")
    add_member(team, people[SAM], Role.MAINTAINER)
    share(created, team, Role.DEVELOPER)

    of_sam, of_olive = (as_(name).get(f"/projects/{created.id}").json["permissions"] for name in (SAM, OLIVE))

    assert of_sam == {"project_access": None, "group_access": {"access_level": 30, "notification_level": 3}}
    assert of_olive["group_access"] is None


def test_an_expired_membership_gives_no_permission(people, as_stranger):
    created = make_project("shown", make_group(visibility="public"), visibility="public")
    add_member(created, people[SAM], Role.DEVELOPER, clock.today())

    assert as_stranger.get(f"/projects/{created.id}").json["permissions"] == {
        "project_access": None,
        "group_access": None,
    }


@pytest.mark.parametrize(
    ("fields", "name", "path"),
    [
        ({"name": "Tool"}, "Tool", "Tool"),
        ({"path": "tool.x"}, "tool.x", "tool.x"),
        ({"name": "The Tool", "path": "t"}, "The Tool", "t"),
        ({"name": "Ünï Tööl"}, "Ünï Tööl", "uni-tool"),
        ({"name": "9 lives"}, "9 lives", "9-lives"),
        ({"name": "🦊 fox"}, "🦊 fox", "fox"),
        ({"name": "n" * 255}, "n" * 255, "n" * 255),
        ({"path": "p" * 255}, "p" * 255, "p" * 255),
        ({"path": "_.A-z.9."}, "_.A-z.9.", "_.A-z.9."),
        ({"path": "api"}, "api", "api"),
    ],
)
def test_a_project_needs_a_name_or_a_path(fields, name, path, people, as_stranger):
    response = as_stranger.post("/projects", json=fields)

    assert (response.status_code, response.json["name"], response.json["path"]) == (201, name, path)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "name, path are missing, at least one parameter must be provided"),
        ({"description": "x"}, "name, path are missing, at least one parameter must be provided"),
        ({"name": "x", "visibility": "secret"}, "visibility does not have a valid value"),
        ({"name": "x", "namespace_id": "acme"}, "namespace_id is invalid"),
        ({"name": "x", "issues_enabled": "perhaps"}, "issues_enabled is invalid"),
        ({"name": "x", "wiki_access_level": "public"}, "wiki_access_level does not have a valid value"),
        ({"name": ["x"]}, "name is invalid"),
    ],
)
def test_invalid_parameters_of_a_new_project_are_refused(fields, text, people, as_stranger):
    response = as_stranger.post("/projects", json=fields)

    assert (response.status_code, response.json) == (400, {"error": text})


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"name": "shop", "path": "shop"}, {"name": TAKEN, "path": TAKEN}),
        ({"name": "shop"}, {"name": TAKEN, "path": TAKEN}),
        ({"name": "shop", "path": "other"}, {"name": TAKEN}),
        ({"name": "Shop", "path": "SHOP"}, {"path": TAKEN}),
        ({"path": "Tools"}, {"path": TAKEN}),
        ({"path": "a b"}, {"name": None, "path": INVALID_PATH}),
        ({"path": "-x", "name": "x"}, {"path": INVALID_PATH}),
        ({"path": "x.git", "name": "x"}, {"path": INVALID_PATH}),
        ({"path": "x.Atom", "name": "x"}, {"path": INVALID_PATH}),
        ({"path": "a/b", "name": "x"}, {"path": INVALID_PATH}),
        ({"path": ".", "name": "x"}, {"path": INVALID_PATH}),
        ({"path": "..", "name": "x"}, {"path": INVALID_PATH}),
        ({"path": "größe", "name": "x"}, {"path": INVALID_PATH}),
        ({"path": "p" * 256, "name": "x"}, {"path": TOO_LONG}),
        ({"path": "tree", "name": "x"}, {"path": "tree is a reserved name"}),
        ({"path": "WIKIS", "name": "x"}, {"path": "WIKIS is a reserved name"}),
        ({"path": "-", "name": "x"}, {"path": f"{INVALID_PATH}|- is a reserved name"}),
        ({"name": "n" * 256, "path": "x"}, {"name": TOO_LONG}),
        ({"name": "<script>", "path": "x"}, {"name": INVALID_NAME}),
        ({"name": "-x", "path": "x"}, {"name": INVALID_NAME}),
        ({"name": "", "path": ""}, {"name": "can't be blank", "path": "can't be blank"}),
        ({"name": "名前"}, {"path": "can't be blank"}),
    ],
)
def test_a_new_project_that_breaks_a_rule_is_refused(fields, messages, project, group, as_):
    make_group("tools", group)

    response = as_(OLIVE).post("/projects", json=fields | {"namespace_id": group.id})

    expected = {name: text.split("|") for name, text in messages.items() if text}
    assert (response.status_code, response.json) == (400, {"message": expected | {"limit_reached": []}})


def test_names_and_paths_are_unique_per_namespace(project, as_stranger):
    assert as_stranger.post("/projects", json={"name": "shop", "path": "shop"}).status_code == 201


@pytest.mark.parametrize(
    "namespace", ["unknown", "hidden", "visible", "negative", "noone", "for maintainers", "personal"]
)
def test_an_unusable_namespace_is_refused(namespace, people, group_with_members, as_):
    group_with_members.project_creation_level = {"noone": "noone", "for maintainers": "maintainer"}.get(
        namespace, "developer"
    )
    namespace_ids = {
        "unknown": 999999,
        "hidden": make_group().id,
        "visible": make_group(visibility="public").id,
        "negative": -1,
        "personal": people[SAM].namespace_id,
    }
    db.session.commit()

    response = as_(DEV).post(
        "/projects", json={"name": "x", "namespace_id": namespace_ids.get(namespace, group_with_members.id)}
    )

    assert (response.status_code, response.json) == (400, error_body(namespace="is not valid"))


def test_administrators_create_projects_in_any_namespace(group_with_members, as_admin):
    group_with_members.project_creation_level = "noone"
    db.session.commit()

    assert as_admin.post("/projects", json={"name": "x", "namespace_id": group_with_members.id}).status_code == 201


@pytest.mark.parametrize(
    ("above", "expected", "status"),
    [
        ("private", "private", 201),
        ("private", "internal", 400),
        ("private", "public", 400),
        ("internal", "public", 400),
        ("internal", "internal", 201),
        ("public", "public", 201),
    ],
)
def test_a_project_cannot_be_more_visible_than_its_group(above, expected, status, people, as_admin):
    group = make_group("place", visibility=above)

    response = as_admin.post("/projects", json={"name": "x", "namespace_id": group.id, "visibility": expected})

    text = f"{expected} is not allowed in a {above} group."
    assert response.status_code == status
    assert status == 201 or response.json == {"message": {"visibility_level": [text]}}


def test_a_project_cannot_become_more_visible_than_its_group(project, as_):
    response = as_(OLIVE).put(f"/projects/{project.id}", json={"visibility": "public"})

    text = "public is not allowed in a private group."
    assert (response.status_code, response.json) == (400, {"message": {"visibility_level": [text]}})


def test_a_personal_project_may_have_any_visibility(people, as_stranger):
    assert as_stranger.post("/projects", json={"name": "x", "visibility": "public"}).json["visibility"] == "public"


def test_the_owner_of_a_personal_project_is_a_member(people, as_stranger):
    created = as_stranger.post("/projects", json={"name": "x"}).json["id"]

    members = as_stranger.get(f"/projects/{created}/members").json

    assert [(member["username"], member["access_level"]) for member in members] == [(SAM, 40)]
    assert as_stranger.get(f"/projects/{created}").json["permissions"]["project_access"]["access_level"] == 40


def test_a_project_of_a_group_has_no_members_of_its_own(group, as_):
    created = as_(OLIVE).post("/projects", json={"name": "x", "namespace_id": group.id}).json

    assert as_(OLIVE).get(f"/projects/{created['id']}/members").json == []
    assert "owner" not in created


@pytest.mark.parametrize("kind", ["personal", "group"])
def test_creating_a_project_records_one_event(kind, group, people, as_):
    fields = {"namespace_id": group.id} if kind == "group" else {}

    created = as_(OLIVE).post("/projects", json={"name": "x"} | fields).json["id"]

    events = db.session.scalars(select(Event)).all()
    assert [(event.action, event.author_id, event.project_id, event.target_type) for event in events] == [
        (Action.CREATED, people[OLIVE].id, created, None)
    ]


def test_a_refused_project_stores_nothing(project, group, as_):
    as_(OLIVE).post("/projects", json={"name": "shop", "namespace_id": group.id})

    assert (db.session.query(Event).count(), db.session.query(Project).count()) == (0, 1)


@pytest.mark.both_databases
@pytest.mark.parametrize("limit", [0, 1])
def test_the_number_of_personal_projects_has_a_limit(limit, people, group, client_of):
    user = make_user("small", projects_limit=limit)
    add_member(group, user, Role.DEVELOPER)
    client = client_of(user)
    for number in range(limit):
        client.post("/projects", json={"name": f"p{number}"})

    beyond = client.post("/projects", json={"name": "beyond"})

    text = f"Your project limit is {limit} projects! Please contact your administrator to increase it"
    assert (beyond.status_code, beyond.json) == (403, {"error": [text]})
    assert client.post("/projects", json={"name": "x", "namespace_id": group.id}).status_code == 201


def test_administrators_create_projects_for_other_users(people, as_admin):
    response = as_admin.post(f"/projects/user/{people[SAM].id}", json={"name": "Gift"})

    assert (response.status_code, response.json["path_with_namespace"], response.json["creator_id"]) == (
        201,
        "sam/Gift",
        people[SAM].id,
    )


SETTINGS = {
    "description": "what it is",
    "default_branch": "trunk",
    "tag_list": ["a", "b"],
    "packages_enabled": False,
    "resolve_outdated_diff_discussions": True,
    "container_registry_enabled": False,
    "emails_disabled": True,
    "shared_runners_enabled": False,
    "lfs_enabled": False,
    "ci_forward_deployment_enabled": False,
    "only_allow_merge_if_pipeline_succeeds": True,
    "allow_merge_on_skipped_pipeline": True,
    "restrict_user_defined_variables": True,
    "request_access_enabled": False,
    "only_allow_merge_if_all_discussions_are_resolved": True,
    "remove_source_branch_after_merge": False,
    "printing_merge_request_link_enabled": False,
    "auto_devops_enabled": True,
    "autoclose_referenced_issues": False,
    "ci_default_git_depth": 7,
    "build_timeout": 60,
    "build_coverage_regex": "x",
    "ci_config_path": ".ci.yml",
    "suggestion_commit_message": "s",
    "auto_cancel_pending_pipelines": "disabled",
    "build_git_strategy": "clone",
    "merge_method": "ff",
    "auto_devops_deploy_strategy": "manual",
    "issues_access_level": "private",
    "repository_access_level": "disabled",
    "merge_requests_access_level": "disabled",
    "forking_access_level": "disabled",
    "wiki_access_level": "disabled",
    "builds_access_level": "disabled",
    "snippets_access_level": "private",
    "pages_access_level": "public",
    "operations_access_level": "disabled",
    "analytics_access_level": "private",
    "security_and_compliance_access_level": "enabled",
}


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_every_documented_setting_can_be_set(method, people, as_stranger):
    fields = SETTINGS | {"name": "x"}
    path = "/projects"
    if method == "PUT":
        path = f"/projects/{as_stranger.post('/projects', json={'name': 'old'}).json['id']}"

    response = as_stranger.open(method, path, json=fields | {"public_builds": False})

    assert (response.status_code, response.json | fields) == (201 if method == "POST" else 200, response.json)
    assert (response.json["public_jobs"], response.json["jobs_enabled"], response.json["topics"]) == (
        False,
        False,
        ["a", "b"],
    )
    shown = as_stranger.get(f"/projects/{response.json['id']}").json
    assert shown | fields == shown


@pytest.mark.parametrize(
    ("switch", "feature"),
    [
        ("issues", "issues"),
        ("merge_requests", "merge_requests"),
        ("wiki", "wiki"),
        ("jobs", "builds"),
        ("snippets", "snippets"),
    ],
)
def test_enabled_flags_and_access_levels_agree(switch, feature, project, as_maintainer):
    path = f"/projects/{project.id}"

    off = as_maintainer.put(path, json={f"{switch}_enabled": False}).json
    on = as_maintainer.put(path, json={f"{feature}_access_level": "private"}).json

    shown = [(response[f"{switch}_enabled"], response[f"{feature}_access_level"]) for response in (off, on)]
    assert shown == [(False, "disabled"), (True, "private")]


@pytest.mark.parametrize("name", ["tag_list", "topics"])
def test_topics_are_set_and_cleared_by_both_parameter_names(name, project, as_maintainer):
    responses = [as_maintainer.put(f"/projects/{project.id}", json={name: tags}).json for tags in (["a", "b", "a"], [])]

    assert [(response["tag_list"], response["topics"]) for response in responses] == [
        (["a", "b"], ["a", "b"]),
        ([], []),
    ]


@pytest.mark.parametrize("fields", [{}, {"unknown": 1}])
def test_a_change_needs_a_parameter(fields, project, as_maintainer):
    response = as_maintainer.put(f"/projects/{project.id}", json=fields)

    assert response.status_code == 400
    assert response.json["error"].startswith("name, path, description, visibility, ")
    assert response.json["error"].endswith(" are missing, at least one parameter must be provided")


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"path": "other"}, {"path": [TAKEN]}),
        ({"path": "OTHER"}, {"path": [TAKEN]}),
        ({"path": "tools"}, {"path": [TAKEN]}),
        ({"name": "other"}, {"name": [TAKEN]}),
        ({"path": "a b"}, {"path": [INVALID_PATH]}),
        ({"path": ""}, {"path": ["can't be blank"]}),
        ({"name": ""}, {"name": ["can't be blank"]}),
        ({"name": "-"}, {"name": [INVALID_NAME]}),
        ({"path": "tree"}, {"path": ["tree is a reserved name"]}),
    ],
)
def test_a_change_of_a_project_that_breaks_a_rule_changes_nothing(fields, messages, project, group, as_):
    make_project("other", group)
    make_group("tools", group)

    response = as_(OLIVE).put(f"/projects/{project.id}", json=fields | {"description": "kept?"})

    stored = reload(project)
    assert (response.status_code, response.json) == (400, {"message": messages})
    assert (stored.path, stored.name, stored.description) == ("shop", "shop", None)


def test_a_project_with_a_new_path_is_found_only_there(project, group, as_maintainer):
    response = as_maintainer.put(f"/projects/{project.id}", json={"path": "Store"})

    assert (response.status_code, response.json["path_with_namespace"]) == (200, "acme/Store")
    assert as_maintainer.get("/projects/acme%2Fstore").json["id"] == project.id
    assert as_maintainer.get("/projects/acme%2Fshop").status_code == 404
    assert as_maintainer.put(f"/projects/{project.id}", json={"path": "store"}).json["path"] == "store"


@pytest.mark.both_databases
def test_the_old_path_of_a_project_is_free_at_once(project, group, as_):
    as_(OLIVE).put(f"/projects/{project.id}", json={"path": "moved", "name": "moved"})

    assert as_(OLIVE).post("/projects", json={"name": "shop", "namespace_id": group.id}).status_code == 201


def test_a_project_is_archived_and_unarchived(project, as_):
    path = f"/projects/{project.id}"

    responses = [as_(OLIVE).post(f"{path}/{act}") for act in ("archive", "archive", "unarchive", "unarchive")]

    assert [(response.status_code, response.json["archived"]) for response in responses] == [
        (201, True),
        (201, True),
        (201, False),
        (201, False),
    ]
    assert {frozenset(response.json) for response in responses} == {frozenset(PROJECT_KEYS | MAINTAINER_KEYS)}


@pytest.fixture
def inside_project(people):
    """Projects of all visibilities and all kinds of membership of dev, oldest first; returns ``inside``."""
    shown, work = make_group("shown", visibility="public"), make_group("work", name="Werk")
    own_group = make_group("lent")
    add_member(work, people[DEV], Role.MAINTAINER)
    add_member(own_group, people[DEV], Role.OWNER)
    make_project("hidden")
    make_project("internal", shown, visibility="internal", name="zeta", last_activity_at=LAST_YEAR)
    make_project("public", shown, visibility="public", description="A fine tool")
    inside = make_project("inside", work, archived=True, issues_access_level="disabled")
    add_member(make_project("direct", merge_requests_access_level="disabled"), people[DEV], Role.REPORTER)
    share(make_project("shared"), own_group, Role.GUEST)
    make_project("lent", own_group)
    make_project("personal", people[DEV])
    return inside


DEV_PROJECTS = ["personal", "lent", "shared", "direct", "inside"]


LISTED = [
    (NOBODY, "", ["public"]),
    (NOBODY, "visibility=internal", []),
    (SAM, "", ["public", "internal"]),
    (DEV, "", [*DEV_PROJECTS, "public", "internal"]),
    (ADA, "", [*DEV_PROJECTS, "public", "internal", "hidden"]),
    (DEV, "membership=true", DEV_PROJECTS),
    (ADA, "membership=true", []),
    (DEV, "owned=true", ["personal", "lent"]),
    (DEV, "min_access_level=10", DEV_PROJECTS),
    (DEV, "min_access_level=20", ["personal", "lent", "direct", "inside"]),
    (DEV, "min_access_level=40", ["personal", "lent", "inside"]),
    (DEV, "min_access_level=50", ["personal", "lent"]),
    (DEV, "archived=true", ["inside"]),
    (DEV, "archived=false&membership=true", ["personal", "lent", "shared", "direct"]),
    (DEV, "visibility=internal", ["internal"]),
    (DEV, "visibility=private", DEV_PROJECTS),
    (DEV, "search=side", ["inside"]),
    (DEV, "search=SIDE", ["inside"]),
    (DEV, "search=Zeta", ["internal"]),
    (DEV, "search=fine tool", ["public"]),
    (DEV, "search=work", []),
    (DEV, "search=werk&search_namespaces=true", ["inside"]),
    (DEV, "search=work/ins&search_namespaces=true", ["inside"]),
    (DEV, "search=_", []),
    (DEV, "starred=true", []),
    (DEV, "with_issues_enabled=true&membership=true", ["personal", "lent", "shared", "direct"]),
    (DEV, "with_merge_requests_enabled=true&membership=true", ["personal", "lent", "shared", "inside"]),
    (DEV, "id_after={inside}", ["personal", "lent", "shared", "direct"]),
    (DEV, "id_before={inside}", ["public", "internal"]),
    (DEV, "last_activity_before=2020-01-02", ["internal"]),
    (DEV, "last_activity_after=2020-01-02T00:00:00Z&id_before={inside}", ["public"]),
    (DEV, "order_by=id&sort=asc&membership=true", DEV_PROJECTS[::-1]),
    (DEV, "order_by=name&sort=asc&per_page=2", ["direct", "inside"]),
    (DEV, "order_by=path&sort=desc&per_page=2", ["shared", "public"]),
    (DEV, "order_by=created_at&sort=asc&per_page=1", ["internal"]),
    (DEV, "order_by=last_activity_at&sort=asc&per_page=1", ["internal"]),
    (DEV, "order_by=updated_at&sort=asc&per_page=1", ["internal"]),
    (DEV, "per_page=2&page=2", ["shared", "direct"]),
    (DEV, "membership=true&simple=true", DEV_PROJECTS),
]


@pytest.mark.both_databases
def test_projects_are_listed_with_filters_and_orders(inside_project, as_):
    clients = {person: as_(person) for person in (ADA, DEV, SAM, NOBODY)}

    found = [
        (person, query, paths(clients[person].get("/projects?" + query.format(inside=inside_project.id))))
        for person, query, _ in LISTED
    ]

    assert found == LISTED


@pytest.mark.both_databases
def test_projects_with_equal_times_are_ordered_by_id(people, as_admin):
    for number in range(3):
        make_project(f"p{number}", created_at=LAST_YEAR)

    assert paths(as_admin.get("/projects")) == ["p2", "p1", "p0"]
    assert paths(as_admin.get("/projects?sort=asc")) == ["p0", "p1", "p2"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("order_by=size", "order_by does not have a valid value"),
        ("sort=up", "sort does not have a valid value"),
        ("visibility=secret", "visibility does not have a valid value"),
        ("min_access_level=15", "min_access_level does not have a valid value"),
        ("archived=perhaps", "archived is invalid"),
        ("id_after=a", "id_after is invalid"),
        ("last_activity_after=never", "last_activity_after is invalid"),
    ],
)
def test_invalid_filters_of_projects_are_refused(query, text, group, as_stranger):
    lists = ["/projects", "/users/sam/projects", f"/groups/{group.id}/projects"]

    responses = [as_stranger.get(f"{path}?{query}") for path in lists]

    assert [(response.status_code, response.json) for response in responses] == [(400, {"error": text})] * 3


@pytest.mark.parametrize(("sort", "key"), [("asc", "id_after"), ("desc", "id_before")])
def test_a_list_supports_keyset_pagination(sort, key, people, as_admin):
    for number in range(3):
        make_project(f"p{number}")

    first = as_admin.get(f"/projects?pagination=keyset&order_by=id&sort={sort}&per_page=2")

    link = first.headers["Link"]
    assert f"{key}={first.json[-1]['id']}" in link
    assert link.endswith('>; rel="next"')
    assert not [name for name in ("X-Total", "X-Page", "X-Next-Page") if name in first.headers]
    second = as_admin.get(link.partition("/api/v4")[2].partition(">")[0])
    assert [*paths(first), *paths(second)] == (["p0", "p1", "p2"] if sort == "asc" else ["p2", "p1", "p0"])
    third = as_admin.get(second.headers["Link"].partition("/api/v4")[2].partition(">")[0])
    assert (third.json, "Link" in third.headers) == ([], False)


def test_keyset_pagination_needs_the_order_of_ids(people, as_stranger):
    response = as_stranger.get("/projects?pagination=keyset")

    text = "Keyset pagination is not yet available for this type of request"
    assert (response.status_code, response.json) == (405, {"error": text})


@pytest.mark.parametrize(
    ("person", "user", "found"),
    [
        (SAM, "dev", ["public"]),
        (SAM, "DEV", ["public"]),
        (DEV, "{id}", ["private", "public"]),
        (ADA, "dev", ["private", "public"]),
        (NOBODY, "dev", ["public"]),
        (SAM, "sam", []),
    ],
)
def test_personal_projects_of_a_user_are_listed(person, user, found, people, as_):
    make_project("public", people[DEV], visibility="public")
    make_project("private", people[DEV])
    make_project("elsewhere", make_group(visibility="public"), visibility="public", creator_id=people[DEV].id)

    assert paths(as_(person).get(f"/users/{user.format(id=people[DEV].id)}/projects")) == found


@pytest.mark.parametrize("user", ["nosuch", "999999"])
def test_projects_of_an_unknown_user_are_not_found(user, people, as_stranger):
    response = as_stranger.get(f"/users/{user}/projects")

    assert (response.status_code, response.json) == (404, {"message": "404 User Not Found"})


@pytest.mark.parametrize(
    ("person", "query", "found"),
    [
        (OLIVE, "", ["shared", "shop"]),
        (OLIVE, "?with_shared=false", ["shop"]),
        (OLIVE, "?include_subgroups=true", ["deep", "shared", "shop"]),
        (OLIVE, "?include_subgroups=true&with_shared=false&order_by=id&sort=asc", ["shop", "deep"]),
        (OLIVE, "?search=deep&include_subgroups=true", ["deep"]),
        (OLIVE, "?archived=true", []),
        (GUS, "?include_subgroups=true", ["shop"]),
    ],
)
def test_projects_of_a_group_are_listed(person, query, found, project, group, as_):
    share(make_project("shared"), group, Role.DEVELOPER)
    make_project("deep", make_group("below", group))

    assert paths(as_(person).get(f"/groups/{group.id}/projects{query}")) == found


@pytest.mark.both_databases
@pytest.mark.parametrize("person", [ADA, OLIVE, NOBODY])
@pytest.mark.parametrize("path", ["/projects", "/groups/{}/projects"])
def test_the_list_of_projects_takes_a_constant_number_of_queries(path, person, people, as_, count_queries):
    group = make_group("shown", visibility="public")
    for number in range(7):
        below = make_group(f"below{number}", group, visibility="public")
        share(make_project(f"p{number}", below, visibility="public"), group, Role.GUEST)
        make_project(f"own{number}", make_user(f"owner{number}"), visibility="public")
    client = as_(person)
    counts = []
    for size in (2, 1, 6):  # the first request also stores that the token was used
        with count_queries() as queries:
            client.get(f"{path.format(group.id)}?per_page={size}")
        counts.append(len(queries))

    assert counts[1] == counts[2]


@pytest.mark.both_databases
def test_only_one_of_several_concurrent_projects_gets_the_path(app, people, as_stranger):
    start = threading.Barrier(6)

    def create(number):
        with app.app_context():
            start.wait()
            return as_stranger.post(
                "/projects", json={"name": f"Same {number}", "path": "same" if number % 2 else "SAME"}
            )

    with ThreadPoolExecutor(6) as pool:
        responses = list(pool.map(create, range(6)))

    assert sorted(response.status_code for response in responses) == [201] + [400] * 5
    assert all(TAKEN in response.json["message"]["path"] for response in responses if response.status_code == 400)
    assert (db.session.query(Project).count(), db.session.query(Event).count()) == (1, 1)


@pytest.mark.both_databases
def test_only_one_of_several_concurrent_projects_gets_the_name(app, people, as_stranger):
    start = threading.Barrier(6)

    def create(number):
        with app.app_context():
            start.wait()
            return as_stranger.post("/projects", json={"name": "Same", "path": f"path{number}"})

    with ThreadPoolExecutor(6) as pool:
        responses = list(pool.map(create, range(6)))

    assert sorted(response.status_code for response in responses) == [201] + [400] * 5
    assert all(TAKEN in response.json["message"]["name"] for response in responses if response.status_code == 400)


@pytest.mark.both_databases
def test_a_concurrent_project_and_subgroup_do_not_share_a_path(app, group, as_):
    client, start = as_(OLIVE), threading.Barrier(2)

    def create(path, fields):
        with app.app_context():
            start.wait()
            return client.post(path, json=fields | {"name": "x", "path": "same"}).status_code

    with ThreadPoolExecutor(2) as pool:
        project = pool.submit(create, "/projects", {"namespace_id": group.id})
        below = pool.submit(create, "/groups", {"parent_id": group.id})

    assert sorted([project.result(), below.result()]) == [201, 400]


def open_issues(client, project):
    """The number of open issues in every response that shows the project; a set if the numbers differ."""
    path = f"/projects/{project.id}"
    found = [client.get(path).json, *(row for row in client.get("/projects").json if row["id"] == project.id)]
    group = f"/groups/{project.namespace_id}"
    found += [row for row in client.get(f"{group}/projects").json if row["id"] == project.id]
    found += [row for row in client.get(group).json["projects"] if row["id"] == project.id]
    expected = {row.get("open_issues_count", "hidden") for row in found}
    assert len(found) == 4
    return expected.pop() if len(expected) == 1 else expected


@pytest.mark.both_databases
def test_open_issues_exclude_confidential_ones(project, as_):
    client, issues = as_(OLIVE), f"/projects/{project.id}/issues"
    counts = [open_issues(client, project)]
    for fields in ({}, {}, {"confidential": True}):
        client.post(issues, json={"title": "x"} | fields)
    counts.append(open_issues(client, project))
    client.put(f"{issues}/1", json={"state_event": "close"})
    counts.append(open_issues(client, project))

    assert counts == [0, 2, 1]
    assert client.put(f"/projects/{project.id}", json={"description": "x"}).json["open_issues_count"] == 1
    assert client.post("/projects", json={"name": "fresh"}).json["open_issues_count"] == 0


@pytest.mark.parametrize(
    ("level", "expected"), [("enabled", [1, 1, 1]), ("private", [1, 1, "hidden"]), ("disabled", ["hidden"] * 3)]
)
def test_open_issues_are_shown_to_callers_who_see_issues(level, expected, people, as_admin, as_):
    group = make_group(visibility="public")
    project = make_project("open", group, visibility="public")
    as_admin.post(f"/projects/{project.id}/issues", json={"title": "x"})
    as_admin.put(f"/projects/{project.id}", json={"issues_access_level": level})
    add_member(project, people[GUS], Role.GUEST)

    assert [open_issues(as_(person), project) for person in (ADA, GUS, SAM)] == expected


def test_a_project_being_imported_shows_no_open_issues(project, as_):
    as_(OLIVE).post(f"/projects/{project.id}/issues", json={"title": "x"})
    reload(project).loading = True
    db.session.commit()

    assert open_issues(as_(OLIVE), project) == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [("merge_method", "ff"), ("build_timeout", 7200), ("lfs_enabled", False), ("build_git_strategy", "clone")],
)
def test_null_leaves_required_settings_unchanged(name, expected, project, as_):
    client = as_(MAX)
    client.put(f"/projects/{project.id}", json={name: expected})

    response = client.put(f"/projects/{project.id}", json={name: None})

    assert (response.status_code, response.json[name]) == (200, expected)


def test_null_clears_optional_fields(project, as_):
    client = as_(MAX)
    client.put(f"/projects/{project.id}", json={"ci_config_path": "ci.yml", "ci_default_git_depth": 20})

    response = client.put(f"/projects/{project.id}", json={"ci_config_path": None, "ci_default_git_depth": None})

    assert (response.json["ci_config_path"], response.json["ci_default_git_depth"]) == (None, None)


LATER_SETTINGS = {
    "squash_option": "always",
    "environments_access_level": "private",
    "monitor_access_level": "disabled",
    "model_registry_access_level": "private",
    "package_registry_access_level": "public",
    "emails_enabled": False,
    "merge_commit_template": "%{title}",
    "keep_latest_artifact": False,
    "resource_group_default_process_mode": "newest_first",
    "ci_pipeline_variables_minimum_override_role": "maintainer",
    "public_jobs": False,
}


def test_settings_of_later_releases_are_stored_and_answered_back(as_maintainer, project):
    path = f"/projects/{project.id}"
    answers = [as_maintainer.put(path, json={name: value}) for name, value in LATER_SETTINGS.items()]
    as_maintainer.put(path, json={"container_expiration_policy_attributes": {"enabled": True, "keep_n": 5}})

    shown = as_maintainer.get(path).json

    assert [answer.status_code for answer in answers] == [200] * len(LATER_SETTINGS)
    assert {name: shown[name] for name in LATER_SETTINGS} == LATER_SETTINGS
    policy = {"cadence": "1d", "enabled": True, "keep_n": 5, "older_than": "90d", "name_regex": ".*"}
    assert shown["container_expiration_policy"] == policy | {"name_regex_keep": None, "next_run_at": None}
    refused = as_maintainer.put(path, json={"squash_option": "maybe"})
    assert (refused.status_code, refused.json) == (400, {"error": "squash_option does not have a valid value"})


def test_operations_and_registries_have_views_of_later_releases(as_maintainer, project):
    changes = {"operations_access_level": "private", "monitor_access_level": "disabled", "packages_enabled": False}

    shown = as_maintainer.put(f"/projects/{project.id}", json=changes).json

    names = ("monitor", "environments", "feature_flags", "infrastructure", "package_registry")
    levels = [shown[f"{name}_access_level"] for name in names]
    assert levels == ["disabled", "private", "private", "private", "disabled"]


@pytest.mark.parametrize(("level", "statuses"), [("private", [200, 403]), ("disabled", [403, 403])])
def test_the_access_level_of_releases_applies(level, statuses, as_, as_admin, project):
    as_admin.put(f"/groups/{project.namespace_id}", json={"visibility": "public"})
    as_admin.put(f"/projects/{project.id}", json={"visibility": "public", "releases_access_level": level})

    found = [as_(person).get(f"/projects/{project.id}/releases").status_code for person in (DEV, SAM)]

    assert found == statuses


@pytest.mark.parametrize(
    ("feature", "path", "status"),
    [
        ("monitor", "alerts", 404),
        ("monitor", "error_tracking/errors", 403),
        ("monitor", "heartbeats", 403),
        ("environments", "environments", 403),
    ],
)
def test_monitoring_and_environments_are_switched_off(feature, path, status, as_maintainer, project):
    as_maintainer.put(f"/projects/{project.id}", json={f"{feature}_access_level": "disabled"})

    assert as_maintainer.get(f"/projects/{project.id}/{path}").status_code == status
