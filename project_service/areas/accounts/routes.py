"""API of users and personal access tokens (supporting resources reference, sections 2 to 4)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability, allowed
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.accounts.administration import queries as user_queries
from project_service.areas.accounts.administration import schemas as user_schemas
from project_service.areas.accounts.administration import service
from project_service.areas.accounts.sign_in import two_factor
from project_service.areas.accounts.tokens import queries, schemas
from project_service.areas.accounts.tokens import service as token_service
from project_service.domain.accounts.avatars import set_avatar
from project_service.domain.accounts.tokens import SELF_ROTATE, PersonalAccessToken
from project_service.domain.accounts.users import User, find_user
from project_service.domain.schemas import UserBasicSchema
from project_service.kit.http.errors import BadRequest, Forbidden, MethodNotAllowed, RecordNotFound, Unauthorized
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("users", __name__, description="People and their access tokens.")


@api.get("/user")
@api.scopes("read_user")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, user_schemas.UserAdminSchema)
def show_current_user() -> WithSchema:
    """Show who you are."""
    schema = user_schemas.UserAdminSchema if caller().admin else user_schemas.UserPublicSchema
    return WithSchema(schema, _shown(current_user()))


@api.get("/users")
@api.scopes("read_user")
@api.allow(Ability.ANYBODY)
@api.arguments(user_schemas.UserFilterSchema)
@api.response(200, user_schemas.UserAdminSchema(many=True))
@api.paged
def list_users(fields: dict[str, Any]) -> WithSchema:
    """List users."""
    current = caller()
    if current.user_id is None and not fields.get("username"):
        raise Forbidden("Not authorized to access /api/v4/users")
    if not current.admin and (fields.get("external") or fields.get("extern_uid")):
        raise Forbidden
    matching = user_queries.users_matching(current, **fields)
    if not current.admin:
        return WithSchema(UserBasicSchema, matching)
    return WithSchema(user_schemas.UserAdminSchema, matching, lambda rows: user_queries.mark_bots(*rows))


@api.get("/users/<user>")
@api.scopes("read_user")
@api.allow(Ability.ANYBODY)
@api.response(200, user_schemas.UserDetailsSchema)
def show_user(user: str) -> WithSchema:
    """Show one user."""
    schema = user_schemas.UserDetailsSchema if caller().admin else user_schemas.UserSchema
    return WithSchema(schema, _shown(find_user(numeric(user))))


@api.post("/users")
@api.scopes("read_user")
@api.signed_in
@api.arguments(user_schemas.UserCreateSchema)
@api.allow(Ability.ADMINISTER)
@api.response(201, user_schemas.UserAdminSchema)
def create_user(fields: dict[str, Any]) -> User:
    """Create a user."""
    avatar = fields.pop("avatar", None)
    user = service.create_user(**fields)
    if avatar:
        set_avatar(user, avatar)
    return user


@api.put("/users/<user>")
@api.scopes("read_user")
@api.signed_in
@api.arguments(user_schemas.UserUpdateSchema)
@api.allow(Ability.ADMINISTER)
@api.response(200, user_schemas.UserAdminSchema)
def update_user(fields: dict[str, Any], user: str) -> User:
    """Change a user."""
    account = find_user(numeric(user))
    if "avatar" in fields:
        set_avatar(account, fields.pop("avatar") or None)
    return _shown(service.update_user(account, **fields))


@api.delete("/users/<user>")
@api.scopes("read_user")
@api.signed_in
@api.arguments(user_schemas.UserDeleteSchema)
@api.allow(Ability.ADMINISTER)
@api.response(204)
def delete_user(fields: dict[str, Any], user: str) -> None:
    """Delete a user; a background job removes their data."""
    service.delete_user(unmodified(find_user(numeric(user))), **fields)


@api.post("/users/<user>/block")
@api.scopes("read_user")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(201)
def block_user(user: str) -> bool | None:
    """Block a user."""
    return service.block_user(caller().user_id, find_user(numeric(user)))


@api.post("/users/<user>/unblock")
@api.scopes("read_user")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(201)
def unblock_user(user: str) -> bool:
    """Unblock a user."""
    return service.unblock_user(find_user(numeric(user)))


@api.patch("/users/<user>/disable_two_factor")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(204)
def disable_two_factor(user: str) -> None:
    """Switch two-factor authentication off for a user, and end their sessions."""
    two_factor.reset_for(find_user(numeric(user)))


@api.post("/users/<user>/personal_access_tokens")
@api.scopes("read_user")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.arguments(schemas.TokenCreateSchema)
@api.response(201, schemas.NewTokenSchema)
def create_user_token(fields: dict[str, Any], user: str) -> PersonalAccessToken:
    """Create a personal access token for a user."""
    return token_service.create_token(find_user(numeric(user)), **fields)


@api.get("/personal_access_tokens")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.TokenFilterSchema)
@api.response(200, schemas.TokenSchema(many=True))
@api.paged
def list_tokens(fields: dict[str, Any]) -> Select[PersonalAccessToken]:
    """List personal access tokens: your own, or those of all users for administrators."""
    current = caller()
    if not current.admin and fields.get("user_id", current.user_id) != current.user_id:
        raise Unauthorized
    return queries.tokens_matching(current, **fields)


@api.get("/personal_access_tokens/self")
@api.any_scope
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.TokenSchema)
def show_current_token() -> PersonalAccessToken:
    """Show the token you are using."""
    return _current_token()


@api.delete("/personal_access_tokens/self")
@api.any_scope
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(204)
def revoke_current_token() -> None:
    """Revoke the token you are using."""
    token_service.revoke_token(_current_token())


@api.post("/personal_access_tokens/self/rotate")
@api.scopes(SELF_ROTATE)
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.TokenRotateSchema)
@api.response(200, schemas.NewTokenSchema)
def rotate_current_token(fields: dict[str, Any]) -> PersonalAccessToken:
    """Replace the token you are using by a new one."""
    return token_service.rotate_token(_current_token(), **fields)


@api.get("/personal_access_tokens/<token>")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.TokenSchema)
def show_token(token: str) -> PersonalAccessToken:
    """Show one personal access token."""
    return _token_or_unauthorized(token)


@api.delete("/personal_access_tokens/<token>")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(204)
def revoke_token(token: str) -> None:
    """Revoke one personal access token."""
    personal_token = queries.find_token(numeric(token))
    if not _may_manage(personal_token):
        raise BadRequest("400 Bad request")
    token_service.revoke_token(personal_token)


@api.post("/personal_access_tokens/<token>/rotate")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.TokenRotateSchema)
@api.response(200, schemas.NewTokenSchema)
def rotate_token(fields: dict[str, Any], token: str) -> PersonalAccessToken:
    """Replace one personal access token by a new one."""
    return token_service.rotate_token(_token_or_unauthorized(token), **fields)


def _shown(user: User) -> User:
    user_queries.mark_bots(user)
    return user


def _current_token() -> PersonalAccessToken:
    token_id = caller().token_id
    if token_id is None:
        raise MethodNotAllowed
    return queries.find_token(token_id)


def _may_manage(token: PersonalAccessToken) -> bool:
    return token.user_id == caller().user_id or allowed(caller(), Ability.ADMINISTER)


def _token_or_unauthorized(text: str) -> PersonalAccessToken:
    try:
        personal_token = queries.find_token(numeric(text))
    except RecordNotFound as error:
        raise (error if allowed(caller(), Ability.ADMINISTER) else Unauthorized()) from error
    if not _may_manage(personal_token):
        raise Unauthorized
    return personal_token
