"""Chromium in front of the running service."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gitlab
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.contract.conftest import client_with, gl, group, name, project, running, service  # noqa: F401  # the same
from tests.contract.service import Service

REPOSITORY = Path(__file__).parents[2]
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "correct horse battery"
PATIENCE = 30_000  # ms, on a machine that does other work too
LEFT = "net::ERR_ABORTED"  # a page was left before all of it had come
EXPECTED = "the server responded with a status of 4"  # what Chromium says of a refused form


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests here."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser; without one these tests are skipped, but in the build they fail."""
    program = [REPOSITORY / "scripts/foreign-programs", "chromium"]
    found = subprocess.run(program, check=False, capture_output=True, text=True)
    if found.returncode:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(found.stderr.strip())
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=ARGUMENTS)
        yield browser
        browser.close()


class Visits:
    """Opens pages and gathers what the browser complains about."""

    def __init__(self, chromium: Browser, service: Service) -> None:  # noqa: F811
        self.chromium = chromium
        self.service = service
        self.complaints: list[str] = []
        self.contexts = ExitStack()

    def __call__(self, address: str = "/", *, state: Any = None, width: int = 1400, **options: Any) -> Page:
        """Open a page in a browser profile of its own, with the cookies of ``state``."""
        context = self.chromium.new_context(
            base_url=self.service.url, storage_state=state, viewport={"width": width, "height": 900}, **options
        )
        self.contexts.callback(context.close)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", self.hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.miss(request.url, request.failure or ""))
        page.goto(address)
        return page

    def hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and EXPECTED not in message.text:
            self.complaints.append(message.text)

    def miss(self, address: str, why: str) -> None:
        if why != LEFT:
            self.complaints.append(f"{address}: {why}")


@pytest.fixture
def visit(chromium: Browser, service: Service) -> Iterator[Visits]:  # noqa: F811  # imported above
    """Opens pages; afterwards nothing was wrong in the browser's console."""
    visits = Visits(chromium, service)
    with visits.contexts:
        yield visits
    assert visits.complaints == []


@pytest.fixture(scope="session")
def paula(gl: gitlab.Gitlab) -> Any:  # noqa: F811
    """A user with a password."""
    return make_person(gl, "paula", "Paula Pellegrini")


@pytest.fixture(scope="session")
def signed_in(chromium: Browser, service: Service, paula: Any) -> Any:  # noqa: F811
    """The cookies of paula after she has signed in."""
    context: BrowserContext = chromium.new_context(base_url=service.url)
    page = context.new_page()
    page.goto("/users/sign_in")
    sign_in(page, "paula")
    page.wait_for_url("**/")
    state = context.storage_state()
    context.close()
    return state


# pages without scripts are tested in every run beside the areas, with Flask's client
@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.nightly)], ids=["with scripts", "without scripts"])
def open_as_paula(request: pytest.FixtureRequest, visit: Visits, signed_in: Any) -> Callable[..., Page]:
    """Opens pages that paula is signed in to, in a browser with scripts and in one without."""
    return lambda address="/", **options: visit(address, state=signed_in, java_script_enabled=request.param, **options)


@pytest.fixture
def shop(gl: gitlab.Gitlab, project: Any, paula: Any) -> str:  # noqa: F811
    """The path of a project that paula maintains."""
    project.members.create({"user_id": paula.id, "access_level": 40})
    return str(project.path_with_namespace)


@pytest.fixture
def tracker(gl: gitlab.Gitlab) -> Iterator[str]:  # noqa: F811
    """The address of a project of an error tracker on this machine, which the service is allowed to reach."""

    class Tracker(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = (
                self.path == "/api/0/projects/acme/shop/" and self.headers["Authorization"] == "Bearer tracker-token"
            )
            body = b'{"name": "The Shop", "slug": "shop"}' if known else b"{}"
            self.send_response(200 if known else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Tracker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"127.0.0.1:{server.server_port}"
        gl.http_put("/application/settings", post_data={"outbound_local_requests_whitelist": ["127.0.0.1"]})
        yield f"http://{place}/api/0/projects/acme/shop"
        server.shutdown()


def make_person(gl: gitlab.Gitlab, username: str, full_name: str) -> Any:  # noqa: F811
    """Create a user with the password of everybody here."""
    fields = {"username": username, "name": full_name, "email": f"{username}@example.org", "password": PASSWORD}
    try:
        return gl.users.create(fields)
    except gitlab.exceptions.GitlabCreateError:
        # the tests of another process share the service, and were faster
        return gl.users.list(username=username)[0]


def sign_in(page: Page, username: str, password: str = PASSWORD) -> None:
    """Fill and send the sign-in form."""
    page.get_by_label("Username or email").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
