"""The API of access tokens of projects and groups, the same for both."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.accounts.tokens import queries, resource_tokens, schemas
from project_service.domain.resource_bots import ProjectOrGroup
from project_service.domain.tokens import PersonalAccessToken
from project_service.kit.http.errors import MethodNotAllowed, NotFound

api = ApiBlueprint("resource_tokens", __name__, description="Access tokens of projects and groups.")


def register(kind: str, reads: Ability, administers: Ability) -> None:
    """Register the operations of projects or of groups; ``reads`` is for bots and their own token."""
    tokens = f"/{kind}s/<{kind}>/access_tokens"

    @api.get(tokens, endpoint=f"list_{kind}_access_tokens")
    @api.signed_in
    @api.allow(administers)
    @api.arguments(schemas.ResourceTokenFilterSchema)
    @api.response(200, schemas.ResourceTokenSchema(many=True))
    @api.paged
    def list_access_tokens(subject: ProjectOrGroup, fields: dict[str, Any]) -> Select[PersonalAccessToken]:
        """List the access tokens of a project or group."""
        return queries.tokens_of_resource(subject, **fields)

    @api.post(tokens, endpoint=f"create_{kind}_access_token")
    @api.signed_in
    @api.allow(administers)
    @api.arguments(schemas.ResourceTokenCreateSchema)
    @api.response(201, schemas.NewResourceTokenSchema)
    def create_access_token(subject: ProjectOrGroup, fields: dict[str, Any]) -> PersonalAccessToken:
        """Create an access token of a project or group, with a bot of its own."""
        return resource_tokens.create_token(caller(), subject, **fields)

    @api.post(f"{tokens}/self/rotate", endpoint=f"rotate_own_{kind}_access_token")
    @api.signed_in
    @api.allow(reads)
    @api.arguments(schemas.TokenRotateSchema)
    @api.response(200, schemas.NewResourceTokenSchema)
    def rotate_own_access_token(subject: ProjectOrGroup, fields: dict[str, Any]) -> PersonalAccessToken:
        """Replace the access token you are using, if it is one of this project or group."""
        current = caller()
        token = queries.own_resource_token(subject, current.token_id)
        if token is None:
            raise MethodNotAllowed
        return resource_tokens.rotate_token(current, subject, token, **fields)

    @api.get(f"{tokens}/self", endpoint=f"show_own_{kind}_access_token")
    @api.signed_in
    @api.allow(reads)
    @api.response(200, schemas.ResourceTokenSchema)
    def show_own_access_token(subject: ProjectOrGroup) -> PersonalAccessToken:
        """Show the access token you are using, if it is one of this project or group."""
        return _own(subject)

    @api.delete(f"{tokens}/self", endpoint=f"revoke_own_{kind}_access_token")
    @api.signed_in
    @api.allow(reads)
    @api.response(204)
    def revoke_own_access_token(subject: ProjectOrGroup) -> None:
        """Revoke the access token you are using, if it is one of this project or group."""
        resource_tokens.revoke_token(subject, _own(subject))

    @api.get(f"{tokens}/<token>", endpoint=f"show_{kind}_access_token")
    @api.signed_in
    @api.allow(administers)
    @api.response(200, schemas.ResourceTokenSchema)
    def show_access_token(subject: ProjectOrGroup, token: str) -> PersonalAccessToken:
        """Show one access token of a project or group."""
        return queries.find_resource_token(subject, numeric(token))

    @api.delete(f"{tokens}/<token>", endpoint=f"revoke_{kind}_access_token")
    @api.signed_in
    @api.allow(administers)
    @api.response(204)
    def revoke_access_token(subject: ProjectOrGroup, token: str) -> None:
        """Revoke one access token of a project or group."""
        resource_tokens.revoke_token(subject, queries.find_resource_token(subject, numeric(token)))

    @api.post(f"{tokens}/<token>/rotate", endpoint=f"rotate_{kind}_access_token")
    @api.signed_in
    @api.allow(administers)
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


register("project", Ability.READ_PROJECT, Ability.ADMIN_PROJECT_TOKENS)
register("group", Ability.READ_GROUP, Ability.ADMIN_GROUP_TOKENS)
