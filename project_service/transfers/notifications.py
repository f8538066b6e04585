"""Texts about failed transfers, and mails about exports."""

from __future__ import annotations

from collections.abc import Iterable

from project_service.domain import todos
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.projects import Project
from project_service.domain.todos import TodoAction
from project_service.kit import mail
from project_service.transfers.models import FAILED, ProjectExport

MAX_TEXT_LENGTH = 1000
IMPORT_PAGE, EXPORT_PAGE = "/-/import", "/-/settings/general"  # below that of the project


def error_text(project: Project, texts: Iterable[str]) -> str:
    """Return the text for a failed import, without paths of this server (import reference, section 7)."""
    details = " ".join("[FILTERED]" if "/" in word else word for word in sentence(texts).split())
    return f"Error importing repository  into {project.full_path} - {details[:MAX_TEXT_LENGTH]}"


def sentence(texts: Iterable[str]) -> str:
    """Join texts: ``a``, ``a and b``, ``a, b, and c``."""
    parts = list(texts)
    if len(parts) <= 2:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


def fail_export(export: ProjectExport, text: str) -> None:
    """Store that an export failed, and notify the user who started it."""
    export.state, export.error = FAILED, text
    add_todo(export.project, export.user, EXPORT_PAGE)
    notify(export, "Project export failed", f"The project {export.project.full_path} could not be exported: {text}.")


def add_todo(project: Project, user: User | None, page: str) -> None:
    """Give the user who started a transfer that failed a to-do item; ``page`` says why, below that of the project."""
    if user is not None:
        todos.add([user.id], TodoAction.BUILD_FAILED, project.id, todos.PROJECT, [project.id], page=page)


def notify(export: ProjectExport, subject: str, text: str) -> None:
    """Send a mail to the user who started an export, if the account is active."""
    user: User | None = export.user
    if user is not None and user.state == ACTIVE and user.deleting_since is None:
        mail.queue([user.email], f"{export.project.name} | {subject}", f"{text}\n")
