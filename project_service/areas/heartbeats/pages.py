"""Pages of heartbeats (heartbeats reference, section 6)."""

from __future__ import annotations

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.heartbeats import queries, service
from project_service.areas.heartbeats.forms import HeartbeatForm, form_of
from project_service.domain.heartbeats.models import DOWN, LATE, NEW, PAUSED, UP
from project_service.domain.heartbeats.pings import expectation
from project_service.domain.heartbeats.schedules import words_of
from project_service.domain.projects import Project
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("heartbeat_pages", __name__)
HEARTBEATS = "/<path:project>/-/heartbeats"
HEARTBEAT = f"{HEARTBEATS}/<int:heartbeat_id>"
PER_PAGE = 50
STATES = {NEW: "Never called", UP: "Up", LATE: "Late", DOWN: "Down", PAUSED: "Paused"}

navigation.add(navigation.NavigationEntry("Heartbeats", "/-/heartbeats", 55, Ability.READ_HEARTBEATS))


@pages.get(HEARTBEATS)
@pages.signed_in
@pages.allow(Ability.READ_HEARTBEATS)
def list_heartbeats(project: Project) -> ResponseReturnValue:
    """Show the heartbeats of a project."""
    page = read_page(queries.heartbeats_of(project), request.args.get("page"), PER_PAGE)
    return render_template(
        "heartbeats/list.html", project=project, heartbeats=page, states=STATES, expectation=expectation
    )


@pages.get(f"{HEARTBEATS}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def new_heartbeat(project: Project) -> ResponseReturnValue:
    """Show the form of a new heartbeat."""
    return render_template("heartbeats/form.html", project=project, heartbeat=None, form=HeartbeatForm(formdata=None))


@pages.post(f"{HEARTBEATS}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def create_heartbeat(project: Project) -> ResponseReturnValue:
    """Create a heartbeat."""
    form = HeartbeatForm()
    created = form.accepted(lambda: service.create_heartbeat(project, **form.fields()))
    if created is None:
        return render_template("heartbeats/form.html", project=project, heartbeat=None, form=form), 422
    flash("Heartbeat created. It waits for its first call.")
    return redirect(_address(project, created.result.id))


@pages.get(HEARTBEAT)
@pages.signed_in
@pages.allow(Ability.READ_HEARTBEATS)
def show_heartbeat(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """Show a heartbeat: its state, how to call it, and its last calls."""
    heartbeat = queries.find_heartbeat(project, heartbeat_id)
    calls = read_page(queries.pings_of(heartbeat), request.args.get("page"), PER_PAGE)
    return render_template(
        "heartbeats/show.html",
        project=project,
        heartbeat=heartbeat,
        calls=calls,
        states=STATES,
        expected=expectation(heartbeat),
        grace=words_of(heartbeat.grace_seconds),
        form=Form(formdata=None),
    )


@pages.get(f"{HEARTBEAT}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def edit_heartbeat(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """Show the form of a heartbeat."""
    heartbeat = queries.find_heartbeat(project, heartbeat_id)
    return render_template("heartbeats/form.html", project=project, heartbeat=heartbeat, form=form_of(heartbeat))


@pages.post(f"{HEARTBEAT}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def update_heartbeat(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """Change a heartbeat."""
    heartbeat, form = queries.find_heartbeat(project, heartbeat_id), HeartbeatForm()
    if not form.accepted(lambda: service.update_heartbeat(project, heartbeat, **form.fields())):
        heartbeat = queries.find_heartbeat(project, heartbeat_id)
        return render_template("heartbeats/form.html", project=project, heartbeat=heartbeat, form=form), 422
    flash("Heartbeat updated")
    return redirect(_address(project, heartbeat_id))


@pages.post(f"{HEARTBEAT}/pause")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def pause_heartbeat(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """Expect no calls until the next one."""
    service.pause_heartbeat(project, queries.find_heartbeat(project, heartbeat_id))
    flash("Heartbeat paused")
    return redirect(_address(project, heartbeat_id))


@pages.post(f"{HEARTBEAT}/resume")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def resume_heartbeat(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """End a pause."""
    service.resume_heartbeat(project, queries.find_heartbeat(project, heartbeat_id))
    flash("Heartbeat resumed")
    return redirect(_address(project, heartbeat_id))


@pages.get(f"{HEARTBEAT}/rotate_key")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def ask_rotate_heartbeat_key(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """Ask before the URL is replaced."""
    name = queries.find_heartbeat(project, heartbeat_id).name
    question = f"Replace the URL of {name}? The present one stops working at once."
    return confirmation("Replace URL", question, "Replace URL", _address(project, heartbeat_id), project=project)


@pages.post(f"{HEARTBEAT}/rotate_key")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def rotate_heartbeat_key(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """Replace the URL to call."""
    service.rotate_key(project, queries.find_heartbeat(project, heartbeat_id))
    flash("The URL was replaced")
    return redirect(_address(project, heartbeat_id))


@pages.get(f"{HEARTBEAT}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def ask_delete_heartbeat(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """Ask before a heartbeat is deleted."""
    name = queries.find_heartbeat(project, heartbeat_id).name
    question = f"Delete the heartbeat {name} with its calls? An alert that it has opened stays."
    back = _address(project, heartbeat_id)
    return confirmation("Delete heartbeat", question, "Delete heartbeat", back, project=project)


@pages.post(f"{HEARTBEAT}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_HEARTBEATS)
def delete_heartbeat(project: Project, heartbeat_id: int) -> ResponseReturnValue:
    """Delete a heartbeat."""
    service.delete_heartbeat(project, queries.find_heartbeat(project, heartbeat_id))
    flash("Heartbeat deleted")
    return redirect(url_for("heartbeat_pages.list_heartbeats", project=project.full_path))


def _address(project: Project, heartbeat_id: int) -> str:
    return url_for("heartbeat_pages.show_heartbeat", project=project.full_path, heartbeat_id=heartbeat_id)
