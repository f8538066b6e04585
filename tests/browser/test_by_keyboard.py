"""Settings, import, profile, administration and the first visit by keyboard: small without scripts, large with them."""

from __future__ import annotations

import re
import secrets

import pytest
from playwright.sync_api import expect

from tests.browser import keyboard
from tests.browser.conftest import make_person, sign_in
from tests.contract.service import PASSWORD as ROOT_PASSWORD
from tests.contract.service import Service
from tests.support.archives import make_archive

pytestmark = pytest.mark.parametrize(
    "options", [{"width": 400, "java_script_enabled": False}, {"width": 1400}], ids=["small", "large"]
)


@pytest.fixture
def page(options, visit, gl, name):
    """The dashboard of a new user, in a browser with a screen of a size, with or without scripts."""
    make_person(gl, name, "Kim Key")
    page = visit("/users/sign_in", **options)
    sign_in(page, name)
    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()
    return page


@pytest.fixture
def own(gl, page, name):
    """The path of a project of the user."""
    return gl.users.list(username=name)[0].projects.create({"name": "Till", "path": "till"}) and f"{name}/till"


def test_the_general_settings_work_by_keyboard(page, own):
    page.goto(f"/{own}/-/settings/general")
    keyboard.fill(page, "Description", "Takes the money.")
    keyboard.press(page, "Save changes")
    expect(page.get_by_role("textbox", name="Description")).to_have_value("Takes the money.")
    keyboard.press(page, "Archive project")
    expect(page.get_by_role("button", name="Unarchive project")).to_be_visible()
    keyboard.press(page, "Unarchive project")
    keyboard.fill(page, "Project slug", "cash")
    keyboard.press(page, "Change path")
    expect(page).to_have_url(re.compile("/cash/-/settings/general"))
    keyboard.fill(page, "Full path", own.replace("till", "cash"))
    keyboard.press(page, "Delete project")
    expect(page).to_have_url(re.compile("/$"))
    page.goto(f"/{own.replace('till', 'cash')}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("not found")


def test_an_import_works_by_keyboard(page, options, name, tmp_path):
    (tmp_path / "shop.tar.gz").write_bytes(make_archive({"issues": []}, {"description": "From afar"}))
    page.goto("/projects/new/import")
    keyboard.fill(page, "Project name", "Shop")
    keyboard.fill(page, "Project slug", "shop")
    keyboard.focus(page, page.get_by_label("Archive", exact=False).and_(page.locator("input[type=file]")))
    page.locator("input[type=file]").set_input_files(tmp_path / "shop.tar.gz")
    keyboard.press(page, "Import project")
    expect(page.get_by_role("heading", name="Import", exact=True)).to_be_visible()
    refresh = page.get_by_role("link", name="Refresh")
    while "java_script_enabled" in options and refresh.is_visible():  # with scripts the page changes by itself
        keyboard.focus(page, refresh)
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
    expect(page.get_by_text("The import is finished.")).to_be_visible()
    page.goto(f"/{name}/shop")
    expect(page.get_by_text("From afar")).to_be_visible()


def test_a_profile_works_by_keyboard(page, name):
    page.goto("/-/profile")
    keyboard.fill(page, "Full name", "Kim Board")
    keyboard.press(page, "Save profile")
    expect(page.get_by_label("Full name")).to_have_value("Kim Board")


def test_administration_works_by_keyboard(options, visit):
    page = visit("/users/sign_in", **options)
    sign_in(page, "root", ROOT_PASSWORD)
    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()
    username = f"n{secrets.token_hex(4)}"
    page.goto("/admin/users")
    keyboard.press(page, "New user", "link")
    keyboard.fill(page, "Full name", "Nora New")
    keyboard.fill(page, "Username", username)
    keyboard.fill(page, "E-mail", f"{username}@example.org")
    keyboard.press(page, "Create user")
    expect(page.get_by_role("main")).to_contain_text(username)
    keyboard.press(page, "Block")
    expect(page.get_by_role("button", name="Unblock", exact=True)).to_be_visible()


@pytest.mark.nightly
def test_the_first_visit_works_by_keyboard(options, chromium, tmp_path):
    service = Service(tmp_path / "service")
    service.start()
    context = chromium.new_context(
        base_url=service.url,
        viewport={"width": options["width"], "height": 900},
        java_script_enabled=options.get("java_script_enabled", True),
    )
    try:
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_role("main")).to_contain_text("initial_credentials")
        keyboard.fill(page, "Username or email", "root")
        keyboard.fill(page, "Password", ROOT_PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Welcome", exact=False)).to_be_visible()
        keyboard.press(page, "Create a project", "link")
        keyboard.fill(page, "Project name", "Shop")
        keyboard.press(page, "Create project")
        expect(page.get_by_role("heading", name="Shop", exact=True)).to_be_visible()
    finally:
        context.close()
        service.stop()
