"""Pages of wikis, which events refer to."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.kit.db.base import Model

TARGET = "WikiPage::Meta"


class WikiPage(Model):
    """A page of a project's wiki, as events know it."""

    __tablename__ = "wiki_pages"
    __table_args__ = (Index("ix_wiki_pages_project_id", "project_id", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    title: Mapped[str]
    slug: Mapped[str]
