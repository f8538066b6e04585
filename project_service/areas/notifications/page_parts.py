"""What the pages of channels, rules and messages share: where an owner's pages are, and their tabs."""

from __future__ import annotations

from typing import Any

from flask import render_template

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.areas.notifications.owners import Owner
from project_service.domain.projects import Project
from project_service.domain.users import User

OF_PROJECT = "/<path:project>/-/settings/notifications"
OF_GROUP = "/groups/<path:group>/-/settings/notifications"
OF_USER = "/-/profile/notifications"
TABS = {"": "Channels", "/rules": "Rules", "/deliveries": "Messages"}


def address_of(owner: Owner) -> str:
    """Return the address of the pages of an owner."""
    if isinstance(owner, Project):
        return f"/{owner.full_path}/-/settings/notifications"
    if isinstance(owner, User):
        return OF_USER
    return f"/groups/{owner.full_path}/-/settings/notifications"


def may_change(owner: Owner) -> bool:
    """Whether the caller may change channels and rules of an owner."""
    if isinstance(owner, User):
        return True
    ability = Ability.ADMIN_NOTIFICATIONS if isinstance(owner, Project) else Ability.ADMIN_GROUP_NOTIFICATIONS
    return allowed(caller(), ability, owner)


def show(template: str, owner: Owner, tab: str, **values: Any) -> str:
    """Return a page with the navigation of the owner."""
    place: dict[str, Any]
    if isinstance(owner, Project):
        place = {"project": owner, "base": "project.html"}
    elif isinstance(owner, User):
        place = {"base": "account.html"}
    else:
        place = {"group": owner, "base": "group.html"}
    return render_template(
        f"notifications/{template}",
        owner=owner,
        own=address_of(owner),
        tabs=TABS,
        tab=tab,
        changes=may_change(owner),
        **(place | values),
    )
