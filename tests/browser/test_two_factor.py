"""Two-factor authentication in the browser: setup, sign-in, recovery codes and reset, by keyboard, without scripts."""

from __future__ import annotations

import datetime as dt
import time

import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD, make_person, sign_in
from tests.browser.keyboard import fill
from tests.contract.service import PASSWORD as ROOT_PASSWORD

SETUP = "/-/profile/two_factor_auth"
STEP_SECONDS, MIN_SECONDS_LEFT = 30, 12  # a code of the step before is accepted until the step ends


@pytest.fixture
def person(gl, name):
    """A username of a new user."""
    return make_person(gl, name, "Tess Tidy").username


def code_of(secret: str, steps: int = 0) -> str:
    """A code of now, or of some steps of 30 seconds later; a former one only if the current step lasts a while."""
    left = STEP_SECONDS - time.time() % STEP_SECONDS
    if steps < 0 and left < MIN_SECONDS_LEFT:
        time.sleep(left)
    return pyotp.TOTP(secret).at(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=STEP_SECONDS * steps))


def set_up(page: Page) -> tuple[str, list[str]]:
    """Set it up by keyboard; return the secret and the recovery codes."""
    page.goto(SETUP)
    expect(page.get_by_role("img", name="QR code of the key below")).to_be_visible()
    secret = page.locator("main code").first.inner_text().replace(" ", "")
    fill(page, "Code", code_of(secret, -1))
    fill(page, "Current password", PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    return secret, page.get_by_label("Your recovery codes").input_value().splitlines()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_second_factor_is_set_up_and_used_by_keyboard(scripts, visit, person):
    page = visit("/users/sign_in", java_script_enabled=scripts)
    sign_in(page, person)
    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()
    secret, codes = set_up(page)
    assert len(set(codes)) == 10
    page.get_by_role("link", name="I have saved them").press("Enter")
    expect(page.get_by_text("10 recovery codes left.")).to_be_visible()

    for code, refused in (("000000", True), (code_of(secret), False)):
        other = visit("/users/sign_in?next=/groups/new", java_script_enabled=scripts)
        sign_in(other, person)
        expect(other.get_by_role("heading", name="Two-factor authentication")).to_be_visible()
        fill(other, "Code", code)
        other.keyboard.press("Enter")
        if refused:
            expect(other.get_by_role("alert")).to_have_text("Invalid two-factor code.")
        else:
            expect(other.get_by_role("heading", name="New group")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_recovery_code_signs_in_once_and_is_counted(scripts, visit, person):
    page = visit("/users/sign_in", java_script_enabled=scripts)
    sign_in(page, person)
    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()
    _, codes = set_up(page)

    for refused in (False, True):
        other = visit("/users/sign_in", java_script_enabled=scripts)
        sign_in(other, person)
        fill(other, "Code", codes[0])
        other.keyboard.press("Enter")
        expect(other.get_by_role("alert" if refused else "heading").first).to_be_visible()
    expect(other.get_by_role("alert")).to_have_text("Invalid two-factor code.")

    page.goto(SETUP)
    expect(page.get_by_text("9 recovery codes left.")).to_be_visible()
    fill(page, "Current password", PASSWORD)
    page.keyboard.press("Enter")
    replaced = page.get_by_label("Your recovery codes").input_value().splitlines()
    assert not set(replaced) & set(codes)


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_an_administrator_resets_the_second_factor_of_a_user(scripts, visit, person):
    page = visit("/users/sign_in", java_script_enabled=scripts)
    sign_in(page, person)
    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()
    set_up(page)

    root = visit("/users/sign_in", java_script_enabled=scripts)
    sign_in(root, "root", ROOT_PASSWORD)
    root.wait_for_url("**/")
    root.goto(f"/admin/users?search={person}")
    root.get_by_role("link", name="Tess Tidy").first.click()
    expect(root.get_by_role("button", name="Disable two-factor authentication")).to_be_visible()
    root.get_by_role("button", name="Disable two-factor authentication").press("Enter")

    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in(page, person)
    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()
