"""Reads of heartbeats and their calls."""

from __future__ import annotations

from sqlalchemy import Select, func, select

from project_service.domain.heartbeats.models import Heartbeat, HeartbeatPing
from project_service.domain.projects import Project
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import NotFound
from project_service.kit.security import tokens


def heartbeats_of(project: Project) -> Select[Heartbeat]:
    """Select the heartbeats of a project, oldest first."""
    own = select(Heartbeat).where(Heartbeat.project_id == project.id)
    return own.options(NO_LAZY_LOADING).order_by(Heartbeat.id)


def find_heartbeat(project: Project, heartbeat_id: int) -> Heartbeat:
    """Return one heartbeat of a project."""
    return one(heartbeats_of(project).where(Heartbeat.id == heartbeat_id), NotFound("Heartbeat"))


def number_of_heartbeats(project: Project) -> int:
    """Return how many heartbeats a project has."""
    counted = select(func.count()).select_from(Heartbeat).where(Heartbeat.project_id == project.id)
    return db.session.scalar(counted) or 0


def pings_of(heartbeat: Heartbeat) -> Select[HeartbeatPing]:
    """Select the stored calls of a heartbeat, newest first."""
    own = select(HeartbeatPing).where(HeartbeatPing.heartbeat_id == heartbeat.id)
    return own.options(NO_LAZY_LOADING).order_by(HeartbeatPing.id.desc())


def with_key(key: str) -> Select[int]:
    """Select the id of the heartbeat with a key, unless its project is being removed."""
    statement = select(Heartbeat.id).join(Project, Project.id == Heartbeat.project_id)
    return statement.where(Heartbeat.key_digest == tokens.digest(key), Project.deleting_since.is_(None))
