"""Reports, findings and decisions in a browser."""

from __future__ import annotations

import orjson
import pytest
from playwright.sync_api import expect

from tests.support.security_reports import report, vulnerability

WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def wider(page):
    """By how much a page is wider than the window, once its styles are there."""
    page.wait_for_load_state()
    return page.evaluate(WIDER)


@pytest.fixture
def scan(tmp_path):
    """A report on disk: findings of every severity, one with all there is to see."""
    entries = [
        vulnerability(f"{level}-{number}", name=f"{level} finding {number}", severity=level)
        for level, count in (("Critical", 1), ("High", 3), ("Medium", 4), ("Low", 2), ("Info", 1), ("Unknown", 1))
        for number in range(count)
    ]
    entries[0] |= {
        "description": "A key that stands in the source is known to everybody who reads the source. " * 3,
        "solution": "Read it from the environment.",
        "location": {"file": "app/payments/providers/settings_of_the_provider.py", "start_line": 12, "end_line": 14},
        "links": [{"url": "https://owasp.org/", "name": "OWASP"}],
        "details": {
            "urls": {"name": "Where", "type": "list", "items": [{"type": "url", "href": "https://example.org/a"}]},
            "code": {"name": "Code", "type": "code", "value": 'KEY = "s3cr3t"', "lang": "python"},
            "table": {
                "name": "Calls",
                "type": "table",
                "header": [{"type": "text", "value": "Function"}, {"type": "text", "value": "Line"}],
                "rows": [[{"type": "text", "value": "pay()"}, {"type": "value", "value": 12}]],
            },
        },
    }
    file = tmp_path / "gl-sast-report.json"
    file.write_bytes(orjson.dumps(report(*entries, scan={"scanner": {"id": "s", "name": "The Scanner"}})))
    return file


@pytest.mark.parametrize("width", [1400, 400])
def test_a_report_is_uploaded_and_a_finding_dismissed(width, open_as_paula, shop, scan, tmp_path):
    page = open_as_paula(f"/{shop}/-/security/dashboard", width=width)
    expect(page.get_by_role("heading", name="No security reports yet")).to_be_visible()
    page.get_by_role("link", name="Upload report").last.click()
    expect(page.get_by_label("Report", exact=True)).to_be_visible()  # a click does not wait for the page it leads to
    assert wider(page) <= 0
    for _ in range(2):
        page.goto(f"/{shop}/-/security/reports/new")
        page.get_by_label("Report", exact=True).set_input_files(scan)
        page.get_by_label("Kind of report").select_option(label="SAST")
        page.get_by_role("button", name="Upload report").click()
        expect(page.get_by_text("12 findings")).to_be_visible()
    page.screenshot(path=tmp_path / f"dashboard-{width}.png", full_page=True)
    assert wider(page) <= 0

    if width == 400:
        page.get_by_text("Filter", exact=True).first.click()  # opens the form
    page.get_by_label("Severity").select_option("Critical")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="Critical finding 0").click()
    expect(page.get_by_role("heading", level=1, name="Critical finding 0")).to_be_visible()
    page.screenshot(path=tmp_path / f"finding-{width}.png", full_page=True)
    assert wider(page) <= 0

    page.get_by_text("Dismiss", exact=True).first.click()
    page.get_by_label("Reason").select_option("False positive")
    page.get_by_label("Comment").fill("The key is for tests")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("The key is for tests")).to_be_visible()
    page.get_by_role("button", name="Create issue").click()
    expect(page.get_by_role("link", name="View issue #1")).to_be_visible()
    if width == 400:
        page.get_by_text("Menu", exact=True).click()
    page.get_by_role("link", name="Security", exact=True).click()
    expect(page.get_by_text("11 findings")).to_be_visible()


@pytest.mark.parametrize("width", [1400, 400])
def test_long_names_do_not_hide_other_columns(width, open_as_paula, shop, tmp_path):
    long = {"identifiers": [{"type": "x", "value": "v", "name": "identifier_" * 40}], "name": "overflow_" * 60}
    file = tmp_path / "long.json"
    file.write_bytes(orjson.dumps(report(vulnerability("a", **long), vulnerability("b", name="long words " * 40))))
    page = open_as_paula(f"/{shop}/-/security/reports/new", width=width)
    page.get_by_label("Report", exact=True).set_input_files(file)
    page.get_by_label("Kind of report").select_option(label="SAST")
    page.get_by_role("button", name="Upload report").click()
    expect(page.get_by_text("2 findings")).to_be_visible()

    page.screenshot(path=tmp_path / f"long-{width}.png", full_page=True)
    assert wider(page) <= 0
    for column in ("Kind", "State"):
        cell = page.locator(f"td[data-label={column}]").first
        assert cell.evaluate("cell => cell.getBoundingClientRect().right") <= width
        assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


def test_an_invalid_report_shows_an_error_at_the_form(open_as_paula, shop, tmp_path):
    file = tmp_path / "broken.json"
    file.write_text('{"vulnerabilities": [{"name": "A", "severity": 5}]}')
    page = open_as_paula(f"/{shop}/-/security/reports/new", width=400)

    page.get_by_label("Report", exact=True).set_input_files(file)
    page.get_by_label("Kind of report").select_option(label="SAST")
    page.get_by_role("button", name="Upload report").click()

    expect(page.get_by_role("alert")).to_contain_text("/vulnerabilities/0/severity must be a string or null")
    page.screenshot(path=tmp_path / "broken-400.png", full_page=True)
