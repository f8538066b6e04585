"""Which actions are recorded: by the API, by pages, by git and by commands."""

from __future__ import annotations

import pytest

from project_service.access import audit
from project_service.areas.alerts.alerts import service as alerts_service
from project_service.areas.error_tracking.settings import service as error_tracking_service
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.areas.instance import service as instance_service
from project_service.domain.audit.models import AuditEvent
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import ADA, DEV, OLIVE, PASSWORD, SAM, make_group, make_token

SECRET_VALUE = "eu-central-1-secret"


def events():
    """Return the entity type, name and message of all events, oldest first."""
    rows = db.session.scalars(db.select(AuditEvent).order_by(AuditEvent.id))
    return [(one.entity_type, one.event_name, one.details["custom_message"]) for one in rows]


def of_project(name, message):
    return "Project", name, message


def test_changes_of_a_project_are_recorded(as_, project, people):
    owner, shop = as_(OLIVE), f"/projects/{project.id}"
    owner.put(shop, json={"name": "Market", "visibility": "private", "issues_access_level": "disabled"})
    owner.post(f"{shop}/archive")
    owner.post(f"{shop}/archive")
    owner.post(f"{shop}/unarchive")
    owner.delete(shop)

    assert events() == [
        of_project("project_name_updated", "Changed name from shop to Market"),
        of_project("project_issues_access_level_updated", "Changed issues access level from enabled to disabled"),
        of_project("project_archived", "Project archived"),
        of_project("project_unarchived", "Project unarchived"),
        of_project("project_destroyed", "Project destroyed"),
    ]
    assert {one.author_id for one in db.session.scalars(db.select(AuditEvent))} == {people[OLIVE].id}


def test_changes_of_members_and_shares_are_recorded(as_, project, people):
    owner, shop, sam = as_(OLIVE), f"/projects/{project.id}", people[SAM].id
    other = make_group("other", visibility="public")
    owner.post(f"{shop}/members", json={"user_id": sam, "access_level": 20, "expires_at": "2099-01-01"})
    owner.put(f"{shop}/members/{sam}", json={"access_level": 30})
    owner.delete(f"{shop}/members/{sam}")
    owner.post(f"{shop}/share", json={"group_id": other.id, "group_access": 30})
    owner.delete(f"{shop}/share/{other.id}")

    assert events() == [
        of_project("member_created", "Membership created"),
        of_project("member_updated", "Membership updated"),
        of_project("member_destroyed", "Membership destroyed"),
        of_project("project_group_link_created", "Added group link as Developer"),
        of_project("project_group_link_deleted", "Deleted group link"),
    ]
    added, changed, removed, *_ = [one.details for one in db.session.scalars(db.select(AuditEvent))]
    assert (added["add"], added["as"], added["target_id"]) == ("user_access", "Reporter", sam)
    assert (changed["from"], changed["to"], changed["expiry_from"]) == ("Reporter", "Developer", "2099-01-01")
    assert (removed["remove"], removed["from"]) == ("user_access", "Developer")


def test_changes_of_groups_are_recorded(as_):
    owner = as_(OLIVE)
    number = owner.post("/groups", json={"name": "Mill", "path": "mill", "visibility": "private"}).json["id"]
    owner.put(f"/groups/{number}", json={"visibility": "public"})
    owner.post("/projects", json={"name": "Wheel", "namespace_id": number})
    owner.delete(f"/groups/{number}")

    assert events() == [
        ("Group", "group_created", "Added group"),
        ("Group", "group_visibility_level_updated", "Changed visibility level from private to public"),
        of_project("project_created", "Added project"),
        ("Group", "group_destroyed", "Group destroyed"),
    ]


def test_variables_are_recorded_without_their_values(as_maintainer, project):
    path = f"/projects/{project.id}/variables"
    as_maintainer.post(path, json={"key": "REGION", "value": SECRET_VALUE})
    as_maintainer.put(f"{path}/REGION", json={"value": f"{SECRET_VALUE}2", "protected": True})
    as_maintainer.delete(f"{path}/REGION")

    assert events() == [
        of_project("ci_variable_created", "Added ci variable REGION"),
        of_project("ci_variable_protected_updated", "Changed protected from False to True"),
        of_project("ci_variable_updated", "Changed ci variable value REGION"),
        of_project("ci_variable_deleted", "Removed ci variable REGION"),
    ]
    assert not any(SECRET_VALUE in str(one.details) for one in db.session.scalars(db.select(AuditEvent)))


def test_changes_of_users_and_tokens_are_recorded(as_admin, people):
    dev = people[DEV].id
    as_admin.put(f"/users/{dev}", json={"admin": True, "password": "correct horse battery"})
    as_admin.post(f"/users/{dev}/block")
    as_admin.post(f"/users/{dev}/unblock")
    token = as_admin.post(f"/users/{dev}/personal_access_tokens", json={"name": "ci", "scopes": ["api"]}).json
    as_admin.delete(f"/personal_access_tokens/{token['id']}")
    as_admin.delete(f"/users/{dev}")

    assert events() == [
        ("User", "user_password_updated", "Changed password"),
        ("User", "user_admin_updated", "Changed admin from False to True"),
        ("User", "user_blocked", "Blocked user"),
        ("User", "user_unblocked", "Unblocked user"),
        ("User", "personal_access_token_issued", f"Created personal access token with id {token['id']}"),
        ("User", "personal_access_token_revoked", f"Revoked personal access token with id {token['id']}"),
        ("User", "user_destroyed", "User dev scheduled for deletion"),
    ]
    assert not any(token["token"] in str(one.details) for one in db.session.scalars(db.select(AuditEvent)))


def test_settings_and_feature_flags_are_recorded(as_admin, people):
    as_admin.put("/application/settings", json={"max_import_size": 7, "signup_enabled": True})
    as_admin.post("/features/import_project_from_remote_file", json={"value": "true"})
    as_admin.delete("/features/import_project_from_remote_file")
    as_admin.delete("/features/unknown")

    assert [name for _, name, _ in events()] == [
        "application_setting_max_import_size_updated",
        "feature_flag_updated",
        "feature_flag_deleted",
    ]


def test_every_incident_setting_is_recorded(project):
    changes = {"create_issue": True, "auto_close_incident": False}
    for _ in range(2):
        with unit_of_work():
            alerts_service.save_incident_setting(project, **changes, issue_template_key=None)

    assert [name for _, name, _ in events()] == [f"incident_setting_{name}_updated" for name in changes]


def test_all_columns_of_a_row_are_recorded_but_secrets_and_excluded_ones():
    setting = ErrorTrackingSetting(token="secret", user_digest_key="secret", hidden_keys=["pin"])

    recorded = audit.settings_of(setting, error_tracking_service.UNAUDITED)

    columns = {column.name for column in ErrorTrackingSetting.__table__.columns}
    unrecorded = {"id", "project_id", "created_at", "updated_at", "token", "user_digest_key"}
    assert recorded.keys() == columns - unrecorded - set(error_tracking_service.UNAUDITED)
    assert recorded["hidden_keys"] == ["pin"]


def test_a_command_is_recorded_as_the_system(app):
    with unit_of_work():
        instance_service.change_settings_from_text({"max_import_size": "7"})

    event = db.session.scalars(db.select(AuditEvent)).one()
    assert (event.author_id, event.details["author_name"], event.details["to"]) == (-1, "(System)", 7)


def test_exports_are_recorded(as_maintainer, project):
    as_maintainer.post(f"/projects/{project.id}/export")
    as_maintainer.get(f"/projects/{project.id}/export/download")  # the file does not exist yet

    assert [name for _, name, _ in events()] == ["project_export_created"]


def test_sign_ins_are_recorded(visitor, paula):
    visitor.send("/users/sign_in", login="paula", password="wrong")
    visitor.send("/users/sign_in", login=PASSWORD, password="paula")  # login and password swapped
    visitor.send("/users/sign_in", login="paula", password=PASSWORD)

    assert [(kind, name) for kind, name, _ in events()] == [
        ("User", "login_failed_with_standard_authentication"),
        ("Gitlab::Audit::InstanceScope", "login_failed_with_standard_authentication"),
        ("User", "authenticated_with_password"),
    ]
    known, unknown, success = db.session.scalars(db.select(AuditEvent).order_by(AuditEvent.id))
    assert (known.author_id, known.entity_id, known.details["ip_address"]) == (-1, paula.id, "127.0.0.1")
    assert (unknown.author_id, unknown.details["target_details"]) == (-1, "unknown login")
    assert PASSWORD not in str(unknown.details)
    assert (success.author_id, success.details["author_name"]) == (paula.id, paula.name)


def test_a_failed_password_of_git_is_recorded(app, project, paula):
    app.test_client().get("/acme/shop.git/info/refs?service=git-upload-pack", auth=("paula", "wrong"))

    assert [name for _, name, _ in events()] == ["login_failed_with_standard_authentication"]


@pytest.mark.parametrize("person", [ADA])
def test_a_refused_change_leaves_no_event(person, as_, project, people):
    make_token(people[DEV], "api")
    as_(person).put(f"/projects/{project.id}", json={"name": ""})
    as_(person).post(
        "/users", json={"name": "X", "username": "dev", "email": "x@example.org", "password": "longer1234"}
    )

    assert events() == []
