"""What the pages of channels and messages show and do, whoever owns them (notifications reference, section 5)."""

from __future__ import annotations

import json
from typing import Any

from flask import flash, redirect, request
from flask.typing import ResponseReturnValue

from project_service.areas.notifications import page_parts
from project_service.areas.notifications.channels import queries, service
from project_service.areas.notifications.channels.forms import HINTS, ChannelForm, form_of, new_form
from project_service.areas.notifications.kinds import KINDS
from project_service.areas.notifications.models import PERSONAL_TYPES, STATUSES, TYPES
from project_service.areas.notifications.owners import Owner
from project_service.areas.notifications.rules.queries import number_of_rules
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit import mail
from project_service.kit.http.errors import Unprocessable
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

PER_PAGE = 20
STATES = {"ok": "Works", "unconfirmed": "Not confirmed", "failing": "Failing", "disabled": "Disabled"}


def channel_list(owner: Owner) -> str:
    """Show the channels of an owner."""
    page = read_page(queries.usable_channels(owner), request.args.get("page"), PER_PAGE)
    has_rules = isinstance(owner, User) or number_of_rules(owner) > 0
    return page_parts.show(
        "channels.html",
        owner,
        "",
        channels=page,
        kinds=KINDS,
        states=STATES,
        types=_types(owner),
        has_rules=has_rules,
        mail_is_on=mail.is_on(),
        form=Form(formdata=None),
    )


def _types(owner: Owner) -> tuple[str, ...]:
    return PERSONAL_TYPES if isinstance(owner, User) else TYPES


def new_channel(owner: Owner) -> str:
    """Show the types of channels, or the form of one."""
    type_ = request.args.get("type", "")
    if type_ not in _types(owner):
        return page_parts.show("types.html", owner, "", types=_types(owner), kinds=KINDS, hints=HINTS)
    return _form(owner, new_form(type_), type_)


def create_channel(owner: Owner) -> ResponseReturnValue:
    """Create a channel."""
    type_, form = request.args.get("type", ""), ChannelForm()
    if type_ not in _types(owner):
        return redirect(f"{page_parts.address_of(owner)}/channels/new")
    created = form.accepted(lambda: service.create_channel(owner, type=type_, **form.fields(type_)))
    if created is None:
        return _form(owner, form, type_), 422
    flash(
        "Channel created" if created.result.confirmed_at else "Channel created: a mail asks the address to confirm it"
    )
    return _after(owner, created.result.id)


def edit_channel(owner: Owner, channel_id: int) -> str:
    """Show the form of a channel."""
    channel = queries.find_channel(owner, channel_id)
    return _form(owner, form_of(channel), channel.type, channel)


def update_channel(owner: Owner, channel_id: int) -> ResponseReturnValue:
    """Change a channel."""
    channel, form = queries.find_channel(owner, channel_id), ChannelForm()
    if not form.accepted(lambda: service.update_channel(owner, channel, **form.fields(channel.type))):
        stored = queries.find_channel(owner, channel_id)
        return _form(owner, form, stored.type, stored), 422
    flash("Channel changed")
    return _after(owner, channel_id)


def _after(owner: Owner, channel_id: int) -> ResponseReturnValue:
    if "test" in request.form:
        return test_channel(owner, channel_id)
    return redirect(page_parts.address_of(owner))


def _form(owner: Owner, form: ChannelForm, type_: str, channel: Any = None) -> str:
    kind = KINDS[type_]
    return page_parts.show(
        "channel.html",
        owner,
        "",
        form=form,
        fields=form.shown(type_),
        channel=channel,
        kind=kind,
        hint=HINTS[type_],
        states=STATES,
    )


def test_channel(owner: Owner, channel_id: int) -> ResponseReturnValue:
    """Send a test to a channel, and tell its result."""
    channel = queries.find_channel(owner, channel_id)
    name = channel.name
    try:
        tested = service.test_channel(owner, channel)
    except Unprocessable as error:
        flash(f'The test of "{name}" failed: {error.message}')
    else:
        flash(f'The test of "{name}" was delivered in {tested["duration"]} s')
    return redirect(page_parts.address_of(owner))


def ask_delete_channel(owner: Owner, channel_id: int) -> str:
    """Ask before a channel is deleted."""
    channel = queries.find_channel(owner, channel_id)
    question = f"Delete the channel “{channel.name}”? Rules that name it tell their other targets only."
    owner_context: dict[str, Any] = {"project": owner} if isinstance(owner, Project) else {"base": "account.html"}
    owner_context = {"group": owner} if isinstance(owner, Group) else owner_context
    return confirmation("Delete channel", question, "Delete channel", page_parts.address_of(owner), **owner_context)


def delete_channel(owner: Owner, channel_id: int) -> ResponseReturnValue:
    """Delete a channel."""
    service.delete_channel(owner, queries.find_channel(owner, channel_id))
    flash("Channel deleted")
    return redirect(page_parts.address_of(owner))


def message_list(owner: Owner) -> str:
    """Show messages, newest first."""
    status, number = request.args.get("status", ""), whole_number(request.args.get("channel_id", ""))
    statement = queries.deliveries_of(owner, status=status if status in STATUSES else None, channel_id=number)
    page = read_page(statement, request.args.get("page"), PER_PAGE)
    return page_parts.show("deliveries.html", owner, "/deliveries", page=page, status=status, statuses=STATUSES)


def message_page(owner: Owner, delivery_id: int) -> str:
    """Show one message."""
    delivery = queries.find_delivery(owner, delivery_id)
    content = json.dumps(delivery.content, indent=2, ensure_ascii=False)
    form = Form(formdata=None)
    return page_parts.show("delivery.html", owner, "/deliveries", delivery=delivery, content=content, form=form)


def resend_message(owner: Owner, delivery_id: int) -> ResponseReturnValue:
    """Send a message again."""
    try:
        service.resend(owner, queries.find_delivery(owner, delivery_id))
    except Unprocessable as error:
        flash(str(error.message))
    else:
        flash("The message is sent again")
    return redirect(f"{page_parts.address_of(owner)}/deliveries")
