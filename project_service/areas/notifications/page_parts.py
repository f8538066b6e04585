"""What the pages of channels, rules and messages share: where an owner's pages are, and their tabs."""

from __future__ import annotations

from typing import Any

from flask import render_template

from project_service.areas.notifications.owners import Owner, may_change
from project_service.domain import page_paths
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project

OF_PROJECT = "/<path:project>/-/settings/notifications"
OF_GROUP = "/groups/<path:group>/-/settings/notifications"
OF_USER = "/-/profile/notifications"
RULES = "/rules"
TABS = {"": "Channels", RULES: "Rules", "/deliveries": "Messages"}


def address_of(owner: Owner) -> str:
    """Return the address of the pages of an owner."""
    return OF_USER if isinstance(owner, User) else f"{page_paths.base_of(owner)}/-/settings/notifications"


def show(template: str, owner: Owner, tab: str, **values: Any) -> str:
    """Return a page with the navigation of the owner."""
    context: dict[str, Any]
    if isinstance(owner, Project):
        context = {"project": owner, "base": "project.html"}
    elif isinstance(owner, User):
        context = {"base": "account.html"}
    else:
        context = {"group": owner, "base": "group.html"}
    return render_template(
        f"notifications/{template}",
        owner=owner,
        own=address_of(owner),
        tabs={path: title for path, title in TABS.items() if path != RULES or not isinstance(owner, User)},
        tab=tab,
        changes=may_change(owner),
        **(context | values),
    )
