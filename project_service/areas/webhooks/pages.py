"""Pages of the web hooks of a project (webhooks reference, section 15)."""

from __future__ import annotations

import json
from typing import Any

from flask import flash, redirect, render_template, request, url_for

from project_service.access import navigation
from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.areas.webhooks import queries, samples, service
from project_service.areas.webhooks.forms import OFFERED, HookForm, form_of
from project_service.areas.webhooks.logs import shown_url
from project_service.areas.webhooks.models import WebHook
from project_service.areas.webhooks.requests import HookResponse
from project_service.domain.projects import Project
from project_service.kit.http.errors import Unprocessable
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("web_hook_pages", __name__)
HOOKS = "/<path:project>/-/hooks"
HOOK = f"{HOOKS}/<int:hook_id>"
PER_PAGE = 20
FILTERS = {"successful": "Successful", "client_failure": "Refused (4xx)", "server_failure": "Failed (5xx, no answer)"}

navigation.add(navigation.NavigationEntry("Webhooks", "/-/hooks", 87, Ability.ADMIN_PROJECT))


@pages.get(HOOKS)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def list_hooks(project: Project) -> Any:
    """Show the hooks of a project."""
    page = read_page(queries.hooks_of(project), request.args.get("page"), PER_PAGE)
    return render_template("webhooks/list.html", project=project, hooks=page, offered=OFFERED, shown_url=shown_url)


@pages.get(f"{HOOKS}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def new_hook(project: Project) -> Any:
    """Show the form of a new hook."""
    return _form(project, HookForm(formdata=None))


@pages.post(HOOKS)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def create_hook(project: Project) -> Any:
    """Create a hook."""
    form = HookForm()
    created = form.accepted(lambda: service.create_hook(project, **form.fields()))
    if created is None:
        return _form(project, form), 422
    flash("Webhook created")
    return redirect(_address(project, created.result.id))


@pages.get(HOOK)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def show_hook(project: Project, hook_id: int) -> Any:
    """Show a hook: its form, and what was sent to it."""
    hook = queries.find_hook(project, hook_id)
    return _form(project, form_of(hook), hook)


@pages.post(HOOK)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def update_hook(project: Project, hook_id: int) -> Any:
    """Change a hook."""
    hook, form = queries.find_hook(project, hook_id), HookForm()
    if not form.accepted(lambda: service.update_hook(project, hook, **form.fields())):
        return _form(project, form, queries.find_hook(project, hook_id)), 422
    flash("Webhook updated")
    return redirect(_address(project, hook_id))


@pages.get(f"{HOOK}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def ask_delete_hook(project: Project, hook_id: int) -> Any:
    """Ask before a hook is deleted."""
    queries.find_hook(project, hook_id)
    question = "Are you sure you want to delete this webhook? Its log and the events that wait for it are deleted, too."
    back = _address(project, hook_id)
    return confirmation("Delete webhook", question, "Delete webhook", back, project=project)


@pages.post(f"{HOOK}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def delete_hook(project: Project, hook_id: int) -> Any:
    """Delete a hook."""
    service.delete_hook(project, queries.find_hook(project, hook_id))
    flash("Webhook deleted")
    return redirect(url_for("web_hook_pages.list_hooks", project=project.full_path))


@pages.post(f"{HOOK}/enable")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def enable_hook(project: Project, hook_id: int) -> Any:
    """End the disabling of a hook."""
    service.enable_hook(project, queries.find_hook(project, hook_id))
    flash("Webhook enabled")
    return redirect(_address(project, hook_id))


@pages.post(f"{HOOK}/test")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def test_hook(project: Project, hook_id: int) -> Any:
    """Send an event of a kind now."""
    hook, flag = queries.find_hook(project, hook_id), request.form.get("trigger", "")
    service.check_rate(caller(), service.TESTS, project)
    try:
        _tell(service.test_hook(project, hook, flag if flag in OFFERED else "push_events"))
    except Unprocessable as error:
        flash(f"Hook execution failed: {error.message}")
    return redirect(_address(project, hook_id))


@pages.get(f"{HOOK}/events/<int:log_id>")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def show_attempt(project: Project, hook_id: int, log_id: int) -> Any:
    """Show request and answer of an attempt."""
    hook = queries.find_hook(project, hook_id)
    attempt = queries.find_attempt(hook, log_id)
    body = json.dumps(queries.request_data(attempt), indent=2, ensure_ascii=False)
    return render_template(
        "webhooks/attempt.html", project=project, hook=hook, attempt=attempt, body=body, form=Form(formdata=None)
    )


@pages.post(f"{HOOK}/events/<int:log_id>/resend")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def resend_attempt(project: Project, hook_id: int, log_id: int) -> Any:
    """Repeat an attempt."""
    hook = queries.find_hook(project, hook_id)
    attempt = queries.find_attempt(hook, log_id)
    service.check_rate(caller(), service.REPETITIONS, project)
    try:
        _tell(service.resend(hook, attempt))
    except Unprocessable as error:
        flash(str(error.message))
    return redirect(_address(project, hook_id))


def _tell(response: HookResponse) -> None:
    if response.error is not None:
        flash(f"Hook execution failed: {response.error}")
    elif response.is_success:
        flash(f"Hook executed successfully: HTTP {response.status}")
    else:
        flash(f"Hook executed successfully but returned HTTP {response.status} {response.text[:500]}")


def _tests() -> dict[str, str]:
    return {flag: text for flag, text in OFFERED.items() if samples.can_be_tested(flag)}


def _form(project: Project, form: HookForm, hook: WebHook | None = None) -> str:
    status = request.args.get("status", "")
    attempts = None
    if hook is not None:
        matching = queries.attempts_of(hook, [status] if status in FILTERS else None)
        attempts = read_page(matching, request.args.get("page"), PER_PAGE)
    return render_template(
        "webhooks/form.html",
        project=project,
        hook=hook,
        form=form,
        attempts=attempts,
        tests=_tests(),
        triggers=[form[name] for name in OFFERED],
        filters=FILTERS,
        status=status,
    )


def _address(project: Project, hook_id: int) -> str:
    return url_for("web_hook_pages.show_hook", project=project.full_path, hook_id=hook_id)
