"""Create and delete protected tags."""

from __future__ import annotations

from project_service.access import audit
from project_service.areas.protected_tags import queries
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_names import problem_of
from project_service.domain.repositories.protected_tags import ProtectedTag
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Unprocessable

TAKEN = "Name has already been taken"


def create_protected_tag(project: Project, *, name: str | None, create_access_level: int) -> ProtectedTag:
    """Protect a tag name or wildcard, whether or not a tag of that name exists."""
    if problem := problem_of(name):
        raise Unprocessable([problem])
    tag = ProtectedTag(project_id=project.id, name=name, create_access_levels=[create_access_level])
    if queries.is_protected(project, name or ""):
        raise Unprocessable([TAKEN])
    add_unique(tag, Unprocessable([TAKEN]))
    project.updated_at = clock.now()
    audit.record("protected_tag_created", project, f"Added protected tag {tag.name}", target=_target(tag))
    return tag


def delete_protected_tag(tag: ProtectedTag) -> None:
    """Delete a protected tag."""
    delete_locked(tag)
    project = db.session.get_one(Project, tag.project_id)
    project.updated_at = clock.now()
    audit.record("protected_tag_removed", project, f"Removed protected tag {tag.name}", target=_target(tag))


def _target(tag: ProtectedTag) -> AuditTarget:
    return AuditTarget("ProtectedTag", tag.id, tag.name)
