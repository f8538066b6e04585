"""The API of milestones of projects and groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability, judge
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.milestones import queries, schemas
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.tracker import milestone_rules
from project_service.domain.tracker.milestones import Milestone, find_milestone
from project_service.domain.tracker.schemas import MilestoneSchema
from project_service.kit.http.errors import BadRequest, Invalid
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("milestones", __name__, description="Milestones of a project.")
group_api = ApiBlueprint("group_milestones", __name__, description="Milestones of a group, for all projects below it.")

MILESTONES = "/projects/<project>/milestones"
GROUP_MILESTONES = "/groups/<group>/milestones"


@api.get(MILESTONES)
@api.signed_in
@api.arguments(schemas.MilestoneFilterSchema)
@api.allow(Ability.READ_MILESTONES)
@api.response(200, MilestoneSchema(many=True))
@api.paged
def list_milestones(project: Project, fields: dict[str, Any]) -> Select[Milestone]:
    """List the milestones of a project."""
    return queries.milestones_matching(caller(), project, **fields)


@api.get(f"{MILESTONES}/<milestone>")
@api.signed_in
@api.allow(Ability.READ_MILESTONES)
@api.response(200, MilestoneSchema)
def show_milestone(project: Project, milestone: str) -> Milestone:
    """Show one milestone."""
    return find_milestone(project, numeric(milestone))


@api.post(MILESTONES)
@api.signed_in
@api.arguments(schemas.MilestoneCreateSchema)
@api.allow(Ability.ADMIN_MILESTONES)
@api.response(201, MilestoneSchema)
def create_milestone(project: Project, fields: dict[str, Any]) -> Milestone:
    """Create a milestone."""
    with _refusals_as_text("create"):
        return milestone_rules.create_milestone(current_user(), project, **fields)


@api.put(f"{MILESTONES}/<milestone>")
@api.signed_in
@api.arguments(schemas.MilestoneUpdateSchema)
@api.allow(Ability.ADMIN_MILESTONES)
@api.response(200, MilestoneSchema)
def update_milestone(project: Project, fields: dict[str, Any], milestone: str) -> Milestone:
    """Change, close or activate a milestone."""
    of_project = find_milestone(project, numeric(milestone))
    with _refusals_as_text("update"):
        return milestone_rules.update_milestone(current_user(), of_project, **fields)


@api.delete(f"{MILESTONES}/<milestone>")
@api.signed_in
@api.allow(Ability.ADMIN_MILESTONES)
@api.response(204)
def delete_milestone(project: Project, milestone: str) -> None:
    """Delete a milestone."""
    milestone_rules.delete_milestone(current_user(), unmodified(find_milestone(project, numeric(milestone))))


@api.post(f"{MILESTONES}/<milestone>/promote")
@api.signed_in
@api.allow(Ability.ADMIN_MILESTONES)
@api.response(200, MilestoneSchema)
def promote_milestone(project: Project, milestone: str) -> Milestone:
    """Make a milestone of the group of those with this title in the projects that are directly in it."""
    of_project = find_milestone(project, numeric(milestone))
    if isinstance(project.namespace, Group):
        judge(caller(), Ability.ADMIN_GROUP_MILESTONES, project.namespace)
    return milestone_rules.promote_milestone(of_project)


@group_api.get(GROUP_MILESTONES)
@group_api.signed_in
@group_api.arguments(schemas.GroupMilestoneFilterSchema)
@group_api.allow(Ability.READ_GROUP)
@group_api.response(200, MilestoneSchema(many=True))
@group_api.paged
def list_group_milestones(group: Group, fields: dict[str, Any]) -> Select[Milestone]:
    """List the milestones of a group."""
    return queries.milestones_matching(caller(), group, **fields)


@group_api.get(f"{GROUP_MILESTONES}/<milestone>")
@group_api.signed_in
@group_api.allow(Ability.READ_GROUP)
@group_api.response(200, MilestoneSchema)
def show_group_milestone(group: Group, milestone: str) -> Milestone:
    """Show one milestone of a group."""
    return find_milestone(group, numeric(milestone))


@group_api.post(GROUP_MILESTONES)
@group_api.signed_in
@group_api.arguments(schemas.MilestoneCreateSchema)
@group_api.allow(Ability.ADMIN_GROUP_MILESTONES)
@group_api.response(201, MilestoneSchema)
def create_group_milestone(group: Group, fields: dict[str, Any]) -> Milestone:
    """Create a milestone of a group."""
    with _refusals_as_text("create"):
        return milestone_rules.create_milestone(current_user(), group, **fields)


@group_api.put(f"{GROUP_MILESTONES}/<milestone>")
@group_api.signed_in
@group_api.arguments(schemas.MilestoneUpdateSchema)
@group_api.allow(Ability.ADMIN_GROUP_MILESTONES)
@group_api.response(200, MilestoneSchema)
def update_group_milestone(group: Group, fields: dict[str, Any], milestone: str) -> Milestone:
    """Change, close or activate a milestone of a group."""
    of_group = find_milestone(group, numeric(milestone))
    with _refusals_as_text("update"):
        return milestone_rules.update_milestone(current_user(), of_group, **fields)


@group_api.delete(f"{GROUP_MILESTONES}/<milestone>")
@group_api.signed_in
@group_api.allow(Ability.ADMIN_GROUP_MILESTONES)
@group_api.response(204)
def delete_group_milestone(group: Group, milestone: str) -> None:
    """Delete a milestone of a group; issues and merge requests lose it."""
    milestone_rules.delete_milestone(current_user(), unmodified(find_milestone(group, numeric(milestone))))


@contextmanager
def _refusals_as_text(action: str) -> Iterator[None]:
    """Refuse invalid fields with one text, as clients of milestones expect: ``{:title=>["can't be blank"]}``."""
    try:
        yield
    except Invalid as error:
        problems = (
            f":{name}=>[{', '.join(json.dumps(text, ensure_ascii=False) for text in texts)}]"
            for name, texts in error.message.items()
        )
        raise BadRequest(f"Failed to {action} milestone {{{', '.join(problems)}}}") from error
