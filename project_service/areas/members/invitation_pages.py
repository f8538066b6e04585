"""The page that the link of an invitation opens: accept it, with the account one has or a new one."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller, current_user
from project_service.access.pages import SIGN_IN, PageBlueprint
from project_service.areas.members import invitations
from project_service.areas.members.forms import InvitedUserForm
from project_service.areas.members.models import Invitation
from project_service.domain.access_levels import Role
from project_service.domain.rate_limits import HOUR_SECONDS, RateLimit
from project_service.kit.http.clients.client_networks import limited_network
from project_service.kit.http.errors import ServiceError
from project_service.kit.http.forms import Form

pages = PageBlueprint("invitation_pages", __name__)
ONE = "/-/invitations/<invitation_token>"
ATTEMPTS = RateLimit("invitations:attempts", 20, HOUR_SECONDS)  # of one client to accept


class InvitationGone(ServiceError):
    """The invitation of a link cannot be accepted any more."""

    status = 404
    page_text = ("The invitation is not valid", f"{invitations.GONE} Ask for another one.")


@pages.get(ONE)
@pages.allow(Ability.ANYBODY)
def show_invitation(invitation_token: str) -> ResponseReturnValue:
    """Show who invites to what; looking at it does not use up the link."""
    return _page(invitation_token, _found(invitation_token), InvitedUserForm())


@pages.post(ONE)
@pages.allow(Ability.ANYBODY)
def accept_invitation(invitation_token: str) -> ResponseReturnValue:
    """Accept an invitation: as the signed-in user, or by creating an account."""
    invitation = _found(invitation_token)
    ATTEMPTS.check(limited_network(request.remote_addr))
    full_path = invitation.place.full_path
    form: Any = Form() if caller().user_id is not None else InvitedUserForm()

    def accept() -> None:
        if caller().user_id is not None:
            invitations.accept(invitation, current_user())
            return
        fields = {name: form[name].data or "" for name in ("name", "username", "password")}
        invitations.accept_as_new_user(invitation, **fields)

    if not form.accepted(accept):
        return _page(invitation_token, _found(invitation_token), form), 422
    if caller().user_id is None:
        flash("Your account was created. Sign in with it.")
        return redirect(url_for(SIGN_IN, next=f"/{full_path}"))
    flash(f"You are a member of {full_path} now.")
    return redirect(f"/{full_path}")


def _found(invitation_token: str) -> Invitation:
    invitation = invitations.find_by_link(invitation_token)
    if invitation is None:
        raise InvitationGone("404 Not Found")
    return invitation


def _page(invitation_token: str, invitation: Invitation, form: Form) -> str:
    return render_template(
        "members/invitation.html",
        invitation=invitation,
        place=invitation.place,
        role=Role(invitation.access_level),
        form=form,
        token=invitation_token,
        may_create=invitations.may_create_accounts(),
    )
