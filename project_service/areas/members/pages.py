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


def register(kind: str, prefix: str, reads: Ability, administers: Ability) -> None:  # noqa: C901  # eight short views
    """Register the pages of projects or of groups."""
    here = f"{prefix}/<path:{kind}>/-/{kind}_members"

    @pages.get(here, endpoint=f"list_{kind}_members")
    @pages.signed_in
    @pages.allow(reads)
    def list_members(subject: ProjectOrGroup) -> Any:
        """Show the members of a place."""
        return _page(subject, kind, administers, _form(kind))

    @pages.post(here, endpoint=f"create_{kind}_member")
    @pages.signed_in
    @pages.allow(administers)
    def create_member(subject: ProjectOrGroup) -> Any:
        """Add a member."""
        form = _form(kind)

        def add() -> None:
            user = user_by((form.username.data or "").strip())
            if user is None:
                raise Invalid(username="belongs to no user")
            service.add_member(
                caller(), subject, user, access_level=form.access_level.data, expires_at=form.expires_at.data
            )

        if form.accepted(add):
            return redirect(_address(kind, subject))
        return _page(subject, kind, administers, form), 422

    @pages.get(f"{here}/<int:user_id>/edit", endpoint=f"edit_{kind}_member")
    @pages.signed_in
    @pages.allow(administers)
    def edit_member(subject: ProjectOrGroup, user_id: int) -> Any:
        """Show the form of a membership."""
        member = queries.find_member(subject, user_id)
        form = RoleForm(obj=member)
        form.access_level.choices = ASSIGNABLE_ROLES[kind]
        return render_template(
            "members/edit.html", subject=subject, kind=kind, member=member, form=form, **{kind: subject}
        )

    @pages.post(f"{here}/<int:user_id>/edit", endpoint=f"update_{kind}_member")
    @pages.signed_in
    @pages.allow(administers)
    def update_member(subject: ProjectOrGroup, user_id: int) -> Any:
        """Change the role or the expiry date of a member."""
        member = queries.find_member(subject, user_id)
        form = RoleForm()
        form.access_level.choices = ASSIGNABLE_ROLES[kind]
        changes = {"access_level": form.access_level.data, "expires_at": form.expires_at.data, "keeps_expiry": False}
        if form.accepted(lambda: service.update_member(caller(), subject, member, **changes)):
            return redirect(_address(kind, subject))
        return render_template(
            "members/edit.html", subject=subject, kind=kind, member=member, form=form, **{kind: subject}
        ), 422

    @pages.get(f"{here}/<int:user_id>/remove", endpoint=f"ask_remove_{kind}_member")
    @pages.signed_in
    @pages.allow(reads)
    def ask_remove_member(subject: ProjectOrGroup, user_id: int) -> Any:
        """Ask before a member is removed."""
        leaving = _judge_removal(subject, user_id)
        member = queries.find_member(subject, user_id)
        return confirmation(
            title="Leave" if leaving else "Remove member",
            question=f"Leave {subject.full_path}?"
            if leaving
            else f"Remove {member.user.name} from {subject.full_path}?",
            button="Leave" if leaving else "Remove member",
            back=_address(kind, subject),
            **{kind: subject},
        )

    @pages.post(f"{here}/<int:user_id>/remove", endpoint=f"delete_{kind}_member")
    @pages.signed_in
    @pages.allow(reads)
    def delete_member(subject: ProjectOrGroup, user_id: int) -> Any:
        """Remove a member, or leave."""
        leaving = _judge_removal(subject, user_id)
        service.remove_member(caller(), subject, queries.find_member(subject, user_id))
        return redirect(url_for("project_pages.show_dashboard") if leaving else _address(kind, subject))

    def _judge_removal(subject: ProjectOrGroup, user_id: int) -> bool:
        """Return whether the caller leaves; removing another member needs the ability ``administers``."""
        leaving = user_id == caller().user_id
        if not leaving:
            judge(caller(), administers, subject)
        return leaving


def _address(kind: str, subject: ProjectOrGroup) -> str:
    return f"{'/groups' if kind == 'group' else ''}/{subject.full_path}/-/{kind}_members"


def _page(subject: ProjectOrGroup, kind: str, administers: Ability, form: MemberForm) -> str:
    search = request.args.get("search", "")
    page = read_page(queries.all_members_of(subject, query=search), request.args.get("page"))
    return render_template(
        "members/list.html",
        subject=subject,
        kind=kind,
        here=_address(kind, subject),
        form=form if allowed(caller(), administers, subject) else None,
        page=page,
        bots=bots_among(member.user_id for member in page.rows),
        search=search,
        role=Role,
        **{kind: subject},
    )


def _form(kind: str) -> MemberForm:
    form = MemberForm()
    form.access_level.choices = ASSIGNABLE_ROLES[kind]
    return form


navigation.add(navigation.NavigationEntry("Members", "/-/project_members", 80, Ability.READ_PROJECT))
register("project", "", Ability.READ_PROJECT, Ability.ADMIN_PROJECT_MEMBERS)
register("group", "/groups", Ability.READ_GROUP, Ability.ADMIN_GROUP)
navigation.add(navigation.NavigationEntry("Members", "/-/group_members", 80, Ability.READ_GROUP), "group")
