"""Levels of users that count for a project (notifications reference, section 8)."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import func, or_, select

from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.notifications.models import CUSTOM, DISABLED, GLOBAL, NotificationSetting
from project_service.domain.projects import Project
from project_service.kit import mail
from project_service.kit.db.session import db

REASSIGNED = "reassign_issue"  # GitLab's event for what was assigned


def nearest_settings(project: Project, user_ids: Collection[int] | None = None) -> dict[int, NotificationSetting]:
    """Return the nearest setting of each user who has made one: of the project, a group above it, or everywhere."""
    setting = NotificationSetting
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == project.namespace_id)
    here = or_(
        setting.project_id == project.id,
        setting.group_id.in_(above),
        setting.project_id.is_(None) & setting.group_id.is_(None),
    )
    rows = select(setting, func.length(Namespace.full_path)).outerjoin(Namespace, Namespace.id == setting.group_id)
    rows = rows.where(here, setting.level != GLOBAL)
    if user_ids is not None:
        rows = rows.where(setting.user_id.in_(list(user_ids)))
    nearest: dict[int, tuple[tuple[bool, int], NotificationSetting]] = {}
    for row, length in db.session.execute(rows):
        rank = (row.project_id is not None, length or 0)
        if row.user_id not in nearest or rank > nearest[row.user_id][0]:
            nearest[row.user_id] = (rank, row)
    return {user_id: row for user_id, (_, row) in nearest.items()}


def mail_personally(
    user_ids: Collection[int], project: Project, subject: str, body: str, *, event: str | None = None
) -> None:
    """Queue a mail to users about what mentions them or was assigned to them, unless their level excludes it.

    With the level ``custom`` it is sent if ``event`` was switched on.
    """
    if not mail.is_on() or not user_ids:
        return
    settings = nearest_settings(project, user_ids)
    wanted = [user_id for user_id in user_ids if _wants(settings.get(user_id), event)]
    addresses = select(User.email).where(User.id.in_(wanted), User.state == ACTIVE)
    mail.queue(db.session.scalars(addresses), f"{project.name} | {subject}", body)


def mail_assignees(user_ids: Collection[int], author: User, project: Project, title: str, address: str) -> None:
    """Queue a mail to new assignees, except the author."""
    body = f"{author.name} (@{author.username}) assigned this to you:\n\n{title}\n\n{address}\n"
    others = [user_id for user_id in user_ids if user_id != author.id]
    mail_personally(others, project, title, body, event=REASSIGNED)


def _wants(setting: NotificationSetting | None, event: str | None) -> bool:
    if setting is None or event is None or setting.level != CUSTOM:
        return setting is None or setting.level != DISABLED
    return bool(setting.events.get(event))
