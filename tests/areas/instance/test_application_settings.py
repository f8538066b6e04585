"""Application settings through HTTP (supporting resources reference, section 9)."""

from __future__ import annotations

import pytest

from project_service.domain import instance_settings
from project_service.kit.db.session import unit_of_work
from tests.support.sample_data import ADA, MAX, NOBODY, OLIVE, SAM

SETTINGS = "/application/settings"
WHITELIST = "outbound_local_requests_whitelist"
INVALID_PREFIX = "can contain only letters of the Base64 alphabet (RFC4648) with the addition of '@', ':' and '.'"
DEFAULTS = {
    "id": 1,
    "allow_local_requests_from_web_hooks_and_services": False,
    "audit_event_retention_days": 365,
    "default_branch_name": None,
    "default_group_visibility": "private",
    "default_project_visibility": "private",
    "default_projects_limit": 100000,
    "error_tracking_errors_per_project": 10_000,
    "error_tracking_event_limit": 1000,
    "error_tracking_events_per_error": 100,
    "error_tracking_max_event_size": 1_048_576,
    "error_tracking_retention_days": 90,
    "gravatar_enabled": False,
    "max_attachment_size": 100,
    "max_export_size": 0,
    "max_import_size": 0,
    "outbound_local_requests_whitelist": [],
    "password_authentication_enabled_for_git": True,
    "personal_access_token_prefix": None,
    "project_download_export_limit": 0,
    "project_export_enabled": True,
    "project_export_limit": 0,
    "project_import_limit": 0,
    "push_event_activities_limit": 3,
    "push_event_hooks_limit": 3,
    "receive_max_input_size": 5120,
    "ropc_without_client_credentials": False,
    "search_rate_limit": 30,
    "restricted_visibility_levels": [],
    "require_two_factor_authentication": False,
    "signup_enabled": True,
    "two_factor_grace_period": 48,
    "alert_request_log_days": 7,
    "alert_request_log_size": 100,
    "throttle_incident_management_notification_enabled": False,
    "throttle_incident_management_notification_per_period": 3600,
    "throttle_incident_management_notification_period_in_seconds": 3600,
}


def change(client, **fields):
    return client.put(SETTINGS, json=fields)


@pytest.mark.parametrize(("person", "status"), [(ADA, 200), (OLIVE, 403), (MAX, 403), (SAM, 403), (NOBODY, 401)])
def test_only_administrators_see_and_change_settings(person, status, as_):
    shown = as_(person).get(SETTINGS)
    changed = change(as_(person), max_import_size=status)
    invalid = change(as_(person), max_import_size="nonsense")

    assert (shown.status_code, changed.status_code) == (status, status)
    assert invalid.status_code == (400 if status == 200 else status)


def test_a_read_only_token_cannot_change_settings(people, client_of):
    client = client_of(people[ADA], "read_api")

    assert (client.get(SETTINGS).status_code, change(client, max_import_size=1).status_code) == (200, 403)


def test_settings_have_default_values(as_admin):
    shown = as_admin.get(SETTINGS).json

    assert "gitlab_project" in shown.pop("import_sources")
    assert shown == DEFAULTS


def test_a_change_is_returned_stored_and_affects_nothing_else(as_admin):
    before = as_admin.get(SETTINGS).json
    changes = {
        "max_import_size": 50,
        "signup_enabled": False,
        "default_project_visibility": "internal",
        "restricted_visibility_levels": ["public", "internal"],
        "import_sources": ["gitlab_project"],
        "personal_access_token_prefix": "glpat-",
        "outbound_local_requests_whitelist": ["example.com"],
    }

    response = change(as_admin, **changes)

    assert (response.status_code, response.json) == (200, before | changes)
    assert as_admin.get(SETTINGS).json == response.json


def test_a_changed_setting_applies_at_once(as_admin, app):
    change(as_admin, max_import_size=7)

    assert instance_settings.setting("max_import_size") == 7


ACCEPTED_VALUES = [
    ({"max_import_size": "12"}, {"max_import_size": 12}),
    ({"signup_enabled": "off"}, {"signup_enabled": False}),
    ({"signup_enabled": 0}, {"signup_enabled": False}),
    ({"max_import_size": None}, {"max_import_size": 0}),
    ({"max_import_size": ""}, {"max_import_size": 0}),
    ({"default_group_visibility": None}, {"default_group_visibility": "private"}),
    ({"personal_access_token_prefix": ""}, {"personal_access_token_prefix": ""}),
    ({"personal_access_token_prefix": None}, {"personal_access_token_prefix": None}),
    ({"default_projects_limit": 0}, {"default_projects_limit": 0}),
    ({"import_sources": []}, {"import_sources": []}),
    ({"import_sources": "git, gitea"}, {"import_sources": ["git", "gitea"]}),
    ({"id": 5, "max_import_size": 1}, {"id": 1, "max_import_size": 1}),
    ({"colour": "blue", "max_import_size": 1}, {"max_import_size": 1}),
]


def test_values_are_accepted_in_the_forms_that_clients_send(as_admin):
    for sent, expected in ACCEPTED_VALUES:
        change(as_admin, max_import_size=5, signup_enabled=True, default_group_visibility="public")

        response = change(as_admin, **sent)

        assert response.status_code == 200, sent
        assert {name: response.json[name] for name in expected} == expected


INVALID_VALUES = [
    ({"max_import_size": "much"}, {"error": "max_import_size is invalid"}),
    ({"max_import_size": 1.5}, {"error": "max_import_size is invalid"}),
    ({"max_import_size": True}, {"error": "max_import_size is invalid"}),
    ({"max_import_size": [1]}, {"error": "max_import_size is invalid"}),
    ({"max_import_size": 2**63}, {"error": "max_import_size is invalid"}),
    ({"signup_enabled": "maybe"}, {"error": "signup_enabled is invalid"}),
    (
        {"signup_enabled": "maybe", "max_import_size": "much"},
        {"error": "max_import_size is invalid, signup_enabled is invalid"},
    ),
    (
        {"default_project_visibility": "secret"},
        {"error": "default_project_visibility does not have a valid value"},
    ),
    (
        {"restricted_visibility_levels": ["public", "secret"]},
        {"error": "restricted_visibility_levels does not have a valid value"},
    ),
    ({"restricted_visibility_levels": [None]}, {"error": "restricted_visibility_levels is empty"}),
    ({"import_sources": ["cvs"]}, {"error": "import_sources does not have a valid value"}),
    ({"import_sources": {"git": True}}, {"error": "import_sources is invalid"}),
    ({WHITELIST: {"a": 1}}, {"error": f"{WHITELIST} is invalid"}),
    ({WHITELIST: [["a"]]}, {"error": f"{WHITELIST} is invalid"}),
    ({WHITELIST: [None]}, {"error": f"{WHITELIST} is empty"}),
    ({"max_import_size": -1}, {"message": {"max_import_size": ["must be greater than or equal to 0"]}}),
    ({"max_attachment_size": 0}, {"message": {"max_attachment_size": ["must be greater than 0"]}}),
    (
        {"max_import_size": -1, "max_export_size": -1},
        {
            "message": {
                "max_export_size": ["must be greater than or equal to 0"],
                "max_import_size": ["must be greater than or equal to 0"],
            }
        },
    ),
    (
        {"personal_access_token_prefix": "a" * 21},
        {"message": {"personal_access_token_prefix": ["is too long (maximum is 20 characters)"]}},
    ),
    (
        {"personal_access_token_prefix": "no blanks"},
        {"message": {"personal_access_token_prefix": [INVALID_PREFIX]}},
    ),
]


def test_invalid_values_change_nothing(as_admin):
    before = as_admin.get(SETTINGS).json

    responses = [change(as_admin, **({"push_event_activities_limit": 9} | sent)) for sent, _ in INVALID_VALUES]

    assert [response.json for response in responses] == [body for _, body in INVALID_VALUES]
    assert {response.status_code for response in responses} == {400}
    assert as_admin.get(SETTINGS).json == before


@pytest.mark.parametrize("fields", [{}, {"colour": "blue"}, {"id": 1}])
def test_a_change_needs_at_least_one_known_setting(fields, as_admin):
    response = change(as_admin, **fields)

    names = ", ".join(sorted({*DEFAULTS, "import_sources"} - {"id"}))
    assert response.status_code == 400
    assert response.json == {"error": f"{names} are missing, at least one parameter must be provided"}


ALLOWLIST_ENTRIES = ["example.com", "example.com:8080", "10.0.0.1", "10.0.0.0/8:443", "fd00::/8", "[fd00::1]:8080"]


@pytest.mark.parametrize(
    "options",
    [
        {"json": {WHITELIST: ALLOWLIST_ENTRIES}},
        {"json": {WHITELIST: ",".join(ALLOWLIST_ENTRIES)}},
        {"json": {WHITELIST: [*ALLOWLIST_ENTRIES[:2], "", ",".join(ALLOWLIST_ENTRIES[2:])]}},
        {"data": {f"{WHITELIST}[]": ALLOWLIST_ENTRIES}},
        {"data": {WHITELIST: ", ".join(ALLOWLIST_ENTRIES)}},
        {"query_string": {f"{WHITELIST}[]": ALLOWLIST_ENTRIES}},
        {"data": {f"{WHITELIST}[]": ALLOWLIST_ENTRIES}, "content_type": "multipart/form-data"},
    ],
)
def test_the_outgoing_allowlist_accepts_array_brackets_or_text(options, as_admin):
    response = as_admin.put(SETTINGS, **options)

    assert (response.status_code, response.json[WHITELIST]) == (200, ALLOWLIST_ENTRIES)


@pytest.mark.parametrize("options", [{"json": {WHITELIST: []}}, {"json": {WHITELIST: ""}}, {"data": {WHITELIST: ""}}])
def test_an_empty_list_clears_the_outgoing_allowlist(options, as_admin):
    change(as_admin, **{WHITELIST: ["example.com"]})

    response = as_admin.put(SETTINGS, **options)

    assert (response.status_code, response.json[WHITELIST]) == (200, [])


def test_an_invalid_allowlist_entry_changes_nothing(as_admin):
    change(as_admin, **{WHITELIST: ["example.com"]})

    for entry in (
        "http://example.com",
        "exa mple.com",
        "10.0.0.300",
        "example.com:99999",
        "fd00::/200",
        ":1",
        "*",
        "80",
    ):
        response = change(as_admin, **{WHITELIST: ["example.org", entry]})
        assert response.status_code == 400
        assert response.json["message"][WHITELIST][0].startswith(f"{entry} is invalid")

    assert as_admin.get(SETTINGS).json[WHITELIST] == ["example.com"]


RESTRICTED = ["public has been restricted by your GitLab administrator"]


@pytest.fixture
def public(as_stranger):
    """A public project and a public group of a user, created before public visibility is restricted."""
    fields = {"name": "Open", "path": "open", "visibility": "public"}
    created = {kind: as_stranger.post(f"/{kind}", json=fields).json["id"] for kind in ("projects", "groups")}
    with unit_of_work():
        instance_settings.change_settings({"restricted_visibility_levels": ["public"]})
    return created


def test_users_cannot_choose_a_restricted_visibility(public, as_stranger):
    fields = {"name": "New", "path": "new-one", "visibility": "public"}
    project, group = (as_stranger.post(f"/{kind}", json=fields) for kind in ("projects", "groups"))
    private = as_stranger.post("/projects", json={"path": "shut"}).json["id"]
    changed = as_stranger.put(f"/projects/{private}", json={"visibility": "public"})

    messages = {"visibility_level": RESTRICTED}
    assert (project.status_code, project.json) == (400, {"message": messages})
    assert (group.status_code, group.json) == (
        400,
        {"message": f'Failed to save group {{:visibility_level=>["{RESTRICTED[0]}"]}}'},
    )
    assert (changed.status_code, changed.json) == (400, {"message": messages})


def test_administrators_may_choose_a_restricted_visibility(public, as_admin):
    fields = {"name": "New", "path": "new-one", "visibility": "public"}

    responses = [as_admin.post(f"/{kind}", json=fields | {"path": kind[:-1]}) for kind in ("projects", "groups")]

    assert [(response.status_code, response.json["visibility"]) for response in responses] == [(201, "public")] * 2


@pytest.mark.parametrize("kind", ["projects", "groups"])
def test_existing_projects_keep_a_restricted_visibility(kind, public, as_stranger):
    address = f"/{kind}/{public[kind]}"
    response = as_stranger.put(address, json={"description": "still open", "visibility": "public"})

    assert (response.status_code, response.json["visibility"]) == (200, "public")
    assert as_stranger.put(address, json={"visibility": "private"}).status_code == 200
    public_again = as_stranger.put(address, json={"visibility": "public"})
    assert (public_again.status_code, public_again.json) == (400, {"message": {"visibility_level": RESTRICTED}})
