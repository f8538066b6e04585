"""The address that a user has chosen for messages (notifications reference, section 8)."""

from __future__ import annotations

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project


def address_of(user: User, project: Project | None) -> str:
    """Return the primary address: it is the only one of a user that this service has verified."""
    return user.email
