"""An archive with huge texts: they are cut to the limits of the API, and lists of large rows need little memory."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
import requests

from tests.contract.service import PASSWORD, TOKEN, Service, children_of, wait_for
from tests.support.archives import make_archive, make_event, make_issue, make_note

ATTACK = 49_000_000  # characters of one description
LIMIT = 1_000_000
MIB = 1 << 20
MAX_GROWTH_BYTES = 64 * MIB
ROWS = 30
PROJECT = "root%2Fcopy"
LISTS = {
    "issues?per_page=100": ROWS + 1,
    "issues/2/notes?per_page=100": ROWS,
    "merge_requests?per_page=100": ROWS,
    "milestones?per_page=100": ROWS,
    "events?per_page=100": 2 * ROWS + 1,
}
pytestmark = pytest.mark.nightly
PAGES = ("issues", "issues/1", "issues/2", "milestones", "merge_requests", "merge_requests/1", "alert_management")
CSRF = re.compile(r'name="csrf_token"[^>]* value="([^"]+)"')


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    made = Service(tmp_path_factory.mktemp("large"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def api(service):
    """A session of the administrator, and the project of the archive, imported."""
    relations = {
        "issues": [
            make_issue(1, description="d" * ATTACK),
            make_issue(2, notes=[make_note("&" * (LIMIT - 100), events=[make_event()]) for _ in range(ROWS)]),
            *[make_issue(number, description="'" * LIMIT) for number in range(3, ROWS + 2)],
        ],
        "merge_requests": [
            make_issue(number, description="m" * LIMIT, source_branch="a", target_branch="b", events=[make_event()])
            for number in range(1, ROWS + 1)
        ],
        "milestones": [
            {"title": f"M{number}", "iid": number, "description": "x" * LIMIT} for number in range(1, ROWS + 1)
        ],
    }
    archive = gzip.compress(gzip.decompress(make_archive(relations)), 9)
    with requests.Session() as session:
        session.headers["PRIVATE-TOKEN"] = TOKEN
        root = f"{service.url}/api/v4/projects"
        sent = session.post(f"{root}/import", data={"path": "copy"}, files={"file": ("a.tar.gz", archive)}, timeout=60)
        assert sent.status_code == 201, sent.text
        wait_for(lambda: session.get(f"{root}/{PROJECT}/import").json()["import_status"] in ("finished", "failed"), 400)
        yield session


def peak_of(service, act):
    """Call a function; return by how many bytes the peak memory of a web process grew."""
    web = children_of(service.child("web"))
    before = {pid: memory(pid, "VmRSS") for pid in web}
    for pid in web:
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # resets VmHWM
    act()
    return max(memory(pid, "VmHWM") - before[pid] for pid in web)


def memory(pid, name):
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) << 10


def test_the_limits_of_the_api_hold_in_imports(service, api):
    project = f"{service.url}/api/v4/projects/{PROJECT}"
    state = api.get(f"{project}/import").json()
    issue = api.get(f"{project}/issues/1").json()

    assert (state["import_status"], len(issue["description"])) == ("finished", LIMIT)
    assert [(failed["relation_name"], failed["exception_message"]) for failed in state["failed_relations"]] == [
        ("issues", "Validation failed: Description is too long (maximum is 1000000 characters) and was cut")
    ]


@pytest.mark.parametrize(("path", "rows"), LISTS.items(), ids=LISTS)
def test_a_list_of_large_rows_is_complete_and_needs_little_memory(service, api, path, rows):
    address = f"{service.url}/api/v4/projects/{PROJECT}/{path}"
    api.get(address.replace("100", "1"))  # modules that are loaded on first use do not count
    sizes = []

    def read():
        for _ in range(2):
            with api.get(address, timeout=60) as response:
                sizes.append((response.status_code, len(response.json()), len(response.content) > ROWS * LIMIT / 2))

    assert peak_of(service, read) < MAX_GROWTH_BYTES
    assert set(sizes) == {(200, rows, True)}


def test_pages_of_large_rows_need_little_memory(service, api):
    with requests.Session() as browser:
        form = browser.get(f"{service.url}/users/sign_in").text
        fields = {"csrf_token": CSRF.search(form)[1], "login": "root", "password": PASSWORD}
        browser.post(f"{service.url}/users/sign_in", data=fields)
        pages = [f"{service.url}/root/copy/-/{name}" for name in PAGES]
        statuses = {}
        growth = peak_of(service, lambda: statuses.update({page: browser.get(page).status_code for page in pages}))

    assert set(statuses.values()) == {200}, statuses
    assert growth < MAX_GROWTH_BYTES
