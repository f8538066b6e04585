"""A file of the repository in a browser, and the lines that its address means."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE
from tests.support.archives import make_archive
from tests.support.git_repositories import make_bundle

LINES = 200


@pytest.fixture
def source(visit, signed_in, name, tmp_path):
    """The address of a file with 200 lines, in a project that came with its repository."""
    files = {"app/till.py": b"".join(b"line %d\n" % number for number in range(1, LINES + 1))}
    archive = tmp_path / "till_export.tar.gz"
    archive.write_bytes(make_archive({}, files={"project.bundle": make_bundle(tmp_path / "git", files=files)}))
    page = visit("/projects/new/import", state=signed_in)
    page.get_by_label("Project name").fill(name)
    page.get_by_label("Project slug").fill(name)
    page.get_by_label("Archive", exact=True).set_input_files(archive)
    page.get_by_role("button", name="Import project").click()
    expect(page.get_by_text("The import is finished.")).to_be_visible(timeout=PATIENCE)
    return f"/paula/{name}/-/blob/main/app/till.py"


def marked(page):
    """The numbers of the lines that are marked."""
    return page.locator(".meant").evaluate_all("lines => lines.map(line => Number(line.id.slice(1)))")


def test_lines_of_the_url_are_marked_and_scrolled_into_view(visit, signed_in, source):
    page = visit(f"{source}#L120-122", state=signed_in)
    expect(page.locator("#L120")).to_be_in_viewport()
    assert marked(page) == [120, 121, 122]
    assert page.locator("#L120").evaluate("line => getComputedStyle(line).backgroundColor") != "rgba(0, 0, 0, 0)"

    page.evaluate("location.hash = '#L5-7'")
    expect(page.locator("#L5")).to_be_in_viewport()
    assert marked(page) == [5, 6, 7]

    page.get_by_role("link", name="Line 6", exact=True).click()
    expect(page.locator(".meant")).to_have_count(0)


def test_missing_lines_in_the_url_are_ignored(visit, signed_in, source):
    page = visit(f"{source}#L7-5", state=signed_in)
    page.wait_for_load_state()
    found = {"L7-5": marked(page)}

    for meant in ("L199-500", "L0-1", "L500-600", "L1-", "L" + "9" * 400 + "-150"):
        page.evaluate("meant => new Promise((go) => { onhashchange = go; location.hash = meant; })", meant)
        found[meant[:9]] = marked(page)

    assert found == {
        "L7-5": [5, 6, 7],
        "L199-500": [199, 200],
        "L0-1": [1],
        "L500-600": [],
        "L1-": [],
        "L99999999": list(range(150, LINES + 1)),
    }


def test_without_scripts_a_file_is_shown_from_the_top(visit, signed_in, source):
    page = visit(f"{source}#L120-122", state=signed_in, java_script_enabled=False)

    expect(page.locator("#L1")).to_be_in_viewport()


def test_lines_of_blame_are_marked_too(visit, signed_in, source):
    page = visit(f"{source.replace('/blob/', '/blame/')}#L120-122", state=signed_in)

    expect(page.locator("#L120")).to_be_in_viewport()
    assert marked(page) == [120, 121, 122]


def test_code_is_highlighted_with_and_without_scripts(visit, signed_in, source):
    for scripts in (True, False):
        page = visit(source, state=signed_in, java_script_enabled=scripts)
        number = page.locator("#L1 [class^=hl-m]")
        assert number.evaluate("one => getComputedStyle(one).color") != page.locator("#L1").evaluate(
            "one => getComputedStyle(one).color"
        )


def test_the_clone_url_is_copied_by_a_button_and_selectable_without_scripts(visit, signed_in, source):
    home = source.partition("/-/")[0]
    page = visit(home, state=signed_in, permissions=["clipboard-read", "clipboard-write"])
    address = page.get_by_label("Clone with HTTP").input_value()
    button = page.get_by_role("button", name="Copy clone address")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied clone address")).to_be_visible()

    assert address.endswith(f"{home}.git")
    assert page.evaluate("navigator.clipboard.readText()") == address
    plain = visit(home, state=signed_in, java_script_enabled=False)
    expect(plain.get_by_label("Clone with HTTP")).to_have_value(address)
    expect(plain.get_by_role("button", name="Copy clone address")).to_be_hidden()


def test_two_revisions_are_compared_by_keyboard_without_scripts(visit, signed_in, source):
    page = visit(f"{source.partition('/-/')[0]}/-/compare", state=signed_in, java_script_enabled=False, width=400)
    page.get_by_label("To", exact=True).fill("main")
    page.keyboard.press("Enter")

    page.wait_for_url("**/-/compare/main...main")
    expect(page.get_by_text("has no commits that")).to_be_visible()
