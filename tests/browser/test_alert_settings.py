"""How alerts are configured in a browser, by what people read and hear: labels, buttons, headings."""

from __future__ import annotations

import json
import re

import pytest
import requests
from playwright.sync_api import expect

from tests.browser.conftest import make_person, sign_in

SAMPLE = json.dumps(
    {
        "event": {
            "name": "Oven is cold",
            "text": "Nobody bakes.",
            "since": "2026-03-04T05:06:07Z",
            "until": "",
            "level": "high",
            "affected": ["oven-1", "oven-2"],
            "place": "bakery",
        }
    },
    indent=2,
)
FIELDS = [
    "Title",
    "Description",
    "Start time",
    "End time",
    "Service",
    "Monitoring tool",
    "Hosts",
    "Severity",
    "Fingerprint",
    "Environment",
]
MAPPING = {
    "Title": "event/name",
    "Description": "event/text",
    "Start time": "event/since",
    "Hosts": "event/affected",
    "Severity": "event/level",
    "Service": "event/place",
}


@pytest.fixture
def settings(open_as_paula, shop):
    """The page of settings of the shop."""
    return open_as_paula(f"/{shop}/-/settings/operations")


@pytest.fixture
def fill_new(settings):
    """Fills the form of a new integration as far as its sample, on the page it leads to."""

    def fill(sample=SAMPLE):
        page = settings
        page.get_by_role("link", name="Add new integration").click()
        page.get_by_label("Integration type").select_option("HTTP Endpoint")
        page.get_by_label("Name", exact=True).fill("Ovens")
        page.get_by_label("Active").check()
        page.get_by_label("Sample payload").fill(sample)
        return page

    return fill


def leave(page, role, name):
    """Go where a link or a button leads: the page is there afterwards, and so are its scripts."""
    with page.expect_navigation():
        page.get_by_role(role, name=name).click()


def parse(page):
    """Have the sample read."""
    leave(page, "button", "Parse payload fields")


def choose(page, target, key):
    """Map a key of the sample: it is typed with scripts, and chosen from a list without."""
    field = page.get_by_label(target, exact=True)
    if field.evaluate("field => field.tagName") == "INPUT":
        field.fill(key)
        field.press("Tab")
    else:
        field.select_option(
            next(text for text in field.locator("option").all_text_contents() if text.startswith(f"{key}:"))
        )


def stored_row(page, target):
    """The row of an alert field in the table of the mapping."""
    return page.get_by_role("row").filter(has=page.get_by_label(target, exact=True))


def preview_of(page):
    return page.get_by_role("region", name="Preview")


def credentials_of(page):
    """Address and key, as they are shown and as they are copied."""
    shown = tuple(page.get_by_label(label).text_content() for label in ("Webhook URL", "Authorization key"))
    assert shown == tuple(page.locator(name).get_attribute("value") for name in ("#webhook-url", "#authorization-key"))
    return shown


def tell(address, key):
    headers = {"Authorization": f"Bearer {key}"}
    return requests.post(address, data=SAMPLE, headers=headers, timeout=20).status_code


def test_an_integration_is_added_mapped_tested_and_edited(settings, fill_new, shop):
    page = settings
    expect(page.get_by_role("heading", name="Alerts", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Current integrations")).to_have_attribute("aria-current", "page")
    expect(page.get_by_text("No integrations have been added yet.")).to_be_visible()

    fill_new()
    parse(page)
    for label in FIELDS:
        expect(page.get_by_label(label, exact=True)).to_be_visible()
    for target, source in MAPPING.items():
        choose(page, target, source)
    page.get_by_role("button", name="Save integration").click()

    expect(page.get_by_role("status")).to_contain_text("Integration successfully saved")
    address, key = credentials_of(page)
    assert re.search(rf"/{shop}/alerts/notify/ovens/[0-9a-f]{{16}}\.json$", address)
    assert re.fullmatch("[0-9a-f]{32}", key)

    page.get_by_role("link", name="Send test alert").click()
    page.get_by_label("Test payload").fill(SAMPLE)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("successfully sent")
    page.get_by_role("status").get_by_role("link", name="alerts list").click()
    row = page.get_by_role("row", name="Oven is cold")
    expect(row).to_contain_text("High")
    row.get_by_role("link", name="Oven is cold").click()
    for text in ("Nobody bakes.", "4 Mar 2026 05:06:07 UTC", "oven-1, oven-2", "bakery"):
        expect(page.get_by_role("main")).to_contain_text(text)

    page.goto(f"/{shop}/-/settings/operations")
    row = page.get_by_role("row", name="Ovens")
    expect(row.get_by_role("link", name="Delete", exact=True)).to_have_accessible_description("Ovens")
    row.get_by_role("link", name="Edit", exact=True).click()
    expect(page.get_by_role("link", name="Configure details")).to_have_attribute("aria-current", "page")
    expect(page.locator("#map_title option:checked")).to_have_text("event/name: Oven is cold")
    page.get_by_label("Name", exact=True).fill("Hobs")
    page.get_by_role("button", name="Save integration").click()
    assert tell(address, key) == 200  # the old address is good for ever


def test_a_changed_sample_has_to_be_parsed_and_mapped_again(fill_new):
    page = fill_new()
    parse(page)
    choose(page, "Title", "event/name")
    page.get_by_label("Sample payload").fill('{"alarm": "Oven is cold"}')

    page.get_by_role("button", name="Save integration").click()
    expect(page.get_by_label("Sample payload")).to_have_accessible_description(re.compile("was changed"))

    parse(page)
    choose(page, "Title", "alarm")
    page.get_by_role("button", name="Save integration").click()
    expect(page.get_by_role("status")).to_contain_text("Integration successfully saved")


def test_with_scripts_unsaved_changes_are_kept_before_a_test_alert(visit, signed_in, shop):
    page = visit(f"/{shop}/-/settings/operations/integrations/new", state=signed_in)
    page.get_by_label("Name", exact=True).fill("Ovens")
    leave(page, "button", "Save integration")
    leave(page, "link", "Configure details")
    leave(page, "link", "Send test alert")
    expect(page.get_by_label("Test payload")).to_be_visible()  # nothing was changed
    leave(page, "link", "Configure details")
    dialog = page.get_by_role("dialog", name="Unsaved changes")

    page.get_by_label("Name", exact=True).fill("Hobs")
    page.get_by_role("link", name="Send test alert").click()
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Hobs")
    page.get_by_role("link", name="Send test alert").click()
    dialog.get_by_role("link", name="Send without saving").click()
    expect(page.get_by_label("Test payload")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ovens")

    leave(page, "link", "Configure details")
    page.get_by_label("Name", exact=True).fill("Hobs")
    page.get_by_role("link", name="Send test alert").click()
    dialog.get_by_role("button", name="Save integration & send").click()
    expect(page.get_by_label("Test payload")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Hobs")


def test_a_key_is_reset_after_confirmation(fill_new):
    page = fill_new("")
    page.get_by_role("button", name="Save integration").click()
    address, key = credentials_of(page)

    page.get_by_role("button", name="Reset key").or_(page.get_by_role("link", name="Reset key")).first.click()
    page.get_by_role("dialog").or_(page.get_by_role("main")).last.get_by_role("button", name="Reset key").click()
    expect(page.get_by_role("status")).to_contain_text("The key was reset")

    _, new = credentials_of(page)
    assert (tell(address, key), tell(address, new)) == (401, 200)


def test_a_refused_test_alert_shows_the_reason(fill_new):
    page = fill_new("")
    page.get_by_label("Active").uncheck()
    page.get_by_role("button", name="Save & create test alert").click()
    page.get_by_label("Test payload").fill('{"title": "Oven is cold"}')

    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("currently inactive")

    page.get_by_label("Test payload").fill("{")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Integration payload is invalid.")


def test_the_incident_settings_are_on_the_second_tab(settings):
    page = settings
    page.get_by_role("link", name="Alert settings").click()
    page.get_by_label("Create an incident for each alert").check()
    page.get_by_role("region", name="Alerts").get_by_role("button", name="Save changes").click()

    expect(page.get_by_label("Create an incident for each alert")).to_be_checked()
    expect(page.get_by_role("status")).to_contain_text("successfully saved")


def test_the_preview_follows_the_form(visit, signed_in, shop):
    page = visit(f"/{shop}/-/settings/operations/integrations/new", state=signed_in)
    expect(preview_of(page)).to_contain_text("Paste a sample payload")
    expect(page.get_by_role("button", name="Update preview")).to_be_hidden()

    page.get_by_label("Sample payload").fill('{"title": "Oven')
    expect(preview_of(page)).to_contain_text("is not valid JSON")
    page.get_by_label("Sample payload").fill(SAMPLE)
    expect(preview_of(page)).to_contain_text("New: Alert")
    parse(page)
    choose(page, "Title", "event/na")  # part of one key only
    expect(stored_row(page, "Title")).to_contain_text("Oven is cold")
    choose(page, "Severity", "level")
    expect(stored_row(page, "Severity")).to_contain_text("High")
    choose(page, "Environment", "place")
    expect(stored_row(page, "Environment")).to_contain_text("not an environment of this project yet")
    choose(page, "Start time", "since")
    expect(preview_of(page)).to_contain_text("all fields except start_time, end_time, hosts and event/since")
    choose(page, "Service", "oven-")
    expect(stored_row(page, "Service")).to_contain_text("Several keys contain this")
    page.get_by_label("Sample payload").fill('{"title": "Hob is hot"}')
    expect(stored_row(page, "Title")).to_contain_text("Hob is hot")
    expect(preview_of(page)).to_contain_text("The sample has changed")


def test_without_scripts_the_preview_has_a_button(visit, signed_in, shop):
    page = visit(f"/{shop}/-/settings/operations/integrations/new", state=signed_in, java_script_enabled=False)
    page.get_by_label("Sample payload").fill('{"title": "Hob is hot"}')

    page.get_by_role("button", name="Update preview").click()

    expect(stored_row(page, "Title")).to_contain_text("Hob is hot")


def test_unneeded_fields_of_a_type_are_hidden(visit, signed_in, shop):
    page = visit(f"/{shop}/-/settings/operations/integrations/new", state=signed_in)
    address, sample = page.get_by_label("Opsgenie URL"), page.get_by_label("Sample payload")
    seen = {}

    for kind in ("Opsgenie", "Prometheus", "HTTP Endpoint"):
        page.get_by_label("Integration type").select_option(kind)
        seen[kind] = (address.is_visible(), sample.is_visible())

    assert seen == {"Opsgenie": (True, False), "Prometheus": (False, True), "HTTP Endpoint": (False, True)}


def test_a_hidden_sample_does_not_block_saving(fill_new):
    page = fill_new("{")

    page.get_by_label("Integration type").select_option("Opsgenie")
    page.get_by_label("Active").uncheck()
    page.get_by_role("button", name="Save integration").click()

    expect(page.get_by_role("status")).to_contain_text("Integration successfully saved")


def test_the_enter_key_saves_the_form(fill_new):
    page = fill_new("")

    page.get_by_label("Name", exact=True).press("Enter")

    expect(page.get_by_role("status")).to_contain_text("Integration successfully saved")


@pytest.fixture
def as_developer(visit, gl, shop, name):
    """A page in the browser of a developer of the shop."""
    dora = make_person(gl, f"{name}-dora", "Dora Developer")
    gl.projects.get(shop).members.create({"user_id": dora.id, "access_level": 30})
    page = visit("/users/sign_in")
    sign_in(page, dora.username)
    page.wait_for_url("**/")
    return page


def test_developers_send_test_alerts_and_see_no_key(fill_new, as_developer, shop):
    page = fill_new("")
    page.get_by_role("button", name="Save integration").click()
    _, key = credentials_of(page)

    as_developer.goto(f"/{shop}/-/settings/operations")
    expect(as_developer.get_by_role("heading", name="Alerts", exact=True)).to_be_visible()
    expect(as_developer.get_by_role("link", name="Add new integration")).to_have_count(0)
    expect(as_developer.get_by_role("link", name="Edit")).to_have_count(0)
    as_developer.get_by_role("row", name="Ovens").get_by_role("link", name="Send test alert", exact=True).click()
    expect(as_developer.get_by_role("link", name="View credentials")).to_have_count(0)
    as_developer.get_by_label("Test payload").fill('{"title": "Oven is cold"}')
    as_developer.get_by_role("button", name="Send", exact=True).click()

    expect(as_developer.get_by_role("status")).to_contain_text("successfully sent")
    assert key not in as_developer.content()
