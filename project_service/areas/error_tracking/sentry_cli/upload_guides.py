"""What to enter into the clients that upload source maps (source maps reference, section 22)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from flask import request

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.areas.error_tracking.settings import client_keys
from project_service.domain.projects import Project
from project_service.kit.http import urls

TOOLS = {
    "cli": "sentry-cli",
    "vite": "Vite",
    "webpack": "webpack",
    "rollup": "Rollup",
    "esbuild": "esbuild",
}


def variables(project: Project) -> dict[str, Any]:
    """Return the template variables of the guides; the tool is chosen by the query ``upload``."""
    tool = request.args.get("upload", "")
    sees_keys = allowed(caller(), Ability.ADMIN_OPERATIONS, project)
    key = client_keys.first_active_key(project) if sees_keys else None
    return {
        "upload_tools": TOOLS,
        "upload_tool": tool if tool in TOOLS else next(iter(TOOLS)),
        "upload_url": urls.base_url(),
        "upload_has_path": urlsplit(urls.base_url()).path.strip("/") != "",
        "upload_organization": project.full_path.partition("/")[0],
        "upload_dsn": None if key is None else client_keys.dsn_of(key),
    }
