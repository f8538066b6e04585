"""Links that end mails to a person about a project, or to the address of a channel (notifications reference, 5).

Mail programs send them by POST without a page (RFC 8058); opening one changes nothing.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from flask import Response, g, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access import identity
from project_service.access.abilities import Ability
from project_service.areas.notifications.actions.pages import HEADERS, actions, pages
from project_service.areas.notifications.channels import confirming
from project_service.areas.notifications.models import NotificationChannel
from project_service.areas.notifications.personal import service
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.notifications.models import DISABLED
from project_service.domain.projects import Project
from project_service.kit.db.session import db, reading, unit_of_work
from project_service.kit.http import urls
from project_service.kit.http.errors import UnknownRoute
from project_service.kit.security import signed_links

PATH = "/-/notifications/unsubscribe/"
LINK = f"{PATH}<unsubscribe_token>"
PURPOSE = "end notifications of a project"
LIFETIME = dt.timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a link ends: mails to a user about a project, or those of a channel."""

    project: Project | None = None
    user: User | None = None
    channel: NotificationChannel | None = None

    @property
    def name(self) -> str:
        """What the mails are about."""
        if self.channel is not None:
            return f"the channel “{self.channel.name}”"
        return "everything" if self.project is None else self.project.name_with_namespace

    def end(self) -> None:
        """Disable the channel, or choose the level ``disabled`` for the user."""
        if self.channel is not None:
            confirming.stop(self.channel)
        elif self.user is not None:
            service.save_setting(self.user, self.project, level=DISABLED)


def link_for(user: User, project: Project | None) -> str:
    """Return the link that ends mails to a user about a project."""
    values = [user.id, None if project is None else project.id]
    return urls.absolute(f"{PATH}{signed_links.sign_values(PURPOSE, values)}")


def link_for_channel(channel_id: int, address: str) -> str:
    """Return the link that ends mails to the address of a channel."""
    return urls.absolute(f"{PATH}{signed_links.sign_values(confirming.STOP, [channel_id, address])}")


def find(token: str) -> Subscription | None:
    """Return what a link ends; ``None`` if it is not valid any more."""
    if (channel := confirming.find(confirming.STOP, token)) is not None:
        return Subscription(channel=channel)
    values = signed_links.read_values(PURPOSE, token, LIFETIME)
    user = None if values is None else db.session.get(User, values[0])
    if values is None or user is None or user.state != ACTIVE:
        return None
    if values[1] is None:
        return Subscription(user=user)
    project = db.session.get(Project, values[1])
    return None if project is None or project.deleting_since is not None else Subscription(project, user)


@pages.get(LINK)
@pages.allow(Ability.ANYBODY)
def ask_to_unsubscribe(unsubscribe_token: str) -> ResponseReturnValue:
    """Ask whether mails are to end."""
    subscription = find(unsubscribe_token)
    if subscription is None:
        raise UnknownRoute
    return _page(subscription)


@actions.post(LINK)
def unsubscribe(unsubscribe_token: str) -> Response:
    """End mails: the token is the right, no session and no form token are needed."""
    with unit_of_work():
        subscription = find(unsubscribe_token)
        if subscription is not None:
            subscription.end()
            name = subscription.name
    if subscription is None:
        return Response("This link is no longer valid.", 404, HEADERS, mimetype="text/plain")
    if "text/html" not in request.headers.get("Accept", ""):
        return Response(f"No more mails about {name}.", 200, HEADERS, mimetype="text/plain")
    with reading():
        g.caller = identity.by_session()
        return _page(find(unsubscribe_token), is_done=True)


def _page(subscription: Subscription | None, *, is_done: bool = False) -> Response:
    html = render_template("notifications/unsubscribe.html", subscription=subscription, is_done=is_done)
    return Response(html, 200, HEADERS)
