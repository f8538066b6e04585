"""The API of invitations by mail, the same for groups and projects."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import caller, current_user
from project_service.areas.members import invitations, schemas
from project_service.areas.members.models import Invitation
from project_service.areas.members.service import ProjectOrGroup

api = ApiBlueprint("invitations", __name__, description="Invitations by mail to groups and projects.")

OF_PROJECT, OF_GROUP = "/projects/<project>/invitations", "/groups/<group>/invitations"


@api.get(OF_PROJECT, endpoint="list_project_invitations")
@api.get(OF_GROUP, endpoint="list_group_invitations")
@api.signed_in
@api.arguments(schemas.InvitationFilterSchema)
@api.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
@api.response(200, schemas.InvitationSchema(many=True))
@api.paged
def list_invitations(subject: ProjectOrGroup, fields: dict[str, Any]) -> Select[Invitation]:
    """List the invitations that can still be accepted, the newest first."""
    return invitations.invitations_to(subject, **fields)


@api.post(OF_PROJECT, endpoint="create_project_invitation")
@api.post(OF_GROUP, endpoint="create_group_invitation")
@api.signed_in
@api.arguments(schemas.InvitationCreateSchema)
@api.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
@api.response(201, schemas.InvitationResultSchema)
def create_invitation(subject: ProjectOrGroup, fields: dict[str, Any]) -> dict[str, Any]:
    """Invite addresses by mail, and add users; with ``status`` ``error`` the message says who was left out, and why."""
    problems = invitations.invite_all(
        caller(),
        current_user(),
        subject,
        emails=fields.get("email") or [],
        user_ids=fields.get("user_id") or [],
        access_level=fields["access_level"],
        expires_at=fields.get("expires_at"),
    )
    return {"status": "error", "message": problems} if problems else {"status": "success"}


@api.put(f"{OF_PROJECT}/<email>", endpoint="update_project_invitation")
@api.put(f"{OF_GROUP}/<email>", endpoint="update_group_invitation")
@api.signed_in
@api.arguments(schemas.InvitationUpdateSchema)
@api.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
@api.response(200, schemas.InvitationSchema)
def update_invitation(subject: ProjectOrGroup, fields: dict[str, Any], email: str) -> Invitation:
    """Change the role or the expiry date that an invitation gives."""
    return invitations.change(caller(), subject, invitations.find_invitation_of(subject, email), fields)


@api.delete(f"{OF_PROJECT}/<email>", endpoint="delete_project_invitation")
@api.delete(f"{OF_GROUP}/<email>", endpoint="delete_group_invitation")
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
@api.response(204)
def delete_invitation(subject: ProjectOrGroup, email: str) -> None:
    """Revoke an invitation: its link does not work any more."""
    invitations.revoke(subject, invitations.find_invitation_of(subject, email).id)
