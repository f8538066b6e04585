"""The SDK of Sentry for browsers, in a page of another origin."""

from __future__ import annotations

import time

import pytest

from tests.support import sentry_javascript

SCRIPT = """
import * as Sentry from "@sentry/browser";

Sentry.init({ dsn: "%s" });
document.title = "ready";
function renderBasket(basket) { return basket.lines; }
setTimeout(() => renderBasket(undefined), 0);
"""


@pytest.mark.nightly
def test_an_error_of_the_browser_sdk_is_collected(chromium, gl, project):
    path = f"/projects/{project.encoded_id}/error_tracking"
    gl.http_put(f"{path}/settings", post_data={"active": True, "integrated": True})
    dsn = gl.http_get(f"{path}/client_keys")[0]["sentry_dsn"]
    context = chromium.new_context()

    with sentry_javascript.page_with(SCRIPT % dsn) as address:
        page = context.new_page()
        with page.expect_response(lambda response: "/envelope/" in response.url) as answered:
            page.goto(address)
        assert answered.value.status == 200
        for _ in range(50):
            if found := gl.http_get(f"{path}/errors"):
                break
            time.sleep(0.1)
    context.close()

    assert [(one["title"], one["platform"], one["user_count"]) for one in found] == [
        ("TypeError: Cannot read properties of undefined (reading 'lines')", "javascript", 1)
    ]
