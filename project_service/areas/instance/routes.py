"""API of version, features and application settings (supporting resources reference, sections 1, 8 and 9)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.instance import schemas, service, version
from project_service.domain import instance_settings

api = ApiBlueprint("instance", __name__, description="Version, features and application settings.")


@api.get("/version")
@api.scopes("read_user")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.MetadataSchema)
def show_version() -> dict[str, str]:
    """Show the version."""
    return version.METADATA


@api.get("/metadata")
@api.scopes("read_user")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.MetadataSchema)
def show_metadata() -> dict[str, str]:
    """Show the version."""
    return version.METADATA


@api.get("/features")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200, schemas.FeatureSchema(many=True))
def list_features() -> list[dict[str, Any]]:
    """List all features that have been set."""
    return service.features()


@api.get("/features/definitions")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200)
def list_feature_definitions() -> list[dict[str, Any]]:
    """List the built-in features."""
    return version.FEATURE_DEFINITIONS


@api.post("/features/<name>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.arguments(schemas.FeatureSetSchema)
@api.response(201, schemas.FeatureSchema)
def set_feature(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Set a feature."""
    return service.set_feature(name, **fields)


@api.delete("/features/<name>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(204)
def delete_feature(name: str) -> None:
    """Delete a feature."""
    service.delete_feature(name)


@api.get("/application/settings")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200, schemas.SettingsSchema)
def show_settings() -> dict[str, Any]:
    """Show the application settings."""
    return instance_settings.all_settings()


@api.put("/application/settings")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.arguments(schemas.SettingsUpdateSchema)
@api.response(200, schemas.SettingsSchema)
def update_settings(fields: dict[str, Any]) -> dict[str, Any]:
    """Change application settings."""
    return service.change_settings(fields)
