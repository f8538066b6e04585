"""The members pages of groups and projects."""

from __future__ import annotations

from typing import Any

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed, judge
from project_service.access.api import json_response
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.members import importing, invitations, queries, service
from project_service.areas.members.forms import (
    ASSIGNABLE_ROLES,
    ROLE_TEXTS,
    ImportMembersForm,
    MemberForm,
    RoleForm,
)
from project_service.domain import page_paths
from project_service.domain.access_levels import Role
from project_service.domain.accounts.resource_bots import bots_among
from project_service.domain.accounts.users import user_by
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project, project_by
from project_service.kit import mail
from project_service.kit.db.session import db
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
def list_members(subject: ProjectOrGroup) -> ResponseReturnValue:
    """Show the members of a place."""
    return _page(subject, _form(subject))


@pages.post(OF_PROJECT, endpoint="create_project_member")
@pages.post(OF_GROUP, endpoint="create_group_member")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
def create_member(subject: ProjectOrGroup) -> ResponseReturnValue:
    """Add a member."""
    form = _form(subject)

    if accepted := form.accepted(lambda: _add(subject, form)):
        flash(accepted.result)
        return redirect(_address(subject))
    return _page(subject, form), 422


@pages.get(f"{OF_PROJECT}/<int:user_id>/edit", endpoint="edit_project_member")
@pages.get(f"{OF_GROUP}/<int:user_id>/edit", endpoint="edit_group_member")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
def edit_member(subject: ProjectOrGroup, user_id: int) -> ResponseReturnValue:
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
def update_member(subject: ProjectOrGroup, user_id: int) -> ResponseReturnValue:
    """Change the role or the expiry date of a member."""
    member = queries.find_member(subject, user_id)
    form = RoleForm()
    form.access_level.choices = ASSIGNABLE_ROLES[_kind(subject)]
    changes = {"access_level": form.access_level.data, "expires_at": form.expires_at.data, "keeps_expiry": False}
    if form.accepted(lambda: service.update_member(caller(), subject, member, **changes)):
        flash(f"The role of {member.user.name} was saved.")
        return redirect(_address(subject))
    return render_template(
        "members/edit.html", subject=subject, kind=_kind(subject), member=member, form=form, **_named(subject)
    ), 422


@pages.get(f"{OF_PROJECT}/<int:user_id>/remove", endpoint="ask_remove_project_member")
@pages.get(f"{OF_GROUP}/<int:user_id>/remove", endpoint="ask_remove_group_member")
@pages.signed_in
@pages.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
def ask_remove_member(subject: ProjectOrGroup, user_id: int) -> ResponseReturnValue:
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
def delete_member(subject: ProjectOrGroup, user_id: int) -> ResponseReturnValue:
    """Remove a member, or leave."""
    leaving = _judge_removal(subject, user_id)
    member = queries.find_member(subject, user_id)
    service.remove_member(caller(), subject, member)
    flash(f"You have left {subject.full_path}." if leaving else f"{member.user.name} was removed.")
    return redirect(url_for("home_pages.show_home") if leaving else _address(subject))


@pages.get(f"{OF_PROJECT}/suggestions", endpoint="suggest_project_members")
@pages.get(f"{OF_GROUP}/suggestions", endpoint="suggest_group_members")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
def suggest_members(subject: ProjectOrGroup) -> Response:
    """Return users who could be added, for the field that suggests them while a name is typed."""
    people = queries.suggested_users(subject, request.args.get("search", ""))
    return json_response([{"username": username, "name": name} for username, name in people])


@pages.get(f"{OF_PROJECT}/invitations/<int:invitation_id>/revoke", endpoint="ask_revoke_project_invitation")
@pages.get(f"{OF_GROUP}/invitations/<int:invitation_id>/revoke", endpoint="ask_revoke_group_invitation")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
def ask_revoke_invitation(subject: ProjectOrGroup, invitation_id: int) -> ResponseReturnValue:
    """Ask before an invitation is revoked."""
    invitation = invitations.find_invitation(subject, invitation_id)
    return confirmation(
        title="Revoke invitation",
        question=f"Revoke the invitation of {invitation.email}? Its link will not work any more.",
        button="Revoke invitation",
        back=_address(subject),
        **_named(subject),
    )


@pages.post(f"{OF_PROJECT}/invitations/<int:invitation_id>/revoke", endpoint="revoke_project_invitation")
@pages.post(f"{OF_GROUP}/invitations/<int:invitation_id>/revoke", endpoint="revoke_group_invitation")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
def revoke_invitation(subject: ProjectOrGroup, invitation_id: int) -> ResponseReturnValue:
    """Revoke an invitation."""
    invitations.revoke(subject, invitation_id)
    flash("The invitation was revoked.")
    return redirect(_address(subject))


def _add(subject: ProjectOrGroup, form: MemberForm) -> str:
    """Add the user of a form, or invite an address that no user shows; return what was done."""
    text = (form.username.data or "").strip()
    membership = {"access_level": form.access_level.data, "expires_at": form.expires_at.data}
    user = user_by(text.removeprefix("@")) or (invitations.user_with_public_email(text) if "@" in text else None)
    if user is not None:
        service.add_member(caller(), subject, user, **membership)
        return f"{user.name} was added as {Role(membership['access_level']).title}."
    if "@" not in text:
        raise Invalid(username="belongs to no user")
    invitation = invitations.invite(caller(), current_user(), subject, email=text, **membership)
    return f"An invitation was mailed to {invitation.email}."


@pages.post(f"{OF_PROJECT}/import")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT_MEMBERS)
def import_project_members(project: Project) -> ResponseReturnValue:
    """Add the members of another project."""
    form = ImportMembersForm()

    def import_from() -> importing.ImportedMembers:
        source = project_by((form.source.data or "").strip().strip("/"))
        if source is None or not allowed(caller(), Ability.READ_PROJECT, source):
            raise Invalid(source="is not a project that you see")
        if not allowed(caller(), Ability.ADMIN_PROJECT_MEMBERS, source):
            raise Invalid(source="is a project of which you are not a maintainer")
        return importing.import_members(caller(), project, source)

    if accepted := form.accepted(import_from):
        done = accepted.result
        flash(f"{done.added} member{'' if done.added == 1 else 's'} added.")
        if done.left_out:
            flash(f"Not added, since they have a higher role by a group: {', '.join(done.left_out)}.", "warning")
        return redirect(_address(project))
    return _page(project, _form(project), form), 422


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
    return f"{page_paths.base_of(subject)}/-/{_kind(subject)}_members"


def _page(subject: ProjectOrGroup, form: MemberForm, import_form: ImportMembersForm | None = None) -> str:
    search, kind = request.args.get("search", ""), _kind(subject)
    is_admin = allowed(caller(), service.administering(subject), subject)
    page = read_page(queries.all_members_of(subject, query=search), request.args.get("page"))
    return render_template(
        "members/list.html",
        subject=subject,
        kind=kind,
        here=_address(subject),
        form=form if is_admin else None,
        import_form=(import_form or ImportMembersForm(formdata=None)) if is_admin and kind == "project" else None,
        invitations=list(db.session.scalars(invitations.invitations_to(subject))) if is_admin else [],
        mails=mail.is_on(),
        role_texts={Role(int(level)): ROLE_TEXTS[Role(int(level))] for level in ASSIGNABLE_ROLES[kind]},
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
