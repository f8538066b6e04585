"""Protected tags through HTTP (protected tags reference)."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from project_service.access.identity import ANONYMOUS as NO_CALLER
from project_service.access.identity import Caller
from project_service.access.rules import may_create_tag
from project_service.domain.access_levels import Role
from project_service.domain.accounts.users import BLOCKED
from project_service.domain.repositories import contents, models, protected_refs
from project_service.domain.repositories.protected_refs import ProtectedTag
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM

FEATURE = {
    "name": "feature",
    "create_access_levels": [{"access_level": 40, "access_level_description": "Maintainers"}],
}
MISSING = {"message": "404 Not found"}
TAKEN = {"message": ["Name has already been taken"]}
BLANK = {"message": ["Name can't be blank"]}
UNKNOWN_LEVEL = "create_access_level does not have a valid value"
INVALID_LEVEL = "create_access_level is invalid, create_access_level does not have a valid value"
OPERATIONS = [("GET", None), ("POST", None), ("GET", "feature"), ("DELETE", "feature")]
LONG_AGO = "Mon, 01 Jan 1990 00:00:00 GMT"


def tags(project, name=None):
    path = f"/projects/{project.id}/protected_tags"
    return path if name is None else f"{path}/{quote(name, safe='')}"


def all_operations(client, project, **fields):
    """The responses of all four operations on a project that has ``feature``."""
    sent = {"name": "other"} | fields
    return [client.open(method, tags(project, name), json=sent) for method, name in OPERATIONS]


def names_of(client, project):
    return [tag["name"] for tag in client.get(tags(project)).json]


def run_concurrently(count, action):
    """The results of ``action(number)`` in a number of threads that start together."""
    start = threading.Barrier(count)

    def start_together(number):
        start.wait()
        return action(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start_together, range(count)))


@pytest.fixture
def protect(project, as_maintainer):
    """Protects a tag through the API; returns the protection."""

    def create(name="feature", **fields):
        response = as_maintainer.post(tags(project), json={"name": name} | fields)
        assert response.status_code == 201, response.json
        return response.json

    return create


# Permissions


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("person", [ADA, OLIVE, MAX])
def test_maintainers_and_higher_roles_may_do_everything(person, archived, project, protect, as_):
    protect()
    sample_data.reload(project).archived = archived
    db.session.commit()

    responses = all_operations(as_(person), project)

    assert [response.status_code for response in responses] == [200, 201, 200, 204]


@pytest.mark.parametrize(
    ("person", "status", "text"),
    [
        (DEV, 403, "403 Forbidden"),
        (RITA, 403, "403 Forbidden"),
        (GUS, 403, "403 Forbidden"),
        (SAM, 404, "404 Project Not Found"),
        (NOBODY, 401, "401 Unauthorized"),
    ],
)
def test_other_roles_are_refused_before_parameters_are_validated(person, status, text, project, protect, as_):
    protect()

    responses = all_operations(as_(person), project, name=None, create_access_level="nonsense")

    assert [(response.status_code, response.json) for response in responses] == [(status, {"message": text})] * 4


@pytest.mark.parametrize("visibility", ["internal", "public"])
def test_non_members_get_403_and_anonymous_callers_401(visibility, as_):
    project = sample_data.make_project(visibility=visibility)

    assert [response.status_code for response in all_operations(as_(SAM), project)] == [403] * 4
    assert [response.status_code for response in all_operations(as_(NOBODY), project)] == [401] * 4


def test_external_users_do_not_see_internal_projects(people, client_of):
    project = sample_data.make_project(visibility="internal")
    client = client_of(sample_data.make_user(external=True))

    assert [response.json for response in all_operations(client, project)] == [{"message": "404 Project Not Found"}] * 4


def test_a_missing_project_is_401_for_anonymous_callers_and_404_for_users(project, as_):
    project.id = 4711

    assert {response.status_code for response in all_operations(as_(NOBODY), project)} == {401}
    assert [response.json for response in all_operations(as_(ADA), project)] == [
        {"message": "404 Project Not Found"}
    ] * 4


def test_a_read_only_token_cannot_write(project, protect, people, client_of):
    protect()

    responses = all_operations(client_of(people[MAX], "read_api"), project)

    assert [response.status_code for response in responses] == [200, 403, 200, 403]
    assert responses[1].json["error"] == responses[3].json["error"] == "insufficient_scope"


def test_a_token_with_another_scope_reads_nothing(project, protect, people, client_of):
    protect()

    responses = all_operations(client_of(people[MAX], "read_user", "read_repository"), project)

    assert [response.json["error"] for response in responses] == ["insufficient_scope"] * 4


def test_an_expired_token_is_refused(project, people, client_of):
    responses = all_operations(client_of(people[MAX], expires_at=clock.today()), project)

    assert [(response.status_code, response.json["error"]) for response in responses] == [(401, "invalid_token")] * 4


def test_an_unknown_token_is_refused_on_a_public_project_too(client_of, people):
    project = sample_data.make_project(visibility="public")
    client = client_of(people[MAX])
    client.token = "nobody-has-this"

    assert [response.json for response in all_operations(client, project)] == [{"message": "401 Unauthorized"}] * 4


def test_blocked_users_are_refused(project, people, client_of):
    client = client_of(people[MAX])
    sample_data.reload(people[MAX]).state = BLOCKED
    db.session.commit()

    blocked = {"message": "403 Forbidden - Your account has been blocked."}
    assert [(response.status_code, response.json) for response in all_operations(client, project)] == [
        (403, blocked)
    ] * 4


def test_an_expired_membership_grants_no_access(project, as_, people):
    sample_data.add_member(project, people[SAM], Role.MAINTAINER, clock.today())

    assert {response.status_code for response in all_operations(as_(SAM), project)} == {404}


@pytest.mark.parametrize(("method", "name"), [("PUT", None), ("PATCH", None), ("PUT", "feature"), ("POST", "feature")])
def test_protected_tags_have_no_update_route(method, name, project, as_):
    responses = [as_(person).open(method, tags(project, name)) for person in (MAX, NOBODY)]

    assert [(response.status_code, response.json) for response in responses] == [
        (405, {"error": "405 Not Allowed"}),
        (401, {"message": "401 Unauthorized"}),
    ]


# List and show


@pytest.mark.both_databases
def test_protected_tags_are_listed_in_order_of_creation(project, protect, as_maintainer):
    for name in ("v*", "nightly", "a", "A"):
        protect(name)
    other_project = sample_data.make_project()
    db.session.add(ProtectedTag(project_id=other_project.id, name="elsewhere", create_access_levels=[40]))
    db.session.commit()

    assert names_of(as_maintainer, project) == ["v*", "nightly", "a", "A"]


def test_a_protected_tag_has_the_documented_keys(project, protect, as_maintainer):
    protect("v*", create_access_level=30)
    protect("nightly", create_access_level=0)

    response = as_maintainer.get(tags(project))

    assert response.text == (
        '[{"name":"v*","create_access_levels":'
        '[{"access_level":30,"access_level_description":"Developers + Maintainers"}]},'
        '{"name":"nightly","create_access_levels":[{"access_level":0,"access_level_description":"No one"}]}]'
    )


def test_an_empty_list_has_one_page(project, as_maintainer):
    response = as_maintainer.get(tags(project))

    assert (response.json, response.headers["X-Total"], response.headers["X-Total-Pages"]) == ([], "0", "1")


@pytest.mark.both_databases
def test_the_list_is_paginated(project, protect, as_maintainer):
    for number in range(5):
        protect(f"t{number}")

    response = as_maintainer.get(f"{tags(project)}?per_page=2&page=2")

    shown = {name: response.headers[f"X-{name}"] for name in ("Total", "Total-Pages", "Page", "Next-Page", "Prev-Page")}
    assert [tag["name"] for tag in response.json] == ["t2", "t3"]
    assert shown == {"Total": "5", "Total-Pages": "3", "Page": "2", "Next-Page": "3", "Prev-Page": "1"}
    assert f'{tags(project)}?id={project.id}&page=3&per_page=2>; rel="next"' in response.headers["Link"]


def test_an_invalid_page_is_refused(project, as_maintainer):
    response = as_maintainer.get(f"{tags(project)}?page=a&per_page=0")

    assert response.status_code == 400
    assert response.json == {"error": "page is invalid, per_page has a value not allowed"}


@pytest.mark.both_databases
def test_the_list_takes_a_constant_number_of_queries(project, protect, as_maintainer, count_queries):
    counts = []
    for number in range(20):
        protect(f"t{number}")
    for size in (3, 20):
        with count_queries() as queries_sent:
            as_maintainer.get(f"{tags(project)}?per_page={size}&page=1")
        counts.append(len(queries_sent))

    assert counts[0] >= counts[1]


def test_a_protected_tag_is_shown_by_its_stored_name(project, protect, as_maintainer):
    protect()

    response = as_maintainer.get(tags(project, "feature"))

    assert (response.status_code, response.json) == (200, FEATURE)
    assert as_maintainer.head(tags(project, "feature")).status_code == 200


@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["v1.0", "V*", "v", "v**", "v%2A", "*", "other"])
def test_names_are_compared_literally(name, project, protect, as_maintainer):
    protect("v*")

    responses = [as_maintainer.get(tags(project, name)), as_maintainer.delete(tags(project, name))]

    assert [(response.status_code, response.json) for response in responses] == [(404, MISSING)] * 2
    assert names_of(as_maintainer, project) == ["v*"]


def test_a_star_in_a_url_need_not_be_encoded(project, protect, as_maintainer):
    protect("feature/*")

    assert as_maintainer.get(f"{tags(project)}/feature%2F*").json["name"] == "feature/*"
    assert as_maintainer.get(f"{tags(project)}/feature%2f%2A/").json["name"] == "feature/*"
    assert as_maintainer.get(f"{tags(project)}/feature/*").json == {"error": "404 Not Found"}


def test_the_project_is_found_by_its_path(project, protect, as_maintainer):
    protect("v1.0")

    shown = as_maintainer.get("/projects/Acme%2Fshop/protected_tags/v1.0")

    assert shown.json["name"] == "v1.0"


# Protect


@pytest.mark.parametrize(
    ("level", "stored", "text"),
    [
        (0, 0, "No one"),
        (30, 30, "Developers + Maintainers"),
        (40, 40, "Maintainers"),
        ("0", 0, "No one"),
        ("30", 30, "Developers + Maintainers"),
        ("40", 40, "Maintainers"),
        (None, 40, "Maintainers"),
        ("", 40, "Maintainers"),
    ],
)
def test_access_levels_are_stored_with_the_tag(level, stored, text, project, as_maintainer):
    response = as_maintainer.post(tags(project), json={"name": "new_tag", "create_access_level": level})

    level = {"access_level": stored, "access_level_description": text}
    assert (response.status_code, response.json) == (201, {"name": "new_tag", "create_access_levels": [level]})
    assert as_maintainer.get(tags(project, "new_tag")).json == response.json


def test_the_default_level_is_maintainer(project, as_maintainer):
    response = as_maintainer.post(f"{tags(project)}/", json={"name": "feature"})

    assert (response.status_code, response.json) == (201, FEATURE)


@pytest.mark.parametrize(
    "sent",
    [
        {"data": {"name": "feature/*", "create_access_level": "30"}},
        {"data": {"name": "feature/*", "create_access_level": "30"}, "content_type": "multipart/form-data"},
        {"query_string": {"name": "feature/*", "create_access_level": "30"}},
    ],
)
def test_parameters_in_forms_and_queries_equal_json(sent, project, as_maintainer):
    response = as_maintainer.post(tags(project), **sent)

    assert (response.status_code, response.json["name"]) == (201, "feature/*")
    assert response.json["create_access_levels"][0]["access_level"] == 30


REFUSALS = (
    ({}, 400, {"error": "name is missing"}),
    ({"create_access_level": 10}, 400, {"error": f"name is missing, {UNKNOWN_LEVEL}"}),
    ({"name": ""}, 422, BLANK),
    ({"name": None}, 422, BLANK),
    ({"name": "  \t\n"}, 422, BLANK),
    ({"name": []}, 400, {"error": "name is invalid"}),
    ({"name": {"a": 1}}, 400, {"error": "name is invalid"}),
    *(({"name": "x", "create_access_level": level}, 400, {"error": UNKNOWN_LEVEL}) for level in (5, 10, 20)),
    *(({"name": "x", "create_access_level": level}, 400, {"error": UNKNOWN_LEVEL}) for level in ("50", 60, -30)),
    *(({"name": "x", "create_access_level": level}, 400, {"error": INVALID_LEVEL}) for level in ("high", "30.0")),
    *(({"name": "x", "create_access_level": level}, 400, {"error": INVALID_LEVEL}) for level in (30.5, True, [30])),
    ({"name": "x" * 256}, 422, {"message": ["Name is too long (maximum is 255 characters)"]}),
)


def test_invalid_protections_are_refused(project, as_maintainer):
    responses = [as_maintainer.post(tags(project), json=fields) for fields, _, _ in REFUSALS]

    assert [(response.status_code, response.json) for response in responses] == [
        (status, body) for _, status, body in REFUSALS
    ]
    assert names_of(as_maintainer, project) == []


def test_a_long_incompressible_name_is_accepted(project, as_maintainer):
    name = "".join(chr(0x10000 + number * 1013 % 0x20000) for number in range(255))

    response = as_maintainer.post(tags(project), json={"name": name})

    assert (response.status_code, response.json["name"]) == (201, name)


def test_numbers_and_booleans_are_accepted_as_names(project, as_maintainer):
    names = [as_maintainer.post(tags(project), json={"name": name}).json["name"] for name in (17, True)]

    assert names == ["17", "true"]


NAMES = (
    *("feature/*", "*-stable", "v1.0", "v1.json", "a b", " lead", "trail ", "feature/", "/feature", "a//b"),
    *("Größe", "日本/語", "🚀", "a%2Fb", "100%", "%41", "a+b", "a?b", "a#b", "a&b=c", "a;b", "a\\b", '"q"', "<b>"),
    *("a.tar.gz", "-x", "~^:", "it's", "**************a", "line\nbreak", "x" * 255),
)


@pytest.mark.both_databases
def test_names_are_stored_unchanged(project, as_maintainer):
    created = [as_maintainer.post(tags(project), json={"name": name}).json["name"] for name in NAMES]
    shown = [as_maintainer.get(tags(project, name)).json["name"] for name in NAMES]
    removed = [as_maintainer.delete(tags(project, name)).status_code for name in NAMES]

    assert (created, shown) == ([*NAMES], [*NAMES])
    assert (removed, names_of(as_maintainer, project)) == ([204] * len(NAMES), [])


@pytest.mark.both_databases
def test_a_duplicate_name_is_refused(project, protect, as_maintainer):
    protect()

    response = as_maintainer.post(tags(project), json={"name": "feature", "create_access_level": 0})

    assert (response.status_code, response.json) == (422, TAKEN)
    assert as_maintainer.get(tags(project)).json == [FEATURE]


@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["Feature", "feature ", " feature", "feature*"])
def test_similar_names_are_distinct(name, protect, project, as_maintainer):
    protect()

    protect(name)

    assert names_of(as_maintainer, project) == ["feature", name]


def test_another_project_may_protect_the_same_name(protect, people, as_maintainer):
    protect()
    other = sample_data.make_project()
    sample_data.add_member(other, people[MAX], Role.MAINTAINER)

    assert as_maintainer.post(tags(other), json={"name": "feature"}).status_code == 201


@pytest.mark.both_databases
def test_only_one_of_several_concurrent_requests_protects_a_name(project, client_of, people, as_maintainer):
    client = client_of(people[MAX])

    def create(number):
        sent = {"name": "same", "create_access_level": (0, 30, 40)[number % 3]}
        headers = {"PRIVATE-TOKEN": client.token}
        return client.browser.open(f"/api/v4{tags(project)}", method="POST", json=sent, headers=headers)

    responses = run_concurrently(8, create)

    assert sorted(response.status_code for response in responses) == [201] + [422] * 7
    assert [response.json for response in responses if response.status_code == 422] == [TAKEN] * 7
    assert names_of(as_maintainer, project) == ["same"]


# Unprotect


def test_a_protection_is_deleted_once(project, protect, as_maintainer):
    protect()

    responses = [as_maintainer.delete(tags(project, "feature")) for _ in range(2)]

    assert [(response.status_code, response.data) for response in responses[:1]] == [(204, b"")]
    assert "Content-Type" not in responses[0].headers
    assert (responses[1].status_code, responses[1].json) == (404, MISSING)


def test_deleting_a_wildcard_keeps_the_tags_it_covers(project, protect, as_maintainer):
    for name in ("v*", "v1.*", "v1.0"):
        protect(name)

    as_maintainer.delete(tags(project, "v1.*"), json={"name": "v1.0"})

    assert names_of(as_maintainer, project) == ["v*", "v1.0"]


@pytest.mark.both_databases
def test_concurrent_deletions_do_not_fail(project, protect, client_of, people, as_maintainer):
    protect()
    client = client_of(people[MAX])

    def remove(_number):
        headers = {"PRIVATE-TOKEN": client.token}
        return client.browser.open(f"/api/v4{tags(project, 'feature')}", method="DELETE", headers=headers).status_code

    statuses = run_concurrently(6, remove)

    assert set(statuses) <= {204, 404}
    assert 204 in statuses
    assert names_of(as_maintainer, project) == []


@pytest.mark.parametrize("since", [LONG_AGO, "1990-01-01"])
def test_a_delete_with_an_old_if_unmodified_since_is_412(since, project, protect, as_maintainer):
    protect()

    response = as_maintainer.delete(tags(project, "feature"), headers={"If-Unmodified-Since": since})

    assert (response.status_code, response.json) == (412, {"message": "412 Precondition Failed"})
    assert names_of(as_maintainer, project) == ["feature"]


@pytest.mark.parametrize("since", ["Fri, 01 Jan 2100 00:00:00 GMT", "no date", ""])
def test_a_delete_with_a_current_if_unmodified_since_succeeds(since, project, protect, as_maintainer):
    protect()

    response = as_maintainer.delete(tags(project, "feature"), headers={"If-Unmodified-Since": since})

    assert (response.status_code, response.data) == (204, b"")


# Side effects


@pytest.mark.parametrize(
    ("method", "name", "fields", "updates_project"),
    [
        ("POST", None, {"name": "new"}, True),
        ("DELETE", "feature", {}, True),
        ("POST", None, {"name": "feature"}, False),
        ("POST", None, {"name": ""}, False),
        ("DELETE", "other", {}, False),
        ("GET", "feature", {}, False),
    ],
)
def test_changes_of_protected_tags_update_the_project(
    method, name, fields, updates_project, project, protect, as_maintainer
):
    protect()
    before = clock.now() - dt.timedelta(days=1)
    sample_data.reload(project).updated_at = before
    db.session.commit()

    as_maintainer.open(method, tags(project, name), json=fields)

    assert (sample_data.reload(project).updated_at > before) == updates_project


@pytest.mark.both_databases
def test_changes_are_not_recorded_as_events(project, protect, as_maintainer):
    protect()
    as_maintainer.delete(tags(project, "feature"))

    assert as_maintainer.get(f"/projects/{project.id}/events").json == []


@pytest.mark.both_databases
def test_protected_tags_are_removed_with_their_project(project, protect, as_, run_jobs):
    protect()

    deleted = as_(OLIVE).delete(f"/projects/{project.id}")
    run_jobs()

    assert deleted.status_code == 202
    assert db.session.query(ProtectedTag).count() == 0


# Permission to create a tag


def caller_of(people, name):
    return Caller.of(people[name]) if name else NO_CALLER


CREATORS_BY_LEVELS = (
    ([], {ADA, OLIVE, MAX, DEV}),
    ([0], set()),
    ([30], {ADA, OLIVE, MAX, DEV}),
    ([40], {ADA, OLIVE, MAX}),
    ([0, 40], {ADA, OLIVE, MAX}),
    ([40, 0, 30], {ADA, OLIVE, MAX, DEV}),
    ([0, 0], set()),
)


def test_the_most_permissive_level_decides_who_creates_a_protected_tag(project, people):
    callers = (ADA, OLIVE, MAX, DEV, RITA, GUS, SAM, NOBODY)

    found = [
        (levels, {name for name in callers if may_create_tag(caller_of(people, name), project, levels)})
        for levels, _ in CREATORS_BY_LEVELS
    ]

    assert found == [*CREATORS_BY_LEVELS]


LEVELS = {
    "v1.0": [30, 40, 0],
    "v1.1": [30, 40],
    "v2": [30],
    "V1.0": [],
    "release": [40],
    "Release": [],
    "nightly": [],
    "": [],
}


def test_a_tag_has_the_levels_of_every_matching_protection(project, protect):
    for protected, level in (("v*", 30), ("v1.*", 40), ("v1.0", 0), ("release", 40)):
        protect(protected, create_access_level=level)

    assert {name: protected_refs.levels_for(project, name) for name in LEVELS} == LEVELS


@pytest.mark.parametrize(("person", "allowed"), [(MAX, True), (DEV, False), (ADA, True)])
def test_any_matching_protection_can_allow_a_tag(person, allowed, project, protect, people):
    protect("release/*", create_access_level=40)
    protect("release/0*", create_access_level=0)

    levels = protected_refs.levels_for(project, "release/0.1")

    assert may_create_tag(caller_of(people, person), project, levels) == allowed


# The tags of a repository


def test_a_project_without_repository_has_no_tags(project):
    assert contents.tag_names(project) == []


@pytest.fixture
def store_repository(project, tmp_path):
    """Stores a repository with these tags for the project."""
    return lambda *tags: keep_repository(project, tmp_path, *tags)


@pytest.mark.both_databases
def test_tags_of_a_repository_are_listed_in_order(store_repository, project):
    store_repository("v2", "größe", "v1/rc")

    assert contents.tag_names(project) == ["größe", "v1/rc", "v2"]


def test_a_repository_without_tags_has_none(store_repository, project):
    store_repository()

    assert contents.tag_names(project) == []


def test_a_missing_local_copy_of_a_repository_is_recreated(store_repository, project):
    store_repository("v1")
    contents.tag_names(project)
    shutil.rmtree(models.root())

    assert contents.tag_names(project) == ["v1"]


def test_a_format_suffix_is_part_of_a_name(project, as_maintainer):
    here = f"/projects/{project.id}/protected_tags"
    for name in ("y", "y.json"):
        as_maintainer.post(here, json={"name": name})

    as_maintainer.delete(f"{here}/y.json")

    assert [tag["name"] for tag in as_maintainer.get(here).json] == ["y"]


@pytest.mark.parametrize("name", [".", ".."])
def test_dot_segments_as_names_are_refused(name, project, as_maintainer):
    response = as_maintainer.post(f"/projects/{project.id}/protected_tags", json={"name": name})

    assert (response.status_code, response.json) == (422, {"message": ["Name is invalid"]})
