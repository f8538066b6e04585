"""Files of a project beside its repositories: uploads, the avatar, and what archives bring (uploads reference)."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from sqlalchemy import ForeignKey, Index, Select, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit.db.base import Model, index_where_present

UPLOADS_FOLDER = "uploads"  # in archives, and in the folder of the project in the storage
UPLOAD_PATH = re.compile(r"uploads/([0-9a-fA-F]{10,64})/([^/]+)")


class ProjectFile(Model):
    """A file of a project: an upload, or one of an archive: the avatar, an LFS object, the bundle of a snippet.

    ``path`` is its path in archives: that of an upload has the secret and the name. ``data`` are the types of an LFS
    object. Files that came with an archive have neither an uploader nor a time.
    """

    __tablename__ = "project_files"
    __table_args__ = (
        Index("ix_project_files_project_id", "project_id", "path", unique=True),
        Index("ix_project_files_listed", "project_id", "id"),
        index_where_present("ix_project_files_uploaded_by_id", "uploaded_by_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    path: Mapped[str]
    storage_name: Mapped[str]
    size: Mapped[int]
    data: Mapped[list[Any] | None]
    created_at: Mapped[dt.datetime | None]
    uploaded_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    uploaded_by: Mapped[User | None] = relationship()

    @property
    def filename(self) -> str:
        """The name of an upload."""
        return self.path.rpartition("/")[2]

    @property
    def secret(self) -> str:
        """The secret of an upload."""
        return self.path.split("/")[1]


def uploads_of(project: Project) -> Select[ProjectFile]:
    """The uploads of a project, without an order."""
    is_upload = ProjectFile.path.startswith(f"{UPLOADS_FOLDER}/", autoescape=True)
    return select(ProjectFile).where(ProjectFile.project_id == project.content_id, is_upload)
