"""The pages of milestones of projects and groups."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed, judge
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.areas.milestones import queries
from project_service.areas.milestones.forms import MilestoneForm
from project_service.domain import page_paths
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.tracker import milestone_rules
from project_service.domain.tracker.milestones import Milestone, find_milestone_by_iid
from project_service.domain.tracker.schemas import milestone_path
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("milestone_pages", __name__)
navigation.add(navigation.NavigationEntry("Milestones", "/-/milestones", 52, Ability.READ_MILESTONES))
navigation.add(navigation.NavigationEntry("Milestones", "/-/milestones", 25, Ability.READ_GROUP), "group")

ProjectOrGroup = Project | Group

OF_PROJECT = "/<path:project>/-/milestones"
OF_GROUP = "/groups/<path:group>/-/milestones"
ONE = f"{OF_PROJECT}/<int:iid>"
ONE_OF_GROUP = f"{OF_GROUP}/<int:iid>"
TABS = {"active": "Open", "closed": "Closed", "all": "All"}


@pages.get(OF_PROJECT, endpoint="list_milestones")
@pages.get(OF_GROUP, endpoint="list_group_milestones")
@pages.allow(project=Ability.READ_MILESTONES, group=Ability.READ_GROUP)
def list_milestones(owner: ProjectOrGroup) -> ResponseReturnValue:
    """Show the milestones of a project or a group, with those of the groups above."""
    state = request.args.get("state", "active")
    state = state if state in TABS else "active"
    matching = queries.milestones_matching(caller(), owner, state=state, include_ancestors=True)
    page = read_page(matching, request.args.get("page"))
    return _render("list", owner, page=page, state=state, tabs=TABS)


@pages.get(f"{OF_PROJECT}/new", endpoint="new_milestone")
@pages.get(f"{OF_GROUP}/new", endpoint="new_group_milestone")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_MILESTONES, group=Ability.ADMIN_GROUP_MILESTONES)
def new_milestone(owner: ProjectOrGroup) -> ResponseReturnValue:
    """Show the form for a new milestone."""
    return _render("edit", owner, milestone=None, form=MilestoneForm())


@pages.post(f"{OF_PROJECT}/new", endpoint="create_milestone")
@pages.post(f"{OF_GROUP}/new", endpoint="create_group_milestone")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_MILESTONES, group=Ability.ADMIN_GROUP_MILESTONES)
def create_milestone(owner: ProjectOrGroup) -> ResponseReturnValue:
    """Create a milestone."""
    form = MilestoneForm()
    user = current_user()
    if accepted := form.accepted(lambda: milestone_rules.create_milestone(user, owner, **_fields(form))):
        return redirect(milestone_path(accepted.result))
    return _render("edit", owner, milestone=None, form=form), 422


@pages.get(ONE, endpoint="show_milestone")
@pages.get(ONE_OF_GROUP, endpoint="show_group_milestone")
@pages.allow(project=Ability.READ_MILESTONES, group=Ability.READ_GROUP)
def show_milestone(owner: ProjectOrGroup, iid: int) -> ResponseReturnValue:
    """Show one milestone."""
    milestone = find_milestone_by_iid(owner, iid)
    if isinstance(owner, Project):
        text_references.prepare(caller(), owner, [milestone.description])
    return _render("show", owner, milestone=milestone, form=Form(), may_promote=_may_promote(milestone))


@pages.get(f"{ONE}/edit", endpoint="edit_milestone")
@pages.get(f"{ONE_OF_GROUP}/edit", endpoint="edit_group_milestone")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_MILESTONES, group=Ability.ADMIN_GROUP_MILESTONES)
def edit_milestone(owner: ProjectOrGroup, iid: int) -> ResponseReturnValue:
    """Show the form of one milestone."""
    milestone = find_milestone_by_iid(owner, iid)
    return _render("edit", owner, milestone=milestone, form=MilestoneForm(obj=milestone))


@pages.post(f"{ONE}/edit", endpoint="update_milestone")
@pages.post(f"{ONE_OF_GROUP}/edit", endpoint="update_group_milestone")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_MILESTONES, group=Ability.ADMIN_GROUP_MILESTONES)
def update_milestone(owner: ProjectOrGroup, iid: int) -> ResponseReturnValue:
    """Change a milestone."""
    milestone, form = find_milestone_by_iid(owner, iid), MilestoneForm()
    if form.accepted(lambda: milestone_rules.update_milestone(current_user(), milestone, **_fields(form))):
        return redirect(milestone_path(milestone))
    return _render("edit", owner, milestone=milestone, form=form), 422


@pages.post(f"{ONE}/state", endpoint="change_state")
@pages.post(f"{ONE_OF_GROUP}/state", endpoint="change_group_state")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_MILESTONES, group=Ability.ADMIN_GROUP_MILESTONES)
def change_state(owner: ProjectOrGroup, iid: int) -> ResponseReturnValue:
    """Close or activate a milestone."""
    event = "close" if request.form.get("state_event") == "close" else "activate"
    milestone = milestone_rules.update_milestone(current_user(), find_milestone_by_iid(owner, iid), state_event=event)
    return redirect(milestone_path(milestone))


@pages.get(f"{ONE}/delete", endpoint="ask_delete_milestone")
@pages.get(f"{ONE_OF_GROUP}/delete", endpoint="ask_delete_group_milestone")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_MILESTONES, group=Ability.ADMIN_GROUP_MILESTONES)
def ask_delete_milestone(owner: ProjectOrGroup, iid: int) -> ResponseReturnValue:
    """Ask before a milestone is deleted."""
    milestone = find_milestone_by_iid(owner, iid)
    return confirmation(
        title="Delete milestone",
        question=f"Delete the milestone {milestone.title}? Its issues stay.",
        button="Delete milestone",
        back=milestone_path(milestone),
        **{_kind(owner): owner},
    )


@pages.post(f"{ONE}/delete", endpoint="delete_milestone")
@pages.post(f"{ONE_OF_GROUP}/delete", endpoint="delete_group_milestone")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_MILESTONES, group=Ability.ADMIN_GROUP_MILESTONES)
def delete_milestone(owner: ProjectOrGroup, iid: int) -> ResponseReturnValue:
    """Delete a milestone."""
    milestone_rules.delete_milestone(current_user(), find_milestone_by_iid(owner, iid))
    return redirect(_list_address(owner))


@pages.get(f"{ONE}/promote")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def ask_promote_milestone(project: Project, iid: int) -> ResponseReturnValue:
    """Ask before a milestone of the group takes the place of the project's one."""
    milestone = find_milestone_by_iid(project, iid)
    judge(caller(), Ability.ADMIN_GROUP_MILESTONES, project.namespace)
    return confirmation(
        title="Promote milestone",
        question=f"Make {milestone.title} a milestone of the group {project.namespace.full_path}? Milestones of this"
        " title in other projects of the group become part of it. This cannot be undone.",
        button="Promote milestone",
        back=milestone_path(milestone),
        project=project,
    )


@pages.post(f"{ONE}/promote")
@pages.signed_in
@pages.allow(Ability.ADMIN_MILESTONES)
def promote_milestone(project: Project, iid: int) -> ResponseReturnValue:
    """Make a milestone of the group of one of the project."""
    judge(caller(), Ability.ADMIN_GROUP_MILESTONES, project.namespace)
    promoted = milestone_rules.promote_milestone(find_milestone_by_iid(project, iid))
    flash(f"{promoted.title} is a milestone of the group now.")
    return redirect(milestone_path(promoted))


def _may_promote(milestone: Milestone) -> bool:
    project = milestone.project
    if project is None or not isinstance(project.namespace, Group):
        return False
    may_change = allowed(caller(), Ability.ADMIN_MILESTONES, project)
    return may_change and allowed(caller(), Ability.ADMIN_GROUP_MILESTONES, project.namespace)


def _render(name: str, owner: ProjectOrGroup, **values: Any) -> str:
    kind = _kind(owner)
    ability = Ability.ADMIN_MILESTONES if kind == "project" else Ability.ADMIN_GROUP_MILESTONES
    return render_template(
        f"milestones/{name}.html",
        owner=owner,
        kind=kind,
        here=_list_address(owner),
        may_admin=allowed(caller(), ability, owner),
        **{kind: owner},
        **values,
    )


def _kind(owner: ProjectOrGroup) -> str:
    return "project" if isinstance(owner, Project) else "group"


def _list_address(owner: ProjectOrGroup) -> str:
    return f"{page_paths.base_of(owner)}/-/milestones"


def _fields(form: MilestoneForm) -> dict[str, Any]:
    return {
        "title": (form.title.data or "").strip(),
        "description": (form.description.data or "").replace("\r\n", "\n"),
        "start_date": form.start_date.data,
        "due_date": form.due_date.data,
    }
