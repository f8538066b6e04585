"""Parts of a project's page: channels that fail, and the level of the reader (notifications reference, section 8)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import panels
from project_service.areas.notifications.channels import queries
from project_service.areas.notifications.page_parts import address_of
from project_service.areas.notifications.personal import service
from project_service.areas.notifications.personal.forms import LEVELS
from project_service.domain.notifications.models import CUSTOM
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.forms import Form


def fill_failing(project: Project) -> dict[str, Any]:
    """Return the channels that fail, for those who may repair them."""
    is_shown = allowed(caller(), Ability.ADMIN_NOTIFICATIONS, project)
    channels = db.session.scalars(queries.failing_channels(project)).all() if is_shown else []
    return {"channels": channels, "address": address_of(project)}


def fill_level(project: Project) -> dict[str, Any]:
    """Return the level of the reader for a project, and those to choose from."""
    if caller().user_id is None:
        return {"level": None}
    level = service.shown_setting(current_user(), project)["level"]
    names = {name: text.partition(":")[0] for name, text in LEVELS.items()}
    offered = {name: text.partition(": ")[::2] for name, text in LEVELS.items() if name != CUSTOM}
    address = f"/{project.full_path}/-/notification_settings"
    return {"level": level, "names": names, "offered": offered, "address": address, "form": Form(formdata=None)}


panels.add(panels.Panel("project", 1, "notifications/failing.html", fill_failing))
panels.add(panels.Panel("project", 3, "notifications/level_menu.html", fill_level))
