"""Git repositories of projects: bare ones below the data directory, which may be missing."""

from __future__ import annotations

from pathlib import Path

import pygit2
from flask import current_app

from project_service.core.projects import Project
from project_service.settings import Settings

TAGS = "refs/tags/"


def directory(settings: Settings) -> Path:
    """Where all repositories are."""
    return settings.data_dir / "repositories"


def directory_of(project: Project) -> Path:
    """Where the bare repository of a project is, once there is one."""
    return directory(current_app.config["SETTINGS"]) / f"{project.id}.git"


def tag_names(project: Project) -> list[str]:
    """The names of the tags of a project, in order; none while it has no repository, or one only half made."""
    try:
        repository = pygit2.Repository(str(directory_of(project)))
    except pygit2.GitError:
        return []
    return sorted(name.removeprefix(TAGS) for name in repository.references if name.startswith(TAGS))
