"""What people do with groups and projects, with scripts and without."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import make_person


def test_a_group_a_subgroup_and_a_project_are_created(open_as_paula, name):
    page = open_as_paula("/dashboard/groups")
    page.get_by_role("link", name="New group").first.click()
    page.get_by_label("Group name").fill("The Crew")
    page.get_by_label("Group URL").fill(name)
    page.get_by_role("button", name="Create group").click()
    expect(page.get_by_role("heading", name="The Crew", exact=True)).to_be_visible()

    page.get_by_role("link", name="New subgroup").click()
    page.get_by_label("Group name").fill("Deck")
    page.get_by_label("Group URL").fill("deck")
    page.get_by_role("button", name="Create group").click()
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Project name").fill("Lifeboat")
    expect(page.get_by_label("Where").locator("option:checked")).to_have_text(f"{name}/deck")
    page.get_by_role("button", name="Create project").click()

    expect(page.get_by_role("heading", name="Lifeboat")).to_be_visible()
    assert page.url.endswith(f"/{name}/deck/Lifeboat")
    crumbs = page.get_by_role("navigation", name="Breadcrumb").get_by_role("link")
    assert crumbs.all_text_contents() == ["The Crew", "Deck", "Lifeboat"]


def test_a_refused_project_keeps_the_form_values(open_as_paula):
    page = open_as_paula("/projects/new")
    page.get_by_label("Project name").fill("Ferry")
    page.get_by_label("Project slug").fill("no spaces here")
    page.get_by_label("Internal: all signed-in users").check()

    page.get_by_role("button", name="Create project").click()

    expect(page.get_by_label("Project slug")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Project name")).to_have_value("Ferry")
    expect(page.get_by_label("Internal: all signed-in users")).to_be_checked()


def test_members_are_added_updated_and_removed(open_as_paula, shop, gl, name):
    person = make_person(gl, f"{name}-new", "Nora New")
    page = open_as_paula(f"/{shop}/-/project_members")
    page.get_by_label("Username or e-mail", exact=True).fill(person.username)
    page.get_by_label("Role").select_option("Developer")
    page.get_by_role("button", name="Add member").click()
    row = page.get_by_role("row", name="Nora New")
    expect(row).to_contain_text("Developer")

    row.get_by_role("link", name="Edit").click()
    page.get_by_label("Role").select_option("Reporter")
    page.get_by_label("Access expiration date").fill("2099-01-31")
    page.get_by_role("button", name="Save changes").click()
    expect(row).to_contain_text("Reporter")
    expect(row).to_contain_text("31 Jan 2099")

    row.get_by_role("link", name="Remove").click()
    page.get_by_role("button", name="Remove member").click()

    expect(page.get_by_role("heading", name="Members", exact=True)).to_be_visible()
    expect(row).to_have_count(0)


def test_an_unknown_member_shows_an_error_at_the_field(open_as_paula, shop):
    page = open_as_paula(f"/{shop}/-/project_members")
    page.get_by_label("Username or e-mail", exact=True).fill("nobody-at-all")

    page.get_by_role("button", name="Add member").click()

    field = page.get_by_label("Username or e-mail", exact=True)
    expect(field).to_have_accessible_description(re.compile("Username or e-mail belongs to no user$"))
    expect(field).to_have_value("nobody-at-all")


def test_variables_are_created_shown_updated_and_deleted(open_as_paula, shop):
    page = open_as_paula(f"/{shop}")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="CI/CD").click()
    for _ in range(2):
        page.get_by_label("Key", exact=True).fill("REGION")
        page.get_by_label("Value", exact=True).fill("eu-central-1")
        with page.expect_navigation():
            page.get_by_role("button", name="Add variable").click()
    expect(page.get_by_label("Key", exact=True)).to_have_accessible_description(
        "Letters, digits and “_”. Key (REGION) has already been taken"
    )
    expect(page.get_by_label("Value", exact=True)).to_have_value("eu-central-1")

    page.goto(f"/{shop}/-/settings/ci_cd")
    row = page.get_by_role("row", name="REGION")
    expect(row).not_to_contain_text("eu-central-1")
    page.get_by_role("link", name="Reveal values").click()
    expect(row).to_contain_text("eu-central-1")

    row.get_by_role("link", name="Edit").click()
    page.get_by_label("Value", exact=True).fill("us-east-1")
    page.get_by_label("Protect variable").check()
    page.get_by_role("button", name="Save changes").click()
    page.get_by_role("link", name="Reveal values").click()
    expect(row).to_contain_text("us-east-1")

    row.get_by_role("link", name="Delete").click()
    expect(page.get_by_text("Delete the variable REGION")).to_be_visible()
    page.get_by_role("link", name="Cancel").click()
    row.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete variable").click()

    expect(page.get_by_text("There are no variables yet.")).to_be_visible()


def test_tags_are_protected_and_unprotected(open_as_paula, shop):
    page = open_as_paula(f"/{shop}/-/settings/repository")
    page.get_by_label("Tag", exact=True).fill("v*")
    page.get_by_role("button", name="Show matching tags").click()
    expect(page.get_by_role("status")).to_have_text("The repository has no tags yet.")

    page.get_by_label("Allowed to create").select_option("Maintainers")
    page.get_by_role("button", name="Protect", exact=True).click()
    row = page.get_by_role("row", name="v*")
    expect(row).to_contain_text("Maintainers")
    row.get_by_role("link", name="Unprotect").click()
    page.get_by_role("button", name="Unprotect").click()

    expect(page.get_by_text("No tags are protected.")).to_be_visible()


@pytest.mark.parametrize(("token", "outcome"), [("tracker-token", "The Shop"), ("another", "refuses the token (401)")])
def test_error_tracking_is_saved_and_tested(token, outcome, open_as_paula, shop, tracker):
    page = open_as_paula(f"/{shop}/-/settings/operations")
    page.get_by_label("Enable error tracking").check()
    page.get_by_label("A server of Sentry").check()
    page.get_by_label("Tracker API URL").fill(tracker)
    page.get_by_label("Auth token").fill(token)

    page.get_by_role("button", name="Save and test connection").click()

    expect(page.locator("[role=status], [role=alert]")).to_contain_text(outcome)
    page.goto(f"/{shop}/-/settings/operations")
    expect(page.get_by_label("Enable error tracking")).to_be_checked()
    expect(page.get_by_label("Auth token")).to_have_value("")
    expect(page.get_by_text("A token is stored.")).to_be_visible()
