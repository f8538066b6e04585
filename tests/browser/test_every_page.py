"""What holds for every page: nothing is wider than the screen, nothing breaks the policy, everything has its name."""

from __future__ import annotations

import base64
import json
import os
import subprocess

import pytest
import requests
from playwright.sync_api import expect

from tests.browser.conftest import sign_in
from tests.contract.alerting import Maintainer
from tests.contract.service import AUTHOR, TOKEN
from tests.contract.service import PASSWORD as ROOT_PASSWORD
from tests.support import npm

LONG = "an-uncommonly-long-name-that-somebody-has-given-to-this-without-a-thought-for-narrow-screens"
ALERT = json.dumps(
    {"title": LONG, "runbook": f"https://{LONG}.example.com", "gitlab_environment_name": LONG, LONG: {LONG: [LONG] * 9}}
)
FRAME = {"filename": LONG * 3, "function": LONG, "lineno": 7, "context_line": LONG * 3, "vars": {LONG: LONG * 3}}
EVENT = {
    **dict.fromkeys(("transaction", "release", "environment", "server_name", "logger"), LONG * 2),
    "exception": [{"type": LONG, "value": LONG * 5, "stacktrace": {"frames": [FRAME | {"in_app": True}, FRAME]}}],
    "breadcrumbs": [{"message": LONG * 3, "category": LONG, "level": "info", "data": {LONG: LONG * 3}}],
    "tags": {LONG: LONG},
    "user": {"email": f"{LONG}@example.org"},
    "request": {"url": f"https://example.org/{LONG * 3}", "headers": {LONG: LONG * 3}},
    "contexts": {LONG: {LONG: LONG * 3}},
    "extra": {LONG: LONG * 3},
}
ADMINISTRATION = {  # the first is where the administrator begins
    "administration": "/admin",
    "users": "/admin/users",
    "all projects": "/admin/projects",
    "all groups": "/admin/groups",
    "instance variables": "/admin/ci_cd?reveal=1",
    "all audit events": "/admin/audit_logs",
    "system hooks": "/admin/hooks/new",
    "application settings": "/admin/settings",
    "feature flags": "/admin/features",
    "tasks": "/admin/tasks",
    "health": "/admin/health",
    "about": "/admin/about",
    "style guide": "/-/styleguide",
}
UNNAMED = """() => [...document.querySelectorAll("a, button, input:not([type=hidden]), select, textarea")]
    .filter(one => !(one.textContent.trim() || one.labels?.length || one.getAttribute("aria-label") || one.alt
        || document.getElementById(one.getAttribute("aria-labelledby"))?.textContent.trim()))
    .map(one => one.outerHTML)"""
TWICE = """() => { const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
    return ids.filter((id, position) => ids.indexOf(id) !== position) }"""
AXE = "4.14.1"
# WCAG 2.1 AA; what is hidden in a closed "details" is checked too
VIOLATIONS = """async () => {
    document.querySelectorAll("details").forEach(one => { one.open = true });
    const run = {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]};
    const {violations} = await axe.run(document, {runOnly: run, resultTypes: ["violations"]});
    return violations.map(one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 90)).join(" | ")}`);
}"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


CODE = f"""import {LONG.replace("-", "_")}


@decorated
class Ship(Base):
    \"\"\"{LONG * 3}\"\"\"

    speed: int = 0x1F + 1.5e3  # {LONG}

    def sail(self, *args, **options) -> None:
        return f"{{self}} {LONG * 3}\\n" if not args else None
"""
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)


def push_history(path, folder, url):
    """Push two commits, two branches and a tag to a project: code, Markdown, an image and a binary file."""

    def git(*words):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env=os.environ | AUTHOR)

    readme = f"# {LONG}\n\n![Logo](logo.png) [code]({LONG}/{LONG}.py)\n\n```\n{LONG * 3}\n```\n"
    git("init", "--quiet", "--initial-branch=main", ".")
    (folder / LONG).mkdir()
    (folder / LONG / f"{LONG}.py").write_text(CODE)
    (folder / "README.md").write_text(readme)
    (folder / "logo.png").write_bytes(PNG)
    (folder / "data.bin").write_bytes(bytes(256))
    git("add", ".")
    git("commit", "--quiet", "-m", f"Build {LONG}\n\n{LONG * 3}")
    git("tag", "-a", f"{LONG}/v1", "-m", LONG * 3)
    git("branch", LONG)
    (folder / LONG / f"{LONG}.py").write_text(CODE.replace("0x1F", "0x2F") + f"# {LONG * 3}\n")
    git("commit", "--quiet", "-a", "-m", f"Go faster: {LONG}")
    git("push", "--quiet", f"{url.replace('://', f'://git:{TOKEN}@')}/{path}.git", "--all")
    git("push", "--quiet", f"{url.replace('://', f'://git:{TOKEN}@')}/{path}.git", "--tags")


@pytest.fixture(scope="module")
def addresses(gl, paula, service, worker_id, tmp_path_factory):
    """The addresses of all pages that paula has, in places with long names and much in them."""
    path = f"{LONG}-{worker_id}"  # the tests of another process share the service
    group = gl.groups.create({"name": path.replace("-", " "), "path": path, "description": "All the ships. " * 9})
    gl.groups.create({"name": "Subgroup", "path": "subgroup", "parent_id": group.id})
    group.members.create({"user_id": paula.id, "access_level": 50})
    project = gl.projects.create({"name": LONG, "namespace_id": group.id, "description": "Carries people. " * 9})
    empty = gl.projects.create({"name": f"{LONG} without code", "namespace_id": group.id})
    for scope in ("*", f"review/{LONG}"):
        fields = {"value": LONG, "environment_scope": scope, "description": "Where the ships are. " * 9}
        project.variables.create({"key": LONG.upper().replace("-", "_"), **fields})
    gl.variables.create({"key": f"{LONG}_{worker_id}".upper().replace("-", "_"), "value": LONG * 3})
    for key in (LONG.upper().replace("-", "_"), "ONLY_IN_THE_GROUP"):
        group.variables.create({"key": key, "value": LONG * 3, "masked": True, "environment_scope": f"*{LONG}*"})
    token = project.access_tokens.create({"name": LONG, "scopes": ["api", "read_repository", "write_repository"]})
    project.protectedtags.create({"name": f"{LONG}/*"})
    project.protectedbranches.create({"name": f"{LONG}/*"})
    gl.personal_access_tokens.list(user_id=paula.id) or paula.personal_access_tokens.create(
        {"name": LONG, "scopes": ["api", "read_user", "read_repository"]}
    )
    issue = project.issues.create({"title": f"Mend the mast of {LONG}", "description": "Soon. " * 60, "labels": LONG})
    issue.notes.create(
        {"body": f"As **soon** as\n\n|a|{LONG}|\n|-:|---|\n|{LONG}|1|\n\n```\n{LONG * 2}\n```\n- {LONG * 2}"}
    )
    project.milestones.create({"title": LONG, "description": "All of it."})
    environment = project.environments.create({"name": LONG, "external_url": f"https://{LONG[:60]}.example.com"})
    maintainer = Maintainer(service)
    receiver = maintainer.add_integration(project.path_with_namespace, type="http", name=LONG, payload_example=ALERT)
    maintainer.close()
    requests.post(receiver.url, ALERT, headers={"Authorization": f"Bearer {receiver.key}"}, timeout=20)
    tracking = f"/projects/{project.encoded_id}/error_tracking"
    gl.http_put(f"{tracking}/settings", post_data={"active": True, "integrated": True})
    key = gl.http_get(f"{tracking}/client_keys")[0]
    collector = f"{service.url}/api/v4/error_tracking/collector/api/{project.id}/store/?sentry_key={key['public_key']}"
    requests.post(collector, json.dumps(EVENT), timeout=20).raise_for_status()
    error = gl.http_get(f"{tracking}/errors")[0]["id"]
    gl.http_post(f"{tracking}/errors/{error}/notes", post_data={"body": f"As **soon** as {LONG}"})
    gl.http_post(f"{tracking}/ignore_rules", post_data={"title": LONG * 2, "file": LONG * 2})
    push_history(project.path_with_namespace, tmp_path_factory.mktemp("pushed"), service.url)
    links = {"links": [{"name": LONG * 2, "url": f"https://{LONG[:60]}.example.com/{LONG * 3}"}]}
    project.releases.create(
        {"tag_name": f"{LONG}/v1", "name": LONG * 2, "description": f"# {LONG}\n\n{LONG * 3}", "assets": links}
    )
    heartbeat = gl.http_post(
        f"/projects/{project.encoded_id}/heartbeats", post_data={"name": LONG, "environment": LONG}
    )
    requests.post(f"{heartbeat['ping_url']}/fail", LONG * 9, timeout=20).raise_for_status()
    matcher = {"field": "title", "operator": "matches", "value": f"{LONG}*"}
    silence = {"matchers": [matcher] * 3, "duration": 3600, "comment": LONG * 3}
    number = gl.http_post(f"/projects/{project.encoded_id}/silences", post_data=silence)["id"]
    home, members = f"/{project.path_with_namespace}", f"/groups/{group.path}/-/group_members"
    return {
        "signed out": "/users/sign_out",
        "home": "/",
        "wall": "/-/overview",
        "projects": "/dashboard/projects",
        "groups": "/dashboard/groups",
        "new group": "/groups/new",
        "group": f"/{group.path}",
        "group members": members,
        "group member": f"{members}/{paula.id}/edit",
        "leaving": f"{members}/{paula.id}/remove",
        "new project": "/projects/new",
        "import": "/projects/new/import",
        "an import": f"{home}/-/import",
        "no export to download": f"{home}/download_export",
        "project": home,
        "project members": f"{home}/-/project_members",
        "variables": f"{home}/-/settings/ci_cd?reveal=1",
        "what a job gets": f"{home}/-/settings/ci_cd/job_variables?environment=review/{LONG}&reveal=1",
        "group settings": f"/groups/{group.path}/-/edit",
        "group variables": f"/groups/{group.path}/-/settings/ci_cd?reveal=1",
        "project tokens": f"{home}/-/settings/access_tokens",
        "rotate token": f"{home}/-/settings/access_tokens/{token.id}/rotate",
        "group tokens": f"/groups/{group.path}/-/settings/access_tokens",
        "leaked token": "/-/profile/leaked_token",
        "two factors": "/-/profile/two_factor_auth",
        "general settings": f"{home}/-/settings/general",
        "tags": f"{home}/-/settings/repository",
        "error tracking": f"{home}/-/settings/operations",
        "key to remove": f"{home}/-/settings/operations/error_tracking/keys/{key['id']}/delete",
        "errors": f"{home}/-/error_tracking",
        "error": f"{home}/-/error_tracking/{error}/details",
        "events of an error": f"{home}/-/error_tracking/{error}/events",
        "releases of errors": f"{home}/-/error_tracking/releases",
        "release of errors": f"{home}/-/error_tracking/releases/{EVENT['release']}",
        "new integration": f"{home}/-/settings/operations/integrations/new",
        "integration": f"{home}/-/settings/operations/integrations/{receiver.number}/edit",
        "credentials": f"{home}/-/settings/operations/integrations/{receiver.number}/credentials",
        "test alert": f"{home}/-/settings/operations/integrations/{receiver.number}/test",
        "requests": f"{home}/-/settings/operations/integrations/{receiver.number}/requests",
        "request": f"{home}/-/settings/operations/integrations/{receiver.number}/requests/1",
        "alerts": f"{home}/-/alert_management",
        "statistics of alerts": f"{home}/-/alert_management/statistics",
        "statistics of a group": f"/groups/{group.path}/-/alert_statistics",
        "alert": f"{home}/-/alert_management/1/details",
        "activity of an alert": f"{home}/-/alert_management/1/details/activity",
        "heartbeats": f"{home}/-/heartbeats",
        "heartbeat": f"{home}/-/heartbeats/{heartbeat['id']}",
        "new heartbeat": f"{home}/-/heartbeats/new",
        "silences": f"{home}/-/silences",
        "silence": f"{home}/-/silences/{number}",
        "new silence": f"{home}/-/silences/new",
        "web hooks": f"{home}/-/hooks",
        "new web hook": f"{home}/-/hooks/new",
        "web hooks of a group": f"/groups/{group.path}/-/hooks",
        "acknowledge alerts": "/-/notifications/a/x",
        "to-do list": "/dashboard/todos",
        "environment": f"{home}/-/environments/{environment.id}",
        "merge requests": f"{home}/-/merge_requests",
        "code": f"{home}/-/tree",
        "folder": f"{home}/-/tree/main/{LONG}",
        "code file": f"{home}/-/blob/main/{LONG}/{LONG}.py",
        "formatted file": f"{home}/-/blob/main/README.md",
        "image": f"{home}/-/blob/main/logo.png",
        "binary file": f"{home}/-/blob/main/data.bin",
        "blame": f"{home}/-/blame/main/{LONG}/{LONG}.py",
        "find file": f"{home}/-/find_file/main",
        "contributors": f"{home}/-/graphs/main",
        "commits": f"{home}/-/commits",
        "commit": f"{home}/-/commit/main",
        "branches": f"{home}/-/branches",
        "new branch": f"{home}/-/branches/new",
        "branch to delete": f"{home}/-/branches/{LONG}/delete",
        "repository tags": f"{home}/-/tags",
        "new tag": f"{home}/-/tags/new",
        "tag": f"{home}/-/tags/{LONG}/v1",
        "releases": f"{home}/-/releases",
        "new release": f"{home}/-/releases/new",
        "release": f"{home}/-/releases/{LONG}/v1",
        "edit release": f"{home}/-/releases/{LONG}/v1/edit",
        "tag to delete": f"{home}/-/tags/{LONG}/v1/delete",
        "compare": f"{home}/-/compare",
        "comparison": f"{home}/-/compare/{LONG}/v1...main",
        "new project without code": f"/{empty.path_with_namespace}",
        "security": f"{home}/-/security/dashboard",
        "upload report": f"{home}/-/security/reports/new",
        "environments": f"{home}/-/environments",
        "new environment": f"{home}/-/environments/new",
        "issues": f"{home}/-/issues",
        "new issue": f"{home}/-/issues/new",
        "issue": f"{home}/-/issues/1",
        "edit issue": f"{home}/-/issues/1/edit",
        "milestones": f"{home}/-/milestones",
        "labels": f"{home}/-/labels",
        "new label": f"{home}/-/labels/new",
        "milestones of a group": f"/groups/{home.strip('/').rpartition('/')[0]}/-/milestones",
        "milestone": f"{home}/-/milestones/1",
        "edit milestone": f"{home}/-/milestones/1/edit",
        "nothing found": "/dashboard/projects?search=zzz",
        "tokens": "/-/profile/personal_access_tokens",
        "profile": "/paula",
        "missing": "/none/none",
    }


def with_changes_of_variables(page, addresses):
    """The addresses, with those of the pages that change the first variable of the group."""
    page.goto(addresses["group variables"])
    words = ("edit", "delete")
    found = {word: page.locator(f'a[href$="/{word}"]').first.get_attribute("href") for word in words}
    return addresses | {f"{word} variable": address for word, address in found.items()}


@pytest.fixture(scope="module")
def administrator(chromium, service):
    """The cookies of the administrator after signing in."""
    context = chromium.new_context(base_url=service.url)
    page = context.new_page()
    page.goto("/users/sign_in")
    sign_in(page, "root", ROOT_PASSWORD)
    page.wait_for_url("**/")
    state = context.storage_state()
    context.close()
    return state


def test_pages_fit_a_small_screen_and_controls_have_names(visit, signed_in, administrator, addresses):
    page = visit("/", state=signed_in, width=400)
    addresses = with_changes_of_variables(page, addresses)
    wider, unnamed, twice, unclear = {}, {}, {}, {}

    for title, address in (addresses | ADMINISTRATION).items():
        if title == "administration":
            page = visit(address, state=administrator, width=400)
        page.goto(address)
        wider[title] = page.evaluate(WIDER)
        unnamed[title] = page.evaluate(UNNAMED)
        twice[title] = page.evaluate(TWICE)
        unclear[title] = (page.get_by_role("main").count(), page.get_by_role("heading", level=1).count())

    assert {title: by for title, by in wider.items() if by > 0} == {}
    assert {title: found for title, found in unnamed.items() if found} == {}
    assert {title: found for title, found in twice.items() if found} == {}
    assert {title: found for title, found in unclear.items() if found != (1, 1)} == {}


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
def test_every_page_passes_axe(scheme, visit, signed_in, administrator, addresses):
    page = visit("/", state=signed_in, color_scheme=scheme)
    axe = (npm.installed(f"axe-core-{AXE}", f"axe-core@{AXE}") / "axe-core" / "axe.min.js").read_text()
    found = {}

    for title, address in (with_changes_of_variables(page, addresses) | ADMINISTRATION).items():
        if title == "administration":
            page = visit(address, state=administrator, color_scheme=scheme)
        page.goto(address)
        page.evaluate(axe)
        found[title] = page.evaluate(VIOLATIONS)

    assert {title: violations for title, violations in found.items() if violations} == {}


@pytest.mark.parametrize("width", [400, 1400])
def test_the_api_page_shows_operations(width, visit):
    page = visit("/api/docs", width=width)

    expect(page.locator(".opblock-tag-section").nth(20)).to_be_visible()
    page.locator('[data-tag="variables"]').click()
    expect(page.locator('[data-path="/api/v4/projects/{project}/variables"]')).to_have_count(2)
    assert page.evaluate(WIDER) <= 0


def test_without_scripts_the_api_page_links_to_the_document(visit):
    page = visit("/api/docs", java_script_enabled=False)

    expect(page.get_by_role("link", name="/api/v4/openapi.json")).to_be_visible()
