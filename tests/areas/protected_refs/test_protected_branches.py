"""Protected branches through HTTP (repositories reference, section 4.6), and the section of the settings page."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from project_service.domain.audit.models import AuditEvent
from project_service.domain.repositories.protected_refs import ProtectedBranch
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM

MISSING = {"message": "404 Not found"}
SETTINGS = "/acme/shop/-/settings/repository"


def branches(project, name=None):
    path = f"/projects/{project.id}/protected_branches"
    return path if name is None else f"{path}/{quote(name, safe='')}"


def level(number, access_level, text):
    return [{"id": number, "access_level": access_level, "access_level_description": text}]


@pytest.fixture
def protect(project, as_maintainer):
    """Protects a branch through the API; returns the protection."""

    def create(name="main", **fields):
        response = as_maintainer.post(branches(project), json={"name": name} | fields)
        assert response.status_code == 201, response.json
        return response.json

    return create


@pytest.mark.parametrize(
    ("person", "reads", "writes"),
    [
        (ADA, 200, (201, 200, 204)),
        (OLIVE, 200, (201, 200, 204)),
        (MAX, 200, (201, 200, 204)),
        (DEV, 200, (403, 403, 403)),
        (RITA, 200, (403, 403, 403)),
        (GUS, 403, (403, 403, 403)),
        (SAM, 404, (404, 404, 404)),
        (NOBODY, 404, (401, 401, 401)),
    ],
)
def test_code_readers_list_and_maintainers_change_protections(person, reads, writes, project, protect, as_):
    protect()
    client = as_(person)

    read = [client.get(branches(project)), client.get(branches(project, "main"))]
    written = [
        client.post(branches(project), json={"name": "other"}),
        client.patch(branches(project, "main"), json={"allow_force_push": True}),
        client.delete(branches(project, "main")),
    ]

    assert [response.status_code for response in read] == [reads] * 2
    assert tuple(response.status_code for response in written) == writes


def test_a_protected_branch_has_the_documented_keys(project, protect, as_maintainer):
    created = protect("feature/*", push_access_level=0, merge_access_level="30", allow_force_push="true")

    assert created == {
        "id": created["id"],
        "name": "feature/*",
        "push_access_levels": level(created["id"], 0, "No one"),
        "merge_access_levels": level(created["id"], 30, "Developers + Maintainers"),
        "allow_force_push": True,
        "unprotect_access_levels": level(created["id"], 40, "Maintainers"),
        "code_owner_approval_required": False,
    }
    assert as_maintainer.get(branches(project, "feature/*")).json == created
    assert as_maintainer.get(branches(project, "feature/x")).json == MISSING


def test_by_default_maintainers_push_and_merge_without_force(protect):
    created = protect()

    levels = [created[key][0]["access_level"] for key in ("push_access_levels", "merge_access_levels")]
    assert (levels, created["allow_force_push"]) == ([40, 40], False)


@pytest.mark.both_databases
def test_the_list_is_ordered_searched_and_paginated(project, protect, as_maintainer):
    for name in ("main", "release/*", "feature/1", "release/old"):
        protect(name)

    listed, second = as_maintainer.get(branches(project)), as_maintainer.get(f"{branches(project)}?per_page=3&page=2")
    searched = as_maintainer.get(f"{branches(project)}?search=RELEASE")

    assert [row["name"] for row in listed.json] == ["feature/1", "main", "release/*", "release/old"]
    assert ([row["name"] for row in second.json], second.headers["X-Total"]) == (["release/old"], "4")
    assert [row["name"] for row in searched.json] == ["release/*", "release/old"]


@pytest.mark.parametrize(
    ("sent", "status", "body"),
    [
        ({}, 400, {"error": "name is missing"}),
        ({"name": " "}, 422, {"message": ["Name can't be blank"]}),
        ({"name": ".."}, 422, {"message": ["Name is invalid"]}),
        ({"name": "a" * 256}, 422, {"message": ["Name is too long (maximum is 255 characters)"]}),
        ({"name": "main"}, 409, {"message": "Protected branch 'main' already exists"}),
        ({"name": "x", "push_access_level": 50}, 400, {"error": "push_access_level does not have a valid value"}),
        (
            {"name": "x", "unprotect_access_level": 30},
            400,
            {"error": "unprotect_access_level does not have a valid value"},
        ),
    ],
)
def test_invalid_protections_are_refused(sent, status, body, project, protect, as_maintainer):
    protect()

    response = as_maintainer.post(branches(project), json=sent)

    assert (response.status_code, response.json) == (status, body)
    assert len(as_maintainer.get(branches(project)).json) == 1


def test_the_force_push_flag_of_an_imported_protection_is_changed_and_exported(project, as_maintainer):
    db.session.add(ProtectedBranch(project_id=project.id, name="main", added_by_import=True))
    db.session.commit()

    unchanged = as_maintainer.patch(branches(project, "main"), json={})
    changed = as_maintainer.patch(branches(project, "main"), json={"allow_force_push": True})

    row = db.session.query(ProtectedBranch).one()
    assert (unchanged.json["allow_force_push"], changed.json["allow_force_push"]) == (False, True)
    assert (row.allow_force_push, row.added_by_import) == (True, False)
    assert as_maintainer.patch(branches(project, "nothing"), json={}).json == MISSING


def test_a_protected_branch_is_deleted_unless_it_changed_since(project, protect, as_maintainer):
    protect("a/b")
    headers = {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}

    assert as_maintainer.delete(branches(project, "a/b"), headers=headers).status_code == 412
    assert as_maintainer.delete(branches(project, "a/b")).status_code == 204
    assert as_maintainer.delete(branches(project, "a/b")).json == MISSING


def test_changes_of_protected_branches_are_audited(project, protect, as_maintainer):
    protect()
    as_maintainer.patch(branches(project, "main"), json={"allow_force_push": True})
    as_maintainer.delete(branches(project, "main"))

    names = [event.event_name for event in db.session.query(AuditEvent).order_by(AuditEvent.id)]
    assert [name for name in names if "protected" in name] == [
        "protected_branch_created",
        "protected_branch_updated",
        "protected_branch_removed",
    ]


# The settings page


def test_the_settings_section_lists_protects_and_unprotects(project, visit, as_maintainer, tmp_path):
    keep_repository(project, tmp_path)
    visitor = visit(MAX)

    visitor.send(f"{SETTINGS}/protected_branches", branch="m*", push_access_level="30", merge_access_level="40")
    shown = visitor.get(SETTINGS).text
    created = db.session.query(ProtectedBranch).filter_by(name="m*").one()
    confirmation = visitor.get(f"{SETTINGS}/protected_branches/{created.id}/unprotect").text
    visitor.send(f"{SETTINGS}/protected_branches/{created.id}/unprotect")

    assert "<code>m*</code>" in shown
    assert "Developers + Maintainers" in shown
    assert "Unprotect m*?" in confirmation
    assert as_maintainer.get(branches(project, "m*")).status_code == 404


def test_the_settings_section_previews_wildcards_and_shows_errors(project, visit, protect, tmp_path):
    keep_repository(project, tmp_path)
    protect("x")
    visitor = visit(MAX)
    form = {"push_access_level": "40", "merge_access_level": "40"}

    preview = visitor.send(f"{SETTINGS}/protected_branches", branch="m*", preview="1", **form)
    refused = visitor.send(f"{SETTINGS}/protected_branches", branch="x", **form)

    assert "matches 1 of" in preview.text
    assert (refused.status_code, "Protected branch &#39;x&#39; already exists" in refused.text) == (422, True)
    assert db.session.query(ProtectedBranch).count() == 1


def test_a_developer_cannot_change_protected_branches_on_pages(project, visit):
    response = visit(DEV).send(f"{SETTINGS}/protected_branches", branch="m*")

    assert response.status_code == 403
    assert db.session.query(ProtectedBranch).count() == 0


def test_a_protection_of_another_project_is_not_found(project, visit):
    other_project = sample_data.make_project()
    db.session.add(row := ProtectedBranch(project_id=other_project.id, name="main"))
    db.session.commit()

    response = visit(MAX).send(f"{SETTINGS}/protected_branches/{row.id}/unprotect")

    assert response.status_code == 404
    assert db.session.query(ProtectedBranch).count() == 1
