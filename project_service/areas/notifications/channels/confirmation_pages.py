"""Pages of the links in mails to addresses of channels: confirm, and stop. Looking at one changes nothing."""

from __future__ import annotations

from flask import render_template
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.notifications.channels import confirming
from project_service.kit.http.errors import UnknownRoute
from project_service.kit.http.forms import Form

pages = PageBlueprint("notification_links", __name__)
CONFIRM, STOP = "/-/notifications/confirm/<channel_token>", "/-/notifications/stop/<stop_token>"


@pages.get(CONFIRM)
@pages.allow(Ability.ANYBODY)
def ask_confirmation(channel_token: str) -> ResponseReturnValue:
    """Ask whether mails are wanted."""
    return _page(confirming.CONFIRM, channel_token)


@pages.post(CONFIRM)
@pages.allow(Ability.ANYBODY)
def confirm_address(channel_token: str) -> ResponseReturnValue:
    """Confirm that mails are wanted."""
    channel = confirming.find(confirming.CONFIRM, channel_token)
    if channel is None:
        raise UnknownRoute
    confirming.confirm(channel)
    return _page(confirming.CONFIRM, channel_token, done=True)


@pages.get(STOP)
@pages.allow(Ability.ANYBODY)
def ask_stop(stop_token: str) -> ResponseReturnValue:
    """Ask whether mails are to stop."""
    return _page(confirming.STOP, stop_token)


@pages.post(STOP)
@pages.allow(Ability.ANYBODY)
def stop_mails(stop_token: str) -> ResponseReturnValue:
    """Stop the mails of a channel."""
    channel = confirming.find(confirming.STOP, stop_token)
    if channel is None:
        raise UnknownRoute
    confirming.stop(channel)
    return _page(confirming.STOP, stop_token, done=True)


def _page(purpose: str, channel_token: str, *, done: bool = False) -> str:
    channel = confirming.find(purpose, channel_token)
    if channel is None:
        raise UnknownRoute
    confirms = purpose == confirming.CONFIRM
    form = Form(formdata=None)
    return render_template("notifications/link.html", channel=channel, confirms=confirms, done=done, form=form)
