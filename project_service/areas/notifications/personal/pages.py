"""Pages of personal settings: everywhere, for a project, for a group (notifications reference, section 8)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.notifications import page_parts
from project_service.areas.notifications.channels.page_views import STATES
from project_service.areas.notifications.channels.queries import channels_of
from project_service.areas.notifications.kinds import KINDS
from project_service.areas.notifications.personal import service
from project_service.areas.notifications.personal.forms import LevelForm, QuietHoursForm, level_form
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.forms import Form

pages = PageBlueprint("notification_setting_pages", __name__)
OF_USER = page_parts.OF_USER
OF_PROJECT = "/<path:project>/-/notification_settings"
OF_GROUP = "/groups/<path:group>/-/notification_settings"

navigation.add(navigation.NavigationEntry("Notifications", OF_USER, 5, Ability.SIGNED_IN), "account")


@pages.get(OF_USER)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def show_profile_notifications() -> ResponseReturnValue:
    """Show the level everywhere, quiet hours, channels, and levels of projects and groups."""
    return _profile_page()


@pages.post(f"{OF_USER}/level")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def save_global_level() -> ResponseReturnValue:
    """Change the level everywhere."""
    form = LevelForm()
    if not form.accepted(lambda: service.save_setting(current_user(), None, **form.fields())):
        return _profile_page(level=form), 422
    flash("Level changed")
    return redirect(OF_USER)


@pages.post(f"{OF_USER}/quiet_hours")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def save_quiet_hours() -> ResponseReturnValue:
    """Change the quiet hours."""
    form = QuietHoursForm()
    if not form.accepted(lambda: service.save_quiet_hours(current_user(), **form.fields())):
        return _profile_page(quiet=form), 422
    flash("Quiet hours changed")
    return redirect(OF_USER)


@pages.get(OF_PROJECT)
@pages.signed_in
@pages.allow(Ability.READ_PROJECT)
def show_project_level(project: Project) -> ResponseReturnValue:
    """Show the level for a project."""
    return _level_page(project)


@pages.post(OF_PROJECT)
@pages.signed_in
@pages.allow(Ability.READ_PROJECT)
def save_project_level(project: Project) -> ResponseReturnValue:
    """Change the level for a project."""
    return _save_level(project)


@pages.get(OF_GROUP)
@pages.signed_in
@pages.allow(Ability.READ_GROUP)
def show_group_level(group: Group) -> ResponseReturnValue:
    """Show the level for a group."""
    return _level_page(group)


@pages.post(OF_GROUP)
@pages.signed_in
@pages.allow(Ability.READ_GROUP)
def save_group_level(group: Group) -> ResponseReturnValue:
    """Change the level for a group."""
    return _save_level(group)


def _save_level(place: Project | Group) -> ResponseReturnValue:
    form = LevelForm()
    if not form.accepted(lambda: service.save_setting(current_user(), place, **form.fields())):
        return _level_page(place, form), 422
    flash("Level changed")
    return redirect(request.path)


def _level_page(place: Project | Group, form: LevelForm | None = None) -> str:
    form = form or level_form(service.shown_setting(current_user(), place))
    where: dict[str, Any] = {"project": place} if isinstance(place, Project) else {"group": place}
    base = "project.html" if isinstance(place, Project) else "group.html"
    return render_template("notifications/level.html", base=base, form=form, place=place, **where)


def _profile_page(level: LevelForm | None = None, quiet: QuietHoursForm | None = None) -> str:
    user = current_user()
    quiet_hours = service.shown_quiet_hours(user)
    times = {name: dt.time.fromisoformat(quiet_hours[name]) for name in ("starts", "ends")}
    return page_parts.show(
        "profile.html",
        user,
        "",
        user=user,
        level=level or level_form(service.shown_setting(user, None), everywhere=True),
        quiet=quiet or QuietHoursForm(formdata=None, data=quiet_hours | times),
        made=service.settings_of(user),
        channels=db.session.scalars(channels_of(user)).all(),
        kinds=KINDS,
        states=STATES,
        form=Form(formdata=None),
    )
