"""The API of access tokens of projects and groups, the same for both."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.accounts.tokens import queries, resource_tokens, schemas
from project_service.domain.accounts.resource_bots import ProjectOrGroup
from project_service.domain.accounts.tokens import SELF_ROTATE, PersonalAccessToken
from project_service.kit.http.errors import MethodNotAllowed, NotFound

api = ApiBlueprint("resource_tokens", __name__, description="Access tokens of projects and groups.")
OF_PROJECT, OF_GROUP = "/projects/<project>/access_tokens", "/groups/<group>/access_tokens"


@api.get(OF_PROJECT, endpoint="list_project_access_tokens")
@api.get(OF_GROUP, endpoint="list_group_access_tokens")
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
@api.arguments(schemas.ResourceTokenFilterSchema)
@api.response(200, schemas.ResourceTokenSchema(many=True))
@api.paged
def list_access_tokens(subject: ProjectOrGroup, fields: dict[str, Any]) -> Select[PersonalAccessToken]:
    """List the access tokens of a project or group."""
    return queries.tokens_of_resource(subject, **fields)


@api.post(OF_PROJECT, endpoint="create_project_access_token")
@api.post(OF_GROUP, endpoint="create_group_access_token")
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
@api.arguments(schemas.ResourceTokenCreateSchema)
@api.response(201, schemas.NewResourceTokenSchema)
def create_access_token(subject: ProjectOrGroup, fields: dict[str, Any]) -> PersonalAccessToken:
    """Create an access token of a project or group, with a bot of its own."""
    return resource_tokens.create_token(caller(), subject, **fields)


@api.post(f"{OF_PROJECT}/self/rotate", endpoint="rotate_own_project_access_token")
@api.post(f"{OF_GROUP}/self/rotate", endpoint="rotate_own_group_access_token")
@api.scopes(SELF_ROTATE)
@api.signed_in
@api.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
@api.arguments(schemas.TokenRotateSchema)
@api.response(200, schemas.NewResourceTokenSchema)
def rotate_own_access_token(subject: ProjectOrGroup, fields: dict[str, Any]) -> PersonalAccessToken:
    """Replace the access token you are using, if it is one of this project or group."""
    current = caller()
    token = queries.own_resource_token(subject, current.token_id)
    if token is None:
        raise MethodNotAllowed
    return resource_tokens.rotate_token(current, subject, token, **fields)


@api.get(f"{OF_PROJECT}/self", endpoint="show_own_project_access_token")
@api.get(f"{OF_GROUP}/self", endpoint="show_own_group_access_token")
@api.signed_in
@api.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
@api.response(200, schemas.ResourceTokenSchema)
def show_own_access_token(subject: ProjectOrGroup) -> PersonalAccessToken:
    """Show the access token you are using, if it is one of this project or group."""
    return _own(subject)


@api.delete(f"{OF_PROJECT}/self", endpoint="revoke_own_project_access_token")
@api.delete(f"{OF_GROUP}/self", endpoint="revoke_own_group_access_token")
@api.signed_in
@api.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
@api.response(204)
def revoke_own_access_token(subject: ProjectOrGroup) -> None:
    """Revoke the access token you are using, if it is one of this project or group."""
    resource_tokens.revoke_token(subject, _own(subject))


@api.get(f"{OF_PROJECT}/<token>", endpoint="show_project_access_token")
@api.get(f"{OF_GROUP}/<token>", endpoint="show_group_access_token")
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
@api.response(200, schemas.ResourceTokenSchema)
def show_access_token(subject: ProjectOrGroup, token: str) -> PersonalAccessToken:
    """Show one access token of a project or group."""
    return queries.find_resource_token(subject, numeric(token))


@api.delete(f"{OF_PROJECT}/<token>", endpoint="revoke_project_access_token")
@api.delete(f"{OF_GROUP}/<token>", endpoint="revoke_group_access_token")
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
@api.response(204)
def revoke_access_token(subject: ProjectOrGroup, token: str) -> None:
    """Revoke one access token of a project or group."""
    resource_tokens.revoke_token(subject, queries.find_resource_token(subject, numeric(token)))


@api.post(f"{OF_PROJECT}/<token>/rotate", endpoint="rotate_project_access_token")
@api.post(f"{OF_GROUP}/<token>/rotate", endpoint="rotate_group_access_token")
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
@api.arguments(schemas.TokenRotateSchema)
@api.response(200, schemas.NewResourceTokenSchema)
def rotate_access_token(subject: ProjectOrGroup, fields: dict[str, Any], token: str) -> PersonalAccessToken:
    """Replace one access token of a project or group by a new one."""
    return resource_tokens.rotate_token(
        caller(), subject, queries.find_resource_token(subject, numeric(token)), **fields
    )


def _own(subject: ProjectOrGroup) -> PersonalAccessToken:
    token = queries.own_resource_token(subject, caller().token_id)
    if token is None:
        raise NotFound("Access Token")
    return token
