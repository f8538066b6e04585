"""The page of a link, and the requests that change alerts (acknowledging reference, section 2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, g, make_response, redirect, render_template, request

from project_service.access import identity
from project_service.access.abilities import Ability
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.notifications.actions import acting, links
from project_service.areas.notifications.actions.acting import LinkedAction
from project_service.domain import rate_limits
from project_service.domain.alerts.alert_actions import Acknowledged
from project_service.domain.rate_limits import RateLimit
from project_service.kit.db.session import reading, unit_of_work
from project_service.kit.http import responses
from project_service.kit.http.forms import Form

pages = PageBlueprint("notification_action_pages", __name__)
actions = Blueprint("notification_actions", __name__)
LINK = f"{links.PATH}<token>"
WITH_SESSION = "/-/notifications/s/<token>"
ACTIONS = RateLimit("notification_action", 30)
INVALID = "This link is no longer valid."
HEADERS = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


@pages.get(LINK)
@pages.allow(Ability.ANYBODY)
def show_action(token: str) -> Response:
    """Show what a link would do; it does nothing before the button is pressed."""
    action = acting.find(links.read(token))
    if action is None:
        return _page(404, text=INVALID)
    ids = acting.alert_ids_of(action.delivery, action.link.action)
    can_sign_in = action.needs_sign_in and caller().user_id is None
    address = request.path if not action.needs_sign_in else f"/-/notifications/s/{token}"
    return _page(200, action=action, count=len(ids), address=address, can_sign_in=can_sign_in, form=Form(formdata=None))


@pages.post(WITH_SESSION)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def acknowledge_with_session(token: str) -> Response:
    """Acknowledge the alerts of a message to a shared channel, as the user who is signed in."""
    action = acting.find(links.read(token))
    if action is None or not acting.may_acknowledge(current_user(), action.delivery):
        return _page(404, text=INVALID)
    return _page(200, text=_told(action, acting.perform(action, current_user())), action=action)


@actions.errorhandler(Exception)
def _render(error: Exception) -> Response:
    return _answer(responses.as_service_error(error).status, "It did not work. Try again in a minute.")


@actions.post(LINK)
def acknowledge(token: str) -> Response:
    """Acknowledge the alerts of a message: the token is the right, no session and no form token are needed."""
    if (wait := rate_limits.count(ACTIONS.counter(request.remote_addr or ""))) is not None:
        response = _answer(429, "Too many requests. Try again in a minute.")
        response.headers["Retry-After"] = str(rate_limits.seconds_of(wait))
        return response
    with unit_of_work():
        action = acting.find(links.read(token))
        text = INVALID if action is None or action.needs_sign_in else _told(action, acting.perform(action))
    if action is None:
        return _answer(404, INVALID)
    if not action.needs_sign_in:
        return _answer(200, text, action)
    if _wants_html():
        return make_response(redirect(request.path, 303))
    return _answer(403, "Open the link and sign in: this channel is shared.")


def _told(action: LinkedAction, result: Acknowledged) -> str:
    done = "resolved" if action.link.action == links.RESOLVE else "acknowledged"
    if result.count:
        return f"{done.capitalize()} {result.count} alert{'' if result.count == 1 else 's'}."
    return f"Already {done} by @{result.earlier_by}." if result.earlier_by else "No alert is waiting any more."


def _answer(status: int, text: str, action: LinkedAction | None = None) -> Response:
    """Answer a program with plain text, a browser with a page."""
    if not _wants_html():
        return Response(text, status, HEADERS, mimetype="text/plain")
    with reading():
        g.caller = identity.by_session()
    return _page(status, text=text, action=action)


def _page(status: int, **values: Any) -> Response:
    defaults = {"text": None, "action": None, "count": 0, "address": "", "can_sign_in": False, "form": None}
    values |= {"resolve_url": _resolve_url(values.get("action")) if values.get("text") else None}
    html = render_template("notifications/action.html", **defaults | values, path=request.path)
    return make_response(html, status, HEADERS)


def _resolve_url(action: LinkedAction | None) -> str | None:
    """Return the link by which what was acknowledged can be resolved."""
    is_acknowledged = action is not None and action.link.action == links.ACKNOWLEDGE
    return links.address_of(replace(action.link, action=links.RESOLVE)) if action and is_acknowledged else None


def _wants_html() -> bool:
    return "text/html" in request.headers.get("Accept", "")
