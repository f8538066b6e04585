"""The API of pictures (uploads reference, section 4)."""

from __future__ import annotations

from typing import Any

from flask import Response
from sqlalchemy import func

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import current_user
from project_service.areas.avatars import serving
from project_service.domain.accounts import avatars
from project_service.domain.accounts.user_pictures import gravatar_of, picture_address
from project_service.domain.accounts.users import User, users
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http import fields as parameters
from project_service.kit.http.schemas import Schema

api = ApiBlueprint("avatars", __name__, description="Pictures of users, groups and projects.")


class AvatarSchema(Schema):
    """The address of a picture."""

    avatar_url = parameters.Computed(picture_address)


class AvatarUpdateSchema(Schema):
    """A picture; blank removes it."""

    avatar = parameters.Picture(required=True)


class AvatarOfAddressSchema(Schema):
    """Whose picture is looked for."""

    email = parameters.String(required=True)
    size = parameters.Integer()


@api.put("/user/avatar")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(AvatarUpdateSchema)
@api.response(200, AvatarSchema)
def update_own_avatar(fields: dict[str, Any]) -> User:
    """Set or remove your picture."""
    user = current_user()
    avatars.set_avatar(user, fields["avatar"] or None)
    return user


@api.get("/avatar")
@api.allow(Ability.ANYBODY)
@api.arguments(AvatarOfAddressSchema)
@api.response(200)
def show_avatar_of_address(fields: dict[str, Any]) -> dict[str, Any]:
    """Show the address of the picture of the user with a public e-mail address; null if nobody has it."""
    wanted = fields["email"].strip().lower()
    user = db.session.scalar(users().where(func.lower(User.public_email) == wanted).limit(1)) if wanted else None
    return {"avatar_url": gravatar_of(wanted) if user is None else picture_address(user)}


@api.get("/projects/<project>/avatar")
@api.allow(Ability.READ_PROJECT)
@api.response(200, content_type="*/*")
def show_project_avatar(project: Project) -> Response:
    """Download the picture of a project."""
    return serving.respond(project, inline=False)


@api.get("/groups/<group>/avatar")
@api.allow(Ability.READ_GROUP)
@api.response(200, content_type="*/*")
def show_group_avatar(group: Group) -> Response:
    """Download the picture of a group."""
    return serving.respond(group, inline=False)
