"""The settings page of a group."""

from __future__ import annotations

import pytest

from tests.support.sample_data import MAX, OLIVE, reload

SETTINGS_PATH = "/groups/acme/-/edit"
DETAILS = {"name": "Acme Works", "description": "Tools", "visibility": "private"}
LEVELS = {"project_creation_level": "maintainer", "subgroup_creation_level": "owner"}


@pytest.fixture
def owner(visit):
    return visit(OLIVE)


def test_an_owner_changes_a_group(owner, group, project):
    assert owner.send(f"{SETTINGS_PATH}/details", **DETAILS, **LEVELS).headers["Location"] == SETTINGS_PATH

    changed = reload(group)
    assert (changed.name, changed.description, changed.project_creation_level) == ("Acme Works", "Tools", "maintainer")
    page = owner.get(SETTINGS_PATH).text
    assert "The group was changed." in page
    assert 'value="Acme Works"' in page


def test_a_group_needs_a_name(owner, group):
    response = owner.send(f"{SETTINGS_PATH}/details", **DETAILS | {"name": ""}, **LEVELS)

    assert (response.status_code, "Group name can&#39;t be blank" in response.text) == (422, True)


def test_the_path_of_a_group_changes_with_those_of_its_projects(owner, group, project):
    assert owner.send(f"{SETTINGS_PATH}/path", path="works").headers["Location"] == "/groups/works/-/edit"
    assert reload(project).full_path == "works/shop"


def test_deleting_a_group_needs_the_typed_path(owner, group, project):
    assert owner.send(f"{SETTINGS_PATH}/delete", typed_path="no").status_code == 422
    assert owner.send(f"{SETTINGS_PATH}/delete", typed_path="acme").status_code == 302
    assert (owner.get("/acme").status_code, owner.get("/acme/shop").status_code) == (404, 404)


def test_a_maintainer_cannot_open_the_settings_of_a_group(visit, group, project):
    maintainer = visit(MAX)

    assert maintainer.get(SETTINGS_PATH).status_code == 403
    assert SETTINGS_PATH not in maintainer.get("/acme").text
