"""The API of web hooks of projects, groups and the instance (webhooks reference, sections 2 and 14)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.webhooks import queries, samples, schemas, service
from project_service.areas.webhooks.models import EVENTS, GROUP_EVENTS, WebHook, WebHookLog
from project_service.areas.webhooks.queries import Owner
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.http.errors import BadParameters, Unprocessable
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("web_hooks", __name__, description="URLs that are notified of events, and the log of what was sent.")
OF_PROJECT, OF_GROUP, OF_INSTANCE = "/projects/<project>/hooks", "/groups/<group>/hooks", "/hooks"


@api.get(OF_PROJECT)
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.response(200, schemas.ProjectHookListedSchema(many=True))
@api.paged
def list_project_hooks(project: Project) -> Select[WebHook]:
    """List the hooks of a project."""
    return queries.hooks_of(project)


@api.get(f"{OF_PROJECT}/<hook_id>")
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.response(200, schemas.ProjectHookSchema)
def show_project_hook(project: Project, hook_id: str) -> WebHook:
    """Show one hook of a project."""
    return queries.find_hook(project, numeric(hook_id))


@api.post(OF_PROJECT, sends_requests=True)
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.arguments(schemas.ProjectHookCreateSchema)
@api.response(201, schemas.ProjectHookSchema)
def create_project_hook(project: Project, fields: dict[str, Any]) -> WebHook:
    """Create a hook of a project."""
    return service.create_hook(project, **fields)


@api.put(f"{OF_PROJECT}/<hook_id>", sends_requests=True)
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.arguments(schemas.ProjectHookUpdateSchema)
@api.response(200, schemas.ProjectHookSchema)
def update_project_hook(project: Project, fields: dict[str, Any], hook_id: str) -> WebHook:
    """Change a hook of a project."""
    return service.update_hook(project, queries.find_hook(project, numeric(hook_id)), **fields)


@api.delete(f"{OF_PROJECT}/<hook_id>", endpoint="delete_project_hook")
@api.delete(f"{OF_GROUP}/<hook_id>", endpoint="delete_group_hook")
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT, group=Ability.ADMIN_GROUP)
@api.response(204)
def delete_hook(owner: Owner, hook_id: str) -> None:
    """Delete a hook, with its log and what waits for it."""
    service.delete_hook(owner, unmodified(queries.find_hook(owner, numeric(hook_id))))


@api.put(f"{OF_PROJECT}/<hook_id>/url_variables/<key>", endpoint="set_project_url_variable", sends_requests=True)
@api.put(f"{OF_GROUP}/<hook_id>/url_variables/<key>", endpoint="set_group_url_variable", sends_requests=True)
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT, group=Ability.ADMIN_GROUP)
@api.arguments(schemas.ValueSchema)
@api.response(204)
def set_hook_url_variable(owner: Owner, fields: dict[str, Any], hook_id: str, key: str) -> None:
    """Set a variable of the URL of a hook."""
    _set_pair(owner, hook_id, "url_variables", key, fields)


@api.delete(f"{OF_PROJECT}/<hook_id>/url_variables/<key>", endpoint="delete_project_url_variable", sends_requests=True)
@api.delete(f"{OF_GROUP}/<hook_id>/url_variables/<key>", endpoint="delete_group_url_variable", sends_requests=True)
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT, group=Ability.ADMIN_GROUP)
@api.response(204)
def delete_hook_url_variable(owner: Owner, hook_id: str, key: str) -> None:
    """Remove a variable of the URL of a hook."""
    _remove_pair(owner, hook_id, "url_variables", key)


@api.put(f"{OF_PROJECT}/<hook_id>/custom_headers/<key>", endpoint="set_project_custom_header", sends_requests=True)
@api.put(f"{OF_GROUP}/<hook_id>/custom_headers/<key>", endpoint="set_group_custom_header", sends_requests=True)
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT, group=Ability.ADMIN_GROUP)
@api.arguments(schemas.ValueSchema)
@api.response(204)
def set_hook_custom_header(owner: Owner, fields: dict[str, Any], hook_id: str, key: str) -> None:
    """Set a header that a hook sends."""
    _set_pair(owner, hook_id, "custom_headers", key, fields)


@api.delete(
    f"{OF_PROJECT}/<hook_id>/custom_headers/<key>", endpoint="delete_project_custom_header", sends_requests=True
)
@api.delete(f"{OF_GROUP}/<hook_id>/custom_headers/<key>", endpoint="delete_group_custom_header", sends_requests=True)
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT, group=Ability.ADMIN_GROUP)
@api.response(204)
def delete_hook_custom_header(owner: Owner, hook_id: str, key: str) -> None:
    """Remove a header that a hook sends."""
    _remove_pair(owner, hook_id, "custom_headers", key)


@api.get(f"{OF_PROJECT}/<hook_id>/events", endpoint="list_project_hook_events")
@api.get(f"{OF_GROUP}/<hook_id>/events", endpoint="list_group_hook_events")
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT, group=Ability.ADMIN_GROUP)
@api.arguments(schemas.WebHookEventFilterSchema)
@api.response(200, schemas.WebHookEventSchema(many=True))
@api.paged
def list_hook_events(owner: Owner, fields: dict[str, Any], hook_id: str) -> Select[WebHookLog]:
    """List what was sent to a hook within a week, newest first."""
    return queries.attempts_of(queries.find_hook(owner, numeric(hook_id)), fields.get("status"))


@api.post(f"{OF_PROJECT}/<hook_id>/events/<log_id>/resend", endpoint="resend_project_hook_event", sends_requests=True)
@api.post(f"{OF_GROUP}/<hook_id>/events/<log_id>/resend", endpoint="resend_group_hook_event", sends_requests=True)
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT, group=Ability.ADMIN_GROUP)
@api.response(201, schemas.ResentSchema)
def resend_hook_event(owner: Owner, hook_id: str, log_id: str) -> dict[str, Any]:
    """Send a logged request again."""
    hook = queries.find_hook(owner, numeric(hook_id))
    attempt = queries.find_attempt(hook, numeric(log_id))
    service.check_rate(caller(), service.REPETITIONS, owner)
    response = service.resend(hook, attempt)
    if response.error is not None:
        raise Unprocessable(response.error)
    return {"response_status": int(response.status)}


@api.post(f"{OF_PROJECT}/<hook_id>/test/<trigger>", endpoint="test_project_hook", sends_requests=True)
@api.post(f"{OF_GROUP}/<hook_id>/test/<trigger>", endpoint="test_group_hook", sends_requests=True)
@api.signed_in
@api.allow(project=Ability.ADMIN_PROJECT, group=Ability.ADMIN_GROUP)
@api.response(201, schemas.TestedSchema)
def test_hook(owner: Owner, hook_id: str, trigger: str) -> dict[str, Any]:
    """Send an event of a kind to a hook now; to one of a group with data of its newest project."""
    hook = queries.find_hook(owner, numeric(hook_id))
    if trigger not in (EVENTS if isinstance(owner, Project) else (*EVENTS, *GROUP_EVENTS)):
        raise BadParameters("trigger does not have a valid value")
    service.check_rate(caller(), service.TESTS, owner)
    failure = service.failure_text(service.test_hook(owner, hook, trigger))
    if failure is not None:
        raise Unprocessable(failure)
    return {"message": "201 Created"}


@api.get(OF_GROUP)
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.response(200, schemas.GroupHookSchema(many=True))
@api.paged
def list_group_hooks(group: Group) -> Select[WebHook]:
    """List the hooks of a group."""
    return queries.hooks_of(group)


@api.get(f"{OF_GROUP}/<hook_id>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.response(200, schemas.GroupHookSchema)
def show_group_hook(group: Group, hook_id: str) -> WebHook:
    """Show one hook of a group."""
    return queries.find_hook(group, numeric(hook_id))


@api.post(OF_GROUP, sends_requests=True)
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.arguments(schemas.GroupHookCreateSchema)
@api.response(201, schemas.GroupHookSchema)
def create_group_hook(group: Group, fields: dict[str, Any]) -> WebHook:
    """Create a hook of a group: it is notified of the events of all projects below."""
    return service.create_hook(group, **fields)


@api.put(f"{OF_GROUP}/<hook_id>", sends_requests=True)
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.arguments(schemas.GroupHookUpdateSchema)
@api.response(200, schemas.GroupHookSchema)
def update_group_hook(group: Group, fields: dict[str, Any], hook_id: str) -> WebHook:
    """Change a hook of a group."""
    return service.update_hook(group, queries.find_hook(group, numeric(hook_id)), **fields)


@api.get(OF_INSTANCE)
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200, schemas.SystemHookSchema(many=True))
@api.paged
def list_system_hooks() -> Select[WebHook]:
    """List the hooks of the instance."""
    return queries.hooks_of(None)


@api.get(f"{OF_INSTANCE}/<hook_id>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200, schemas.SystemHookSchema)
def show_system_hook(hook_id: str) -> WebHook:
    """Show one hook of the instance."""
    return queries.find_hook(None, numeric(hook_id))


@api.post(OF_INSTANCE, sends_requests=True)
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.arguments(schemas.ProjectHookCreateSchema)
@api.response(201, schemas.SystemHookSchema)
def create_system_hook(fields: dict[str, Any]) -> WebHook:
    """Create a hook of the instance: it is notified of members, projects, groups and pushes."""
    return service.create_hook(None, **fields)


@api.put(f"{OF_INSTANCE}/<hook_id>", sends_requests=True)
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.arguments(schemas.ProjectHookUpdateSchema)
@api.response(200, schemas.SystemHookSchema)
def update_system_hook(fields: dict[str, Any], hook_id: str) -> WebHook:
    """Change a hook of the instance."""
    return service.update_hook(None, queries.find_hook(None, numeric(hook_id)), **fields)


@api.delete(f"{OF_INSTANCE}/<hook_id>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(204)
def delete_system_hook(hook_id: str) -> None:
    """Delete a hook of the instance, with what waits for it."""
    service.delete_hook(None, unmodified(queries.find_hook(None, numeric(hook_id))))


@api.post(f"{OF_INSTANCE}/<hook_id>", sends_requests=True)
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(201)
def test_system_hook(hook_id: str) -> dict[str, Any]:
    """Send a sample to a hook of the instance now."""
    service.test_hook(None, queries.find_hook(None, numeric(hook_id)), "project_events")
    return dict(samples.OF_SYSTEM)


def _set_pair(owner: Owner, hook_id: str, attribute: str, key: str, fields: dict[str, Any]) -> None:
    hook = queries.find_hook(owner, numeric(hook_id))
    service.set_pair(owner, hook, attribute, key, fields["value"] or "")


def _remove_pair(owner: Owner, hook_id: str, attribute: str, key: str) -> None:
    service.remove_pair(owner, queries.find_hook(owner, numeric(hook_id)), attribute, key)
