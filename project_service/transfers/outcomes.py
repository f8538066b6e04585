"""What people are told of how a transfer ended."""

from __future__ import annotations

from collections.abc import Iterable

from project_service.domain.projects import Project
from project_service.domain.users import ACTIVE, User
from project_service.kit import mail
from project_service.transfers.models import FAILED, ProjectExport

LONGEST_TEXT = 1000


def error_text(project: Project, texts: Iterable[str]) -> str:
    """Why an import failed, without a path of this server (import reference, section 7)."""
    details = " ".join("[FILTERED]" if "/" in word else word for word in sentence(texts).split())
    return f"Error importing repository  into {project.full_path} - {details[:LONGEST_TEXT]}"


def sentence(texts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b, and c``."""
    known = list(texts)
    if len(known) <= 2:
        return " and ".join(known)
    return f"{', '.join(known[:-1])}, and {known[-1]}"


def note_failed_export(export: ProjectExport, text: str) -> None:
    """Say that an export failed, and tell whoever asked for it."""
    export.state, export.error = FAILED, text
    tell(export, "Project export failed", f"The project {export.project.full_path} could not be exported: {text}.")


def tell(export: ProjectExport, subject: str, text: str) -> None:
    """Write to whoever asked for an export, if there still is somebody to read it."""
    user: User | None = export.user
    if user is not None and user.state == ACTIVE and user.deleting_since is None:
        mail.queue([user.email], f"{export.project.name} | {subject}", f"{text}\n")
