"""Unmodified SDKs of Sentry against the running service, with the snippets of the settings page."""

from __future__ import annotations

import html
import re
import subprocess
import sys
import time

import pytest

from tests.contract.alerting import Maintainer
from tests.support import sentry_javascript

FLASK = """
import sentry_sdk

sentry_sdk.init(dsn="{dsn}")
from flask import Flask
app = Flask("shop")

@app.post("/orders")
def order():
    password = "hunter2"
    raise LookupError("no such article")

app.test_client().post("/orders?token=abc", data={{"password": "hunter2"}})
sentry_sdk.capture_message("Stock is low")
1 / 0
"""
NODE = """
Sentry.captureMessage("Stock is low");
function priceOf(basket) { return basket.items; }
priceOf(null);
"""


@pytest.fixture
def dsn(gl, project):
    """The DSN of the project."""
    path = f"/projects/{project.encoded_id}/error_tracking"
    gl.http_put(f"{path}/settings", post_data={"active": True, "integrated": True})
    return gl.http_get(f"{path}/client_keys")[0]["sentry_dsn"]


@pytest.fixture
def errors(gl, project):
    """Return title, level and platform of the project's errors, ordered by title."""

    def read(count):
        path = f"/projects/{project.encoded_id}/error_tracking/errors"
        for _ in range(50):
            found = gl.http_get(path)
            if len(found) >= count:
                break
            time.sleep(0.1)
        return sorted((one["title"], one["level"], one["platform"]) for one in found)

    return read


def test_the_python_sdk_reports_errors_of_flask(dsn, errors, gl, project):
    done = subprocess.run(
        [sys.executable, "-c", FLASK.format(dsn=dsn)], check=False, capture_output=True, text=True, timeout=60
    )

    assert "ZeroDivisionError" in done.stderr
    assert errors(3) == [
        ("LookupError: no such article", "error", "python"),
        ("Stock is low", "info", "python"),
        ("ZeroDivisionError: division by zero", "error", "python"),
    ]
    path = f"/projects/{project.encoded_id}/error_tracking/errors"
    found = next(one["id"] for one in gl.http_get(path) if one["culprit"] == "order")
    event = gl.http_get(f"{path}/{found}/events/latest")
    assert (event["request"]["method"], "hunter2" in str(event), "token=abc" in str(event)) == ("POST", False, False)


@pytest.mark.nightly
def test_the_node_sdk_reports_errors_as_the_settings_page_shows(service, project, dsn, errors, tmp_path):
    maintainer = Maintainer(service)
    page = maintainer.get(f"/{project.path_with_namespace}/-/settings/operations")
    maintainer.session.close()
    snippets = [html.unescape(found) for found in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)]
    node = next(found for found in snippets if "@sentry/node" in found)

    done = sentry_javascript.run(f"{node}\n{NODE}", tmp_path)

    assert "TypeError" in done.stderr
    assert errors(2) == [
        ("Stock is low", "info", "node"),
        ("TypeError: Cannot read properties of null (reading 'items')", "fatal", "node"),
    ]
