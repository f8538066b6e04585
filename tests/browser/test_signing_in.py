"""Signing in and out, as people do it."""

from __future__ import annotations

import pytest
import requests
from playwright.sync_api import expect

from tests.browser.conftest import PASSWORD, make_person, sign_in


@pytest.fixture
def person(gl, name):
    """The name of a new user."""
    return make_person(gl, name, "Nora New").username


@pytest.mark.parametrize("scripts", [True, False])
def test_users_sign_in_and_out(scripts, visit, person):
    page = visit("/groups/new", java_script_enabled=scripts)
    expect(page).to_have_title("Sign in · Project Service")

    sign_in(page, person)
    expect(page.get_by_role("heading", name="New group")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto("/")
    expect(page.get_by_label("Password")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_wrong_password_shows_an_error_and_keeps_the_username(scripts, visit, person):
    page = visit("/users/sign_in", java_script_enabled=scripts)

    sign_in(page, person, "wrong")

    expect(page.get_by_role("alert")).to_have_text("Invalid login or password.")
    expect(page.get_by_label("Username or email")).to_have_value(person)
    expect(page.get_by_label("Password")).to_have_value("")


def test_sign_in_is_limited_after_ten_wrong_passwords(visit, person):
    page = visit("/users/sign_in", java_script_enabled=False)
    for _ in range(10):
        with page.expect_navigation():
            sign_in(page, person, "wrong")
    expect(page.get_by_role("alert")).to_have_text("Invalid login or password.")

    sign_in(page, person)

    expect(page.get_by_role("alert")).to_contain_text("Too many failed attempts. Try again in")


def test_sign_in_works_by_keyboard(visit, person):
    page = visit("/users/sign_in")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Username or email")).to_be_focused()

    page.keyboard.type(person)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()


def test_the_focus_is_visible(visit):
    page = visit("/users/sign_in")
    field = page.get_by_label("Username or email")

    field.focus()

    assert field.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"


def test_after_an_error_the_message_has_the_focus(visit, person):
    page = visit("/users/sign_in")

    sign_in(page, person, "wrong")

    expect(page.get_by_role("alert")).to_be_focused()


def test_a_token_created_in_the_browser_is_accepted_by_the_api(open_as_paula, service, name):
    page = open_as_paula("/-/profile/personal_access_tokens")
    page.get_by_label("Token name").fill(name)
    page.get_by_label("Expires at").fill("2099-01-31")
    page.get_by_label("api: read and write everything").check()
    page.get_by_role("button", name="Create personal access token").click()
    token = page.get_by_label("Your new access token").input_value()
    address, headers = f"{service.url}/api/v4/user", {"PRIVATE-TOKEN": token}

    assert requests.get(address, headers=headers, timeout=20).json()["username"] == "paula"

    page.goto("/-/profile/personal_access_tokens")
    expect(page.get_by_label("Your new access token")).to_have_count(0)
    page.get_by_role("link", name=f"Revoke {name}").click()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("heading", name="Active access tokens")).to_be_visible()
    assert requests.get(address, headers=headers, timeout=20).status_code == 401
