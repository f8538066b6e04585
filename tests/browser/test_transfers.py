"""A project comes as an archive, is watched, and goes as one; with scripts and without."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from playwright.sync_api import TimeoutError as TooLate
from playwright.sync_api import expect

from tests.support.archives import make_archive, make_issue, rows, unpack

ISSUES = [make_issue(number) for number in range(1, 4)]
SECONDS = 40_000  # in milliseconds; the worker has other work, too


@pytest.fixture
def archive(tmp_path):
    """Makes the file of an archive, with an issue that cannot be imported."""

    def make(content=None, name="shop_export.tar.gz"):
        file = tmp_path / name
        issues = [*ISSUES, make_issue(9, title=None)]
        file.write_bytes(make_archive({"issues": issues}) if content is None else content)
        return file

    return make


def wait_for(page, sought):
    """Watch a page until it has something; without scripts one has to ask again."""
    refresh = page.get_by_role("link", name="Refresh")
    deadline = time.monotonic() + SECONDS / 1_000
    while not sought.is_visible() and time.monotonic() < deadline:
        with contextlib.suppress(TooLate):  # with scripts the page goes on by itself, and takes the link away
            refresh.click(timeout=1_000)
            page.wait_for_load_state()
    expect(sought).to_be_visible()


def test_a_project_is_imported_and_exported(open_as_paula, archive, name):
    page = open_as_paula("/projects/new")
    page.get_by_role("link", name="Import project").click()
    page.wait_for_url("**/projects/new/import")
    page.get_by_label("Project name").fill(f"Shop {name}")
    page.get_by_label("Project slug").fill(name)
    page.get_by_label("Archive", exact=True).set_input_files(archive())
    page.get_by_role("button", name="Import project").click()
    page.wait_for_url(f"**/paula/{name}/-/import")

    wait_for(page, page.get_by_text("The import is finished."))
    expect(page.get_by_text("One row of the archive could not be imported.")).to_be_visible()
    expect(page.get_by_role("row", name="issues")).to_contain_text("Title can't be blank")
    page.get_by_role("link", name="Go to the project").click()
    page.get_by_role("navigation", name="Project").get_by_role("link", name="Issues").click()
    expect(page.get_by_role("link", name="Issue 3")).to_be_visible()

    page.get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Export project").click()
    wait_for(page, page.get_by_role("button", name="Generate new export"))
    with page.expect_download() as started:
        page.get_by_role("link", name="Download export").click()
    files = unpack(started.value.path().read_bytes())
    assert [row["title"] for row in rows(files, "issues")] == ["Issue 1", "Issue 2", "Issue 3"]


def test_an_invalid_archive_shows_advice(open_as_paula, archive, name):
    page = open_as_paula("/projects/new/import")
    page.get_by_label("Project name").fill(name)
    page.get_by_label("Archive", exact=True).set_input_files(archive(b"\x1f\x8b no archive at all"))
    page.get_by_role("button", name="Import project").click()
    page.wait_for_url(f"**/paula/{name}/-/import")

    wait_for(page, page.get_by_role("alert"))

    expect(page.get_by_role("alert")).to_contain_text("Nothing of the archive was kept")
    expect(page.get_by_text("The import has failed.")).to_be_visible()
    page.goto(f"/paula/{name}")
    page.get_by_role("link", name="What went wrong").click()
    expect(page.get_by_role("heading", name="Import", exact=True)).to_be_visible()


def test_a_refused_upload_shows_an_error_at_its_field(open_as_paula, archive, name):
    page = open_as_paula("/projects/new/import")
    page.get_by_label("Project name").fill(name)
    page.get_by_label("Archive", exact=True).set_input_files(archive(name="shop.zip"))

    page.get_by_role("button", name="Import project").click()

    expect(page.get_by_label("Archive", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("Archive has to be a project export")).to_be_visible()
    expect(page.get_by_label("Project name")).to_have_value(name)


def test_with_scripts_a_refused_form_keeps_its_file_and_can_be_sent_again(visit, signed_in, archive, name, gl):
    page = visit("/projects/new/import", state=signed_in)
    page.get_by_label("Project name").fill(name)
    page.get_by_label("Project slug").fill("-no-slug")
    page.get_by_label("Archive", exact=True).set_input_files(archive())
    page.get_by_role("button", name="Import project").click()
    expect(page.get_by_label("Project slug")).to_be_focused()

    page.get_by_label("Project slug").fill(name)
    page.get_by_role("button", name="Import project").click()

    expect(page.get_by_text("The import is finished.")).to_be_visible(timeout=SECONDS)
    assert gl.projects.get(f"paula/{name}").import_status == "finished"


def test_an_upload_shows_progress_and_can_be_cancelled(visit, signed_in, archive, name):
    page = visit("/projects/new/import", state=signed_in)
    page.context.new_cdp_session(page).send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 50_000},
    )
    page.get_by_label("Project name").fill(name)
    page.get_by_label("Archive", exact=True).set_input_files(archive(b"\0" * 4_000_000))

    page.get_by_role("button", name="Import project").click()
    expect(page.get_by_role("status")).to_have_text("The archive is being sent.")
    expect(page.get_by_role("progressbar", name="Sent of the archive")).not_to_have_attribute("value", "0")
    expect(page.get_by_text("of 3.8 MB")).to_be_visible()
    page.get_by_role("button", name="Cancel upload").click()

    expect(page.get_by_role("status")).to_have_text("The upload was cancelled.")
    expect(page.get_by_role("button", name="Import project")).to_be_enabled()


def test_an_oversized_file_is_not_sent(visit, signed_in, archive, name):
    page = visit("/projects/new/import", state=signed_in)
    page.locator("form[data-uploads]").evaluate("form => { form.dataset.most = 1; }")
    page.get_by_label("Project name").fill(name)
    page.get_by_label("Archive", exact=True).set_input_files(archive(b"\0" * 2_000_000))
    sent = []
    page.on("request", lambda request: sent.append(request.method))

    page.get_by_role("button", name="Import project").click()

    expect(page.get_by_role("status")).to_have_text("The file is larger than 1 MB.")
    expect(page.get_by_role("button", name="Import project")).to_be_enabled()
    assert sent == []


def test_a_live_page_updates_without_a_reload(visit, signed_in, archive, name):
    page = visit("/projects/new/import", state=signed_in)
    page.get_by_label("Project name").fill(name)
    page.get_by_label("Archive", exact=True).set_input_files(archive())
    page.get_by_role("button", name="Import project").click()
    page.wait_for_url(f"**/{name}/-/import")
    expect(page.get_by_text("The import is finished.")).to_be_visible(timeout=SECONDS)

    def go_back(route):
        """What the page was a moment ago."""
        text = route.fetch().text().replace("The import is finished.", "Rows are being imported.")
        bar = f'<div data-moving="{page.url}"><progress aria-label="Rows" max="9" value="4"></progress></div>'
        route.fulfill(body=re.sub(r'(<div id="import-bar" data-live>)', rf"\1{bar}", text), content_type="text/html")

    page.route("**/-/import", go_back)
    page.reload()
    expect(page.get_by_role("status")).to_have_text("Rows are being imported.")
    row = page.get_by_role("row", name="issues").element_handle()
    page.unroute("**/-/import", go_back)

    expect(page.get_by_role("status")).to_have_text("The import is finished.")
    expect(page.get_by_role("progressbar")).to_have_count(0)
    assert row.evaluate("row => row.isConnected")


def test_an_archive_is_a_file_or_a_url(visit, signed_in, gl):
    gl.features.set("import_project_from_remote_file", True)
    page = visit("/projects/new/import", state=signed_in)
    expect(page.get_by_label("Address of the archive")).to_be_hidden()
    page.get_by_label("On another server").check()
    expect(page.get_by_label("Archive", exact=True)).to_be_hidden()
    page.get_by_label("Project name").fill("Third Shop")
    page.get_by_label("Address of the archive").fill("http://127.0.0.2:1/x.tar.gz")

    page.get_by_role("button", name="Import project").click()

    expect(page.get_by_label("Address of the archive")).to_have_accessible_description(
        "http or https. The archive is fetched from there after the project was made. Address of the archive "
        "cannot be used: Requests to loopback addresses are not allowed"
    )
