"""The pages of milestones."""

from __future__ import annotations

from typing import Any

from flask import redirect, render_template, request

from project_service.access import navigation, text_references
from project_service.access.abilities import Ability
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.milestones import queries
from project_service.areas.milestones.forms import MilestoneForm
from project_service.domain.projects import Project
from project_service.domain.tracker import milestone_rules
from project_service.domain.tracker.milestones import find_milestone_by_iid
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("milestone_pages", __name__)
navigation.add(navigation.NavigationEntry("Milestones", "/-/milestones", 25, Ability.READ_MILESTONES))

BASE_PATH = "/<path:project>/-/milestones"
ONE = f"{BASE_PATH}/<int:iid>"
TABS = {"active": "Open", "closed": "Closed", "all": "All"}


@pages.get(BASE_PATH)
@pages.allow(Ability.READ_MILESTONES)
def list_milestones(project: Project) -> Any:
    """Show the milestones of a project."""
    state = request.args.get("state", "active")
    state = state if state in TABS else "active"
    page = read_page(queries.milestones_matching(project, state=state), request.args.get("page"))
    return render_template("milestones/list.html", project=project, page=page, state=state, tabs=TABS)


@pages.get(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def new_milestone(project: Project) -> Any:
    """Show the form for a new milestone."""
    return render_template("milestones/edit.html", project=project, milestone=None, form=MilestoneForm())


@pages.post(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def create_milestone(project: Project) -> Any:
    """Create a milestone."""
    form = MilestoneForm()
    user = current_user()
    if accepted := form.accepted(lambda: milestone_rules.create_milestone(user, project, **_fields(form))):
        return redirect(_address(project, accepted.result.iid))
    return render_template("milestones/edit.html", project=project, milestone=None, form=form), 422


@pages.get(ONE)
@pages.allow(Ability.READ_MILESTONES)
def show_milestone(project: Project, iid: int) -> Any:
    """Show one milestone."""
    milestone = find_milestone_by_iid(project, iid)
    text_references.prepare(caller(), project, [milestone.description])
    return render_template("milestones/show.html", project=project, milestone=milestone, form=Form())


@pages.get(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def edit_milestone(project: Project, iid: int) -> Any:
    """Show the form of one milestone."""
    milestone = find_milestone_by_iid(project, iid)
    form = MilestoneForm(obj=milestone)
    return render_template("milestones/edit.html", project=project, milestone=milestone, form=form)


@pages.post(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def update_milestone(project: Project, iid: int) -> Any:
    """Change a milestone."""
    milestone, form = find_milestone_by_iid(project, iid), MilestoneForm()
    if form.accepted(lambda: milestone_rules.update_milestone(current_user(), milestone, **_fields(form))):
        return redirect(_address(project, iid))
    return render_template("milestones/edit.html", project=project, milestone=milestone, form=form), 422


@pages.post(f"{ONE}/state")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def change_state(project: Project, iid: int) -> Any:
    """Close or activate a milestone."""
    event = "close" if request.form.get("state_event") == "close" else "activate"
    milestone_rules.update_milestone(current_user(), find_milestone_by_iid(project, iid), state_event=event)
    return redirect(_address(project, iid))


@pages.get(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def ask_delete_milestone(project: Project, iid: int) -> Any:
    """Ask before a milestone is deleted."""
    milestone = find_milestone_by_iid(project, iid)
    return confirmation(
        title="Delete milestone",
        question=f"Delete the milestone {milestone.title}? Its issues stay.",
        button="Delete milestone",
        back=_address(project, iid),
        project=project,
    )


@pages.post(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def delete_milestone(project: Project, iid: int) -> Any:
    """Delete a milestone."""
    milestone_rules.delete_milestone(current_user(), find_milestone_by_iid(project, iid))
    return redirect(f"/{project.full_path}/-/milestones")


def _fields(form: MilestoneForm) -> dict[str, Any]:
    return {
        "title": (form.title.data or "").strip(),
        "description": (form.description.data or "").replace("\r\n", "\n"),
        "start_date": form.start_date.data,
        "due_date": form.due_date.data,
    }


def _address(project: Project, iid: int) -> str:
    return f"/{project.full_path}/-/milestones/{iid}"
