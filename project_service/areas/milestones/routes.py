"""The API of milestones."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import current_user
from project_service.areas.milestones import queries, schemas
from project_service.domain.projects import Project
from project_service.domain.tracker import milestone_rules
from project_service.domain.tracker.milestones import Milestone, find_milestone
from project_service.domain.tracker.schemas import MilestoneSchema
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("milestones", __name__, description="Milestones of a project.")

MILESTONES = "/projects/<project>/milestones"


@api.get(MILESTONES)
@api.signed_in
@api.arguments(schemas.MilestoneFilterSchema)
@api.allow(Ability.READ_MILESTONES)
@api.response(200, MilestoneSchema(many=True))
@api.paged
def list_milestones(project: Project, fields: dict[str, Any]) -> Any:
    """List the milestones of a project."""
    return queries.milestones_matching(project, **fields)


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
    return milestone_rules.create_milestone(current_user(), project, **fields)


@api.put(f"{MILESTONES}/<milestone>")
@api.signed_in
@api.arguments(schemas.MilestoneUpdateSchema)
@api.allow(Ability.ADMIN_MILESTONES)
@api.response(200, MilestoneSchema)
def update_milestone(project: Project, fields: dict[str, Any], milestone: str) -> Milestone:
    """Change, close or activate a milestone."""
    return milestone_rules.update_milestone(current_user(), find_milestone(project, numeric(milestone)), **fields)


@api.delete(f"{MILESTONES}/<milestone>")
@api.signed_in
@api.allow(Ability.ADMIN_MILESTONES)
@api.response(204)
def delete_milestone(project: Project, milestone: str) -> None:
    """Delete a milestone."""
    milestone_rules.delete_milestone(current_user(), unmodified(find_milestone(project, numeric(milestone))))
