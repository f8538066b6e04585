"""Mails about alerts (alert management reference, section 8)."""

from __future__ import annotations

from sqlalchemy import select

from project_service.areas.alerts.alerts.hooks import address_of
from project_service.areas.alerts.models import Alert, Status
from project_service.domain.access_levels import Role
from project_service.domain.memberships import user_ids_with
from project_service.domain.users import ACTIVE, User
from project_service.kit import mail
from project_service.kit.db.session import db
from project_service.kit.http import urls


def queue_alert(alert: Alert, *, with_incidents: bool) -> int:
    """Queue a mail about a triggered or resolved alert to owners and maintainers.

    With incidents enabled it also links to their list.
    """
    project = alert.project
    word = "resolved" if alert.status == Status.RESOLVED else "triggered"
    environment = f"{alert.environment.name}: " if alert.environment else ""
    lines = [f"An alert has been {word} in {project.full_path}.", "", f"View alert details at {address_of(alert)}"]
    if alert.description:
        lines += ["", f"Description: {alert.description}"]
    if alert.environment:
        lines += ["", f"Environment: {alert.environment.name}"]
    if with_incidents:
        lines += ["", f"View incident issues: {urls.absolute(f'/{project.full_path}/-/issues?issue_type=incident')}"]
    return mail.queue(
        recipients_of(alert), f"{project.name} | Alert: {environment}{alert.title}", "\n".join(lines) + "\n"
    )


def recipients_of(alert: Alert) -> list[str]:
    """Return the mail addresses of the owners and maintainers of the project, however they have their role."""
    wanted = User.id.in_(user_ids_with(Role.MAINTAINER, alert.project))
    return list(
        db.session.scalars(select(User.email).where(wanted, User.state == ACTIVE, User.deleting_since.is_(None)))
    )
