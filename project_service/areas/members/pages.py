"""The members pages of groups and projects."""

from __future__ import annotations

from typing import Any

from flask import redirect, render_template, request, url_for

from project_service.access import navigation
from project_service.access.abilities import Ability, allowed, judge
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.areas.members import queries, service
from project_service.areas.members.forms import ASSIGNABLE_ROLES, MemberForm, RoleForm
from project_service.domain.access_levels import Role
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.resource_bots import bots_among
from project_service.domain.users import user_by
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("member_pages", __name__)

ProjectOrGroup = Project | Group

OF_PROJECT = "/<path:project>/-/project_members"
OF_GROUP = "/groups/<path:group>/-/group_members"


@pages.get(OF_PROJECT, endpoint="list_project_members")
@pages.get(OF_GROUP, endpoint="list_group_members")
@pages.signed_in
@pages.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
def list_members(subject: ProjectOrGroup) -> Any:
    """Show the members of a place."""
    return _page(subject, _form(subject))


@pages.post(OF_PROJECT, endpoint="create_project_member")
@pages.post(OF_GROUP, endpoint="create_group_member")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
def create_member(subject: ProjectOrGroup) -> Any:
    """Add a member."""
    form = _form(subject)

    def add() -> None:
        user = user_by((form.username.data or "").strip())
        if user is None:
            raise Invalid(username="belongs to no user")
        service.add_member(
            caller(), subject, user, access_level=form.access_level.data, expires_at=form.expires_at.data
        )

    if form.accepted(add):
        return redirect(_address(subject))
    return _page(subject, form), 422


@pages.get(f"{OF_PROJECT}/<int:user_id>/edit", endpoint="edit_project_member")
@pages.get(f"{OF_GROUP}/<int:user_id>/edit", endpoint="edit_group_member")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
def edit_member(subject: ProjectOrGroup, user_id: int) -> Any:
    """Show the form of a membership."""
    member = queries.find_member(subject, user_id)
    form = RoleForm(obj=member)
    form.access_level.choices = ASSIGNABLE_ROLES[_kind(subject)]
    return render_template(
        "members/edit.html", subject=subject, kind=_kind(subject), member=member, form=form, **_named(subject)
    )


@pages.post(f"{OF_PROJECT}/<int:user_id>/edit", endpoint="update_project_member")
@pages.post(f"{OF_GROUP}/<int:user_id>/edit", endpoint="update_group_member")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
def update_member(subject: ProjectOrGroup, user_id: int) -> Any:
    """Change the role or the expiry date of a member."""
    member = queries.find_member(subject, user_id)
    form = RoleForm()
    form.access_level.choices = ASSIGNABLE_ROLES[_kind(subject)]
    changes = {"access_level": form.access_level.data, "expires_at": form.expires_at.data, "keeps_expiry": False}
    if form.accepted(lambda: service.update_member(caller(), subject, member, **changes)):
        return redirect(_address(subject))
    return render_template(
        "members/edit.html", subject=subject, kind=_kind(subject), member=member, form=form, **_named(subject)
    ), 422


@pages.get(f"{OF_PROJECT}/<int:user_id>/remove", endpoint="ask_remove_project_member")
@pages.get(f"{OF_GROUP}/<int:user_id>/remove", endpoint="ask_remove_group_member")
@pages.signed_in
@pages.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
def ask_remove_member(subject: ProjectOrGroup, user_id: int) -> Any:
    """Ask before a member is removed."""
    leaving = _judge_removal(subject, user_id)
    member = queries.find_member(subject, user_id)
    return confirmation(
        title="Leave" if leaving else "Remove member",
        question=f"Leave {subject.full_path}?" if leaving else f"Remove {member.user.name} from {subject.full_path}?",
        button="Leave" if leaving else "Remove member",
        back=_address(subject),
        **_named(subject),
    )


@pages.post(f"{OF_PROJECT}/<int:user_id>/remove", endpoint="delete_project_member")
@pages.post(f"{OF_GROUP}/<int:user_id>/remove", endpoint="delete_group_member")
@pages.signed_in
@pages.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
def delete_member(subject: ProjectOrGroup, user_id: int) -> Any:
    """Remove a member, or leave."""
    leaving = _judge_removal(subject, user_id)
    service.remove_member(caller(), subject, queries.find_member(subject, user_id))
    return redirect(url_for("project_pages.show_dashboard") if leaving else _address(subject))


def _judge_removal(subject: ProjectOrGroup, user_id: int) -> bool:
    """Return whether the caller leaves; removing another member needs the ability to administer members."""
    leaving = user_id == caller().user_id
    if not leaving:
        judge(caller(), service.administering(subject), subject)
    return leaving


def _kind(subject: ProjectOrGroup) -> str:
    return "project" if isinstance(subject, Project) else "group"


def _named(subject: ProjectOrGroup) -> dict[str, Any]:
    return {_kind(subject): subject}


def _address(subject: ProjectOrGroup) -> str:
    return f"{'' if isinstance(subject, Project) else '/groups'}/{subject.full_path}/-/{_kind(subject)}_members"


def _page(subject: ProjectOrGroup, form: MemberForm) -> str:
    search = request.args.get("search", "")
    page = read_page(queries.all_members_of(subject, query=search), request.args.get("page"))
    return render_template(
        "members/list.html",
        subject=subject,
        kind=_kind(subject),
        here=_address(subject),
        form=form if allowed(caller(), service.administering(subject), subject) else None,
        page=page,
        bots=bots_among(member.user_id for member in page.rows),
        search=search,
        role=Role,
        **_named(subject),
    )


def _form(subject: ProjectOrGroup) -> MemberForm:
    form = MemberForm()
    form.access_level.choices = ASSIGNABLE_ROLES[_kind(subject)]
    return form


navigation.add(navigation.NavigationEntry("Members", "/-/project_members", 80, Ability.READ_PROJECT))
navigation.add(navigation.NavigationEntry("Members", "/-/group_members", 80, Ability.READ_GROUP), "group")
