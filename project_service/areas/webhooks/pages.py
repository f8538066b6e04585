"""Pages of the web hooks of projects, groups and the instance (webhooks reference, section 15)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.page_parts import navigation, panels
from project_service.access.pages import PageBlueprint
from project_service.areas.webhooks import queries, samples, service
from project_service.areas.webhooks.forms import OF_GROUPS, OF_PROJECTS, PUSHES, SEPARATORS, HookForm, form_of
from project_service.areas.webhooks.logs import shown_url
from project_service.areas.webhooks.models import WebHook
from project_service.areas.webhooks.queries import Owner
from project_service.areas.webhooks.requests import HookResponse
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.kit.http.errors import Unprocessable
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("web_hook_pages", __name__)
PER_PAGE = 20
FILTERS = {"successful": "Successful", "client_failure": "Refused (4xx)", "server_failure": "Failed (5xx, no answer)"}
STATES = {"executable": "Enabled", "temporarily_disabled": "Temporarily disabled", "disabled": "Disabled"}
OF_INSTANCE = "/admin/hooks"
View = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class HookPlace:
    """Where the pages of hooks of one kind of owner are, and what they show."""

    kind: str
    rule: str
    ability: Ability
    layout: str
    title: str
    where: str  # the end of a sentence for an empty list
    offered: Mapping[str, str]
    address: Callable[[Any], str]
    subject: str | None  # the name of the owner in templates

    def values(self, owner: Owner) -> dict[str, Any]:
        """Return what all templates take."""
        subject = {self.subject: owner} if self.subject else {}
        return {"layout": self.layout, "title": self.title, "base": self.address(owner), **subject}


PLACES = (
    HookPlace(
        kind="project",
        rule="/<path:project>/-/hooks",
        ability=Ability.ADMIN_PROJECT,
        layout="project.html",
        title="Webhooks",
        where="in this project: pushes, issues, alerts and more are sent to a URL of yours",
        offered=OF_PROJECTS,
        address=lambda project: f"{page_paths.base_of(project)}/-/hooks",
        subject="project",
    ),
    HookPlace(
        kind="group",
        rule="/groups/<path:group>/-/hooks",
        ability=Ability.ADMIN_GROUP,
        layout="group.html",
        title="Webhooks",
        where="in all projects of this group, and to its members and subgroups",
        offered=OF_GROUPS,
        address=lambda group: f"{page_paths.base_of(group)}/-/hooks",
        subject="group",
    ),
    HookPlace(
        kind="system",
        rule=OF_INSTANCE,
        ability=Ability.ADMINISTER,
        layout="administration.html",
        title="System hooks",
        where="on this server: projects, groups, users and members that are created, changed or removed, and pushes",
        offered=PUSHES,
        address=lambda _owner: OF_INSTANCE,
        subject=None,
    ),
)
navigation.add(navigation.NavigationEntry("Webhooks", "/-/hooks", 87, Ability.ADMIN_PROJECT))
navigation.add(navigation.NavigationEntry("Webhooks", "/-/hooks", 40, Ability.ADMIN_GROUP), "group_settings")
navigation.add(navigation.NavigationEntry("System hooks", OF_INSTANCE, 28, Ability.ADMINISTER), "administration")


def fill_disabled(project: Project) -> dict[str, Any]:
    """Return how many hooks are disabled, for those who may enable them."""
    is_shown = allowed(caller(), Ability.ADMIN_PROJECT, project)
    return {"disabled": queries.disabled_hooks_of(project) if is_shown else 0, "full_path": project.full_path}


panels.add(panels.Panel("project", 1, "webhooks/disabled.html", fill_disabled))


def list_hooks(place: HookPlace, owner: Owner) -> ResponseReturnValue:
    """Show the hooks of an owner."""
    return render_template(
        "webhooks/list.html",
        **place.values(owner),
        hooks=read_page(queries.hooks_of(owner), request.args.get("page"), PER_PAGE),
        offered=place.offered,
        shown_url=shown_url,
        states=STATES,
        where=place.where,
    )


def new_hook(place: HookPlace, owner: Owner) -> ResponseReturnValue:
    """Show the form of a new hook."""
    return _form(place, owner, HookForm(formdata=None))


def create_hook(place: HookPlace, owner: Owner) -> ResponseReturnValue:
    """Create a hook."""
    form = HookForm()
    created = form.accepted(lambda: service.create_hook(owner, **form.fields(place.offered)))
    if created is None:
        return _form(place, owner, form), 422
    flash("Webhook created")
    return redirect(_address(place, owner, created.result.id))


def show_hook(place: HookPlace, owner: Owner, hook_id: int) -> ResponseReturnValue:
    """Show a hook: its form, and what was sent to it."""
    hook = queries.find_hook(owner, hook_id)
    return _form(place, owner, form_of(hook), hook)


def update_hook(place: HookPlace, owner: Owner, hook_id: int) -> ResponseReturnValue:
    """Change a hook."""
    hook, form = queries.find_hook(owner, hook_id), HookForm()

    def update() -> None:
        removed = {name: [key for key in getattr(hook, name) if key not in form.pairs(name)] for name in SEPARATORS}
        service.update_hook(owner, hook, removed=removed, **form.fields(place.offered))

    if not form.accepted(update):
        return _form(place, owner, form, queries.find_hook(owner, hook_id)), 422
    flash("Webhook updated")
    return redirect(_address(place, owner, hook_id))


def ask_delete_hook(place: HookPlace, owner: Owner, hook_id: int) -> str:
    """Ask before a hook is deleted."""
    queries.find_hook(owner, hook_id)
    question = "Are you sure you want to delete this webhook? Its log and the events that wait for it are deleted, too."
    subject = {place.subject: owner} if place.subject else {"base": place.layout}
    back = _address(place, owner, hook_id)
    return confirmation("Delete webhook", question, "Delete webhook", back, **subject)


def delete_hook(place: HookPlace, owner: Owner, hook_id: int) -> ResponseReturnValue:
    """Delete a hook."""
    service.delete_hook(owner, queries.find_hook(owner, hook_id))
    flash("Webhook deleted")
    return redirect(place.address(owner))


def enable_hook(place: HookPlace, owner: Owner, hook_id: int) -> ResponseReturnValue:
    """End the disabling of a hook."""
    service.enable_hook(owner, queries.find_hook(owner, hook_id))
    flash("Webhook enabled")
    return redirect(_address(place, owner, hook_id))


def test_hook(place: HookPlace, owner: Owner, hook_id: int) -> ResponseReturnValue:
    """Send an event of a kind now."""
    hook, flag = queries.find_hook(owner, hook_id), request.form.get("trigger", "")
    service.check_rate(caller(), service.TESTS, owner)
    try:
        _tell(service.test_hook(owner, hook, flag if flag in _tests(place) else next(iter(_tests(place)))))
    except Unprocessable as error:
        flash(f"Hook execution failed: {error.message}")
    return redirect(_address(place, owner, hook_id))


def show_attempt(place: HookPlace, owner: Owner, hook_id: int, log_id: int) -> ResponseReturnValue:
    """Show request and answer of an attempt."""
    hook = queries.find_hook(owner, hook_id)
    attempt = queries.find_attempt(hook, log_id)
    body = json.dumps(queries.request_data(attempt), indent=2, ensure_ascii=False)
    return render_template(
        "webhooks/attempt.html",
        **place.values(owner),
        hook=hook,
        attempt=attempt,
        body=body,
        form=Form(formdata=None),
    )


def resend_attempt(place: HookPlace, owner: Owner, hook_id: int, log_id: int) -> ResponseReturnValue:
    """Repeat an attempt."""
    hook = queries.find_hook(owner, hook_id)
    attempt = queries.find_attempt(hook, log_id)
    service.check_rate(caller(), service.REPETITIONS, owner)
    try:
        _tell(service.resend(hook, attempt))
    except Unprocessable as error:
        flash(str(error.message))
    return redirect(_address(place, owner, hook_id))


VIEWS: tuple[tuple[str, str, View], ...] = (
    ("get", "", list_hooks),
    ("post", "", create_hook),
    ("get", "/new", new_hook),
    ("get", "/<int:hook_id>", show_hook),
    ("post", "/<int:hook_id>", update_hook),
    ("get", "/<int:hook_id>/delete", ask_delete_hook),
    ("post", "/<int:hook_id>/delete", delete_hook),
    ("post", "/<int:hook_id>/enable", enable_hook),
    ("post", "/<int:hook_id>/test", test_hook),
    ("get", "/<int:hook_id>/events/<int:log_id>", show_attempt),
    ("post", "/<int:hook_id>/events/<int:log_id>/resend", resend_attempt),
)


# these resolve the name of a host or send a request
WAITING_VIEWS = (create_hook, update_hook, test_hook, resend_attempt)


def _register(place: HookPlace, method: str, end: str, view: View) -> None:
    def show(*owner: Any, **url: Any) -> Any:
        return view(place, owner[0] if owner else None, **url)

    show.__name__, show.__doc__ = f"{view.__name__}_of_{place.kind}", view.__doc__
    options = {"sends_requests": True} if view in WAITING_VIEWS else {}
    getattr(pages, method)(place.rule + end, **options)(pages.signed_in(pages.allow(place.ability)(show)))


for _place in PLACES:
    for _view in VIEWS:
        _register(_place, *_view)


def _tell(response: HookResponse) -> None:
    if response.error is not None:
        flash(f"Hook execution failed: {response.error}")
    elif response.is_success:
        flash(f"Hook executed successfully: HTTP {response.status}")
    else:
        flash(f"Hook executed successfully but returned HTTP {response.status} {response.text[:500]}")


def _tests(place: HookPlace) -> dict[str, str]:
    if place.kind == "system":
        return {"project_events": "A sample"}
    return {flag: text for flag, text in place.offered.items() if samples.can_be_tested(flag)}


def _form(place: HookPlace, owner: Owner, form: HookForm, hook: WebHook | None = None) -> str:
    status = request.args.get("status", "")
    attempts = None
    if hook is not None:
        matching = queries.attempts_of(hook, [status] if status in FILTERS else None)
        attempts = read_page(matching, request.args.get("page"), PER_PAGE)
    return render_template(
        "webhooks/form.html",
        **place.values(owner),
        hook=hook,
        form=form,
        attempts=attempts,
        tests=_tests(place),
        triggers=[form[name] for name in place.offered],
        filters=FILTERS,
        status=status,
    )


def _address(place: HookPlace, owner: Owner, hook_id: int) -> str:
    return f"{place.address(owner)}/{hook_id}"
