"""The general settings page of a project."""

from __future__ import annotations

import pytest

from project_service.domain.projects import Project
from tests.support import sample_data
from tests.support.sample_data import ADA, MAX, OLIVE, reload

pytestmark = pytest.mark.usefixtures("project")
SETTINGS_PAGE = "/acme/shop/-/settings/general"
DETAILS = {"name": "Market", "description": "All goods", "topics": "python, web,", "visibility": "private"}


@pytest.fixture
def owner(visit):
    return visit(OLIVE)


def test_an_owner_changes_name_description_and_topics(owner, project):
    response = owner.send(f"{SETTINGS_PAGE}/details", **DETAILS)

    assert (response.status_code, response.headers["Location"]) == (302, f"{SETTINGS_PAGE}#details")
    changed = reload(project)
    assert (changed.name, changed.description, changed.tag_list) == ("Market", "All goods", ["python", "web"])
    assert "The project was changed." in owner.get(SETTINGS_PAGE).text


def test_a_maintainer_changes_everything_except_name_and_visibility(visit, project):
    name = project.name

    response = visit(MAX).send(f"{SETTINGS_PAGE}/details", **DETAILS | {"visibility": "public"})

    assert response.status_code == 302
    changed = reload(project)
    assert (changed.name, changed.visibility, changed.description) == (name, 0, "All goods")


def test_a_refused_change_shows_the_error_at_its_field(owner, project):
    response = owner.send(f"{SETTINGS_PAGE}/details", **DETAILS | {"name": " "})

    assert response.status_code == 422
    assert "Project name can&#39;t be blank" in response.text
    assert reload(project).description != "All goods"


def test_ci_cd_is_enabled_and_disabled(owner, project, as_maintainer):
    levels = dict.fromkeys(("issues", "merge_requests", "repository", "wiki", "snippets", "forking"), "enabled")
    levels |= dict.fromkeys(("operations", "analytics", "pages", "security_and_compliance"), "private")

    assert owner.send(f"{SETTINGS_PAGE}/features", **levels, builds="disabled").status_code == 302
    assert as_maintainer.get("/projects/acme%2Fshop/variables").status_code == 403
    assert owner.send(f"{SETTINGS_PAGE}/features", **levels, builds="enabled").status_code == 302
    assert as_maintainer.get("/projects/acme%2Fshop/variables").status_code == 200
    assert owner.send(f"{SETTINGS_PAGE}/features", **levels, builds="everybody").status_code == 422


def test_features_that_are_not_sent_keep_their_levels(owner, project):
    assert owner.send(f"{SETTINGS_PAGE}/features", releases="private").status_code == 302
    assert owner.send(f"{SETTINGS_PAGE}/features", wiki="disabled").status_code == 302

    changed = reload(project)
    levels = changed.releases_access_level, changed.wiki_access_level, changed.issues_access_level
    assert levels == ("private", "disabled", "enabled")


def test_the_path_is_changed(owner, project):
    response = owner.send(f"{SETTINGS_PAGE}/path", path="market")

    assert response.headers["Location"] == "/acme/market/-/settings/general#path"
    assert reload(project).full_path == "acme/market"
    assert "has already been taken" not in owner.get("/acme/market/-/settings/general").text


def test_a_project_is_transferred_to_a_group_and_back(visit, project):
    other = sample_data.make_group("other")
    ada = visit(ADA)

    response = ada.send(f"{SETTINGS_PAGE}/transfer", namespace=str(other.id))

    assert response.headers["Location"] == "/other/shop/-/settings/general"
    assert reload(project).full_path == "other/shop"
    assert (ada.get("/acme/shop").status_code, ada.get("/other/shop").status_code) == (404, 200)


def test_a_transfer_needs_a_free_name_and_an_allowed_namespace(owner, visit, project):
    other = sample_data.make_group("other")
    sample_data.make_project("shop", other)

    assert owner.send(f"{SETTINGS_PAGE}/transfer", namespace=str(other.id)).status_code == 422
    response = visit(ADA).send(f"{SETTINGS_PAGE}/transfer", namespace=str(other.id))
    assert response.status_code == 422
    assert "has already been taken" in response.text
    assert reload(project).full_path == "acme/shop"


def test_a_project_moves_to_the_personal_namespace_of_its_owner(owner, people, project):
    response = owner.send(f"{SETTINGS_PAGE}/transfer", namespace=str(people[OLIVE].namespace_id))

    assert response.headers["Location"] == "/olive/shop/-/settings/general"
    assert owner.get("/olive/shop").status_code == 200


def test_a_project_is_archived_and_unarchived(owner, project):
    owner.send(f"{SETTINGS_PAGE}/archive")
    assert reload(project).archived
    assert "Unarchive project" in owner.get(SETTINGS_PAGE).text
    owner.send(f"{SETTINGS_PAGE}/unarchive")
    assert not reload(project).archived


def test_a_deletion_needs_the_full_path(owner, project):
    refused = owner.send(f"{SETTINGS_PAGE}/delete", typed_path="shop")
    assert (refused.status_code, "Full path has to be acme/shop" in refused.text) == (422, True)
    assert owner.get("/acme/shop").status_code == 200

    response = owner.send(f"{SETTINGS_PAGE}/delete", typed_path="acme/shop")

    assert (response.status_code, response.headers["Location"]) == (302, "/")
    assert owner.get("/acme/shop").status_code == 404


@pytest.mark.parametrize("name", ["transfer", "archive", "unarchive", "delete"])
def test_actions_of_owners_are_refused_to_maintainers(name, visit, project):
    maintainer = visit(MAX)

    assert maintainer.send(f"{SETTINGS_PAGE}/{name}", typed_path="acme/shop").status_code == 403
    assert f'action="{SETTINGS_PAGE}/{name}"' not in maintainer.get(SETTINGS_PAGE).text
    assert isinstance(reload(project), Project)
