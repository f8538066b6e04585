"""Create, change, delete, confirm and test channels (notifications reference, section 5)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from sqlalchemy import Select, func, select

from project_service.access import audit
from project_service.access.identity import current_user
from project_service.areas.notifications import deliveries_log, health
from project_service.areas.notifications.actions import acting, links
from project_service.areas.notifications.channels import confirming, queries
from project_service.areas.notifications.kinds import KINDS, Answer, ChannelKind
from project_service.areas.notifications.messages import OTHER, ChannelMessage, IncompleteMessage
from project_service.areas.notifications.models import EMAIL, NotificationChannel, NotificationDelivery
from project_service.areas.notifications.owners import Owner, column_of, kind_of, owned_by
from project_service.areas.notifications.sender import outgoing_of
from project_service.domain import instance_settings
from project_service.domain.accounts.users import User
from project_service.domain.hooks.hook_payloads import project_of
from project_service.domain.projects import Project
from project_service.domain.rate_limits import RateLimit
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db
from project_service.kit.deliveries import DeliveryOutcome, DeliveryResult
from project_service.kit.http import urls
from project_service.kit.http.errors import BadParameters, Invalid, Unprocessable

MAX_CHANNELS = {"project": 20, "group": 50, "user": 10}
MAX_NAME_LENGTH = 100
MAX_TEXT_LENGTH = 2048
MAX_RATE = 60
COMMON = ("name", "enabled", "anonymous_actions", "rate_per_minute")
MOVING = ("url", "server", "region")  # secrets that are not given anew do not follow them
TESTS = RateLimit("notification_channel:test", 5)
REPETITIONS = RateLimit("notification_delivery:resend", 5)


class ChannelFields(TypedDict, total=False):
    """What may be given of a channel; names of other types are ignored."""

    type: str
    name: str | None
    enabled: bool | None
    anonymous_actions: bool | None
    rate_per_minute: int | None
    custom_headers: Sequence[dict[str, str]] | None
    enable_ssl_verification: bool | None
    address: str | None
    url: str | None
    signing_token: str | None
    username: str | None
    icon_url: str | None
    channel: str | None
    body_style: str | None
    thread_id: str | None
    server: str | None
    topic: str | None
    token: str | None
    chat_id: str | None
    message_thread_id: str | None
    routing_key: str | None
    region: str | None


def create_channel(owner: Owner, /, **fields: Unpack[ChannelFields]) -> NotificationChannel:
    """Create a channel of a project, a group or a user."""
    kind = kind_of(owner)
    type_ = fields.pop("type")
    channel = NotificationChannel(
        type=type_,
        name="",
        target="",
        enabled=True,
        settings={},
        rate_per_minute=KINDS[type_].default_rate,
        anonymous_actions=False,
        final_failures=0,
        **{column_of(owner): owner.id},
    )
    with db.session.no_autoflush:
        _assign(owner, channel, fields)
    if queries.number_of_channels(owner) >= MAX_CHANNELS[kind]:
        raise Invalid(base=f"Maximum number of notification channels ({MAX_CHANNELS[kind]}) exceeded")
    channel.confirmed_at = clock.now() if confirming.is_known(owner, channel) else None
    db.session.add(channel)
    db.session.flush()
    if channel.confirmed_at is None:
        confirming.ask(channel)
    _audit(channel, owner, "created")
    return channel


def update_channel(
    owner: Owner, channel: NotificationChannel, /, **fields: Unpack[ChannelFields]
) -> NotificationChannel:
    """Change a channel; a new address has to be confirmed, another URL takes no secrets along."""
    if not fields:
        raise BadParameters("No parameters provided")
    before = channel.settings.get("address")
    with db.session.no_autoflush:
        _assign(owner, channel, fields)
    if channel.type == EMAIL and channel.settings["address"] != before:
        channel.confirmed_at = clock.now() if confirming.is_known(owner, channel) else None
        if channel.confirmed_at is None:
            confirming.ask(channel)
    if fields.get("enabled"):
        channel.failing_since = channel.troubled_since = channel.probe_at = None
        channel.final_failures = 0
    db.session.flush()
    _audit(channel, owner, "updated")
    return channel


def delete_channel(owner: Owner, channel: NotificationChannel) -> None:
    """Remove a channel; what waits for it is dropped."""
    _audit(channel, owner, "destroyed")
    delete_locked(channel)


def test_channel(owner: Owner, channel: NotificationChannel) -> dict[str, Any]:
    """Send a test now, without a transaction on the network.

    Raises:
        Unprocessable: the address is not confirmed, or what went wrong.

    """
    TESTS.check(kind_of(owner), owner.id, current_user().id)
    if channel.confirmed_at is None:
        raise Unprocessable("The address is not confirmed: only the mail that asks for it is sent")
    kind = KINDS[channel.type]
    message = _test_message(owner, channel)
    outgoing = outgoing_of(message, channel, str(uuid.uuid4()))
    channel_id = channel.id
    db.session.commit()
    outcome = kind.deliver_test(outgoing)
    _log_test(owner, db.session.get_one(NotificationChannel, channel_id), message, outcome)
    answer: Answer = outcome.details
    if outcome.result is not DeliveryResult.DELIVERED:
        db.session.commit()
        raise Unprocessable(outcome.error or "")
    return {
        "status": "delivered",
        "response_status": str(answer.status),
        "duration": round(answer.duration_seconds, 2),
    }


def resend(owner: Owner, delivery: NotificationDelivery) -> NotificationDelivery:
    """Send a message once more.

    Raises:
        Unprocessable: the channel is gone or takes nothing, or the stored message is incomplete.

    """
    REPETITIONS.check(kind_of(owner), owner.id, current_user().id)
    if delivery.channel is None and delivery.user is None:
        raise Unprocessable("The channel was deleted")
    if delivery.channel is not None and delivery.channel.state in ("disabled", "unconfirmed"):
        raise Unprocessable(f"The channel is {delivery.channel.state}")
    try:
        message = ChannelMessage.from_json(delivery.content)
    except IncompleteMessage as error:
        raise Unprocessable("The stored message is incomplete and cannot be sent again") from error
    message = replace(message, alert_ids=tuple(acting.alert_ids_of(delivery, links.RESOLVE)))
    return deliveries_log.write(message, project=delivery.project, channel=delivery.channel, user=delivery.user)


def _assign(owner: Owner, channel: NotificationChannel, fields: Mapping[str, Any]) -> None:
    """Set what is given, or raise ``Invalid`` with everything that is wrong."""
    kind = KINDS[channel.type]
    given = {name: value for name, value in fields.items() if name in (*kind.fields, *kind.secrets)}
    if given.get("custom_headers") is not None:
        given["custom_headers"] = {pair["key"]: pair["value"] for pair in given["custom_headers"]}
    settings, secrets = _merged(channel, kind, given)
    policy = instance_settings.outgoing_policy()
    db.session.commit()  # nothing is changed yet, and no lock is held while the name of a host is resolved
    problems = kind.problems(settings, secrets, policy)
    if channel.id is not None:  # it may have changed meanwhile
        lock_row(channel, "settings", "encoded_secrets")
        settings, secrets = _merged(channel, kind, given)
    problems |= _problems_of_common(owner, channel, fields)
    texts = (*settings.values(), *secrets.values())
    if any(isinstance(value, str) and len(value) > MAX_TEXT_LENGTH for value in texts):
        problems.setdefault("base", []).append(f"A text is too long (maximum is {MAX_TEXT_LENGTH} characters)")
    if problems:
        raise Invalid(**problems)
    for name in COMMON:
        if fields.get(name) is not None:
            setattr(channel, name, fields[name])
    channel.settings, channel.secrets = settings, secrets
    channel.target = kind.target(settings, secrets)


def _merged(
    channel: NotificationChannel, kind: ChannelKind, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and the secrets of a channel with what is given; another address takes no secrets along."""
    settings, secrets = dict(channel.settings), dict(channel.secrets)
    former = settings | secrets
    if any(name in given and given[name] != former.get(name) for name in MOVING):
        secrets = {}
    for name, value in given.items():
        values = settings if name in kind.fields else secrets
        if value in (None, "", {}):
            values.pop(name, None)
        else:
            values[name] = value
    return settings, secrets


def _problems_of_common(owner: Owner, channel: NotificationChannel, fields: Mapping[str, Any]) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {}
    name = fields.get("name", channel.name)
    if not (name or "").strip():
        problems["name"] = ["can't be blank"]
    elif len(name) > MAX_NAME_LENGTH:
        problems["name"] = [f"is too long (maximum is {MAX_NAME_LENGTH} characters)"]
    elif db.session.scalar(_named(owner, channel, name)) is not None:
        problems["name"] = ["has already been taken"]
    rate = fields.get("rate_per_minute")
    if rate is not None and not 1 <= rate <= MAX_RATE:
        problems["rate_per_minute"] = [f"must be from 1 to {MAX_RATE}"]
    return problems


def _named(owner: Owner, channel: NotificationChannel, name: str) -> Select[int]:
    same = select(NotificationChannel.id).where(
        owned_by(NotificationChannel, owner), func.lower(NotificationChannel.name) == name.lower()
    )
    return same.where(NotificationChannel.id != channel.id) if channel.id is not None else same


def _test_message(owner: Owner, channel: NotificationChannel) -> ChannelMessage:
    user = current_user()
    owner_path = owner.username if isinstance(owner, User) else owner.full_path
    if isinstance(owner, Project):
        project, url = project_of(owner), urls.absolute(f"/{owner.full_path}")
    else:
        url = urls.absolute(f"/{owner_path}")
        project = {"name": owner_path, "path_with_namespace": owner_path, "web_url": url}
    host = urls.host()
    text = f'{user.name} (@{user.username}) tests the channel "{channel.name}" of {owner_path}. No action is needed.'
    title = f"Test notification from {host}"
    return ChannelMessage(
        headline=title,
        project=project,
        url=url,
        kind="test",
        lines=(text,),
        state=OTHER,
        severity="info",
        mail_subject=title,
        at=clock.isoformat(clock.now()),
    )


def _log_test(owner: Owner, channel: NotificationChannel, message: ChannelMessage, outcome: DeliveryOutcome) -> None:
    answer: Answer = outcome.details
    logged = NotificationDelivery(
        project_id=owner.id if isinstance(owner, Project) else None,
        user_id=owner.id if isinstance(owner, User) else None,
        channel_id=channel.id,
        channel_name=channel.name,
        recipient=channel.target,
        kind="test",
        title=message.title,
        content=message.as_json(),
        triggered_count=0,
        resolved_count=0,
        other_count=0,
        attempts=0,
    )
    db.session.add(logged)
    is_delivered = outcome.result is DeliveryResult.DELIVERED
    deliveries_log.note_attempt(
        logged,
        delivered=is_delivered,
        response_status=None if answer.status is None else str(answer.status),
        error=outcome.error,
        next_attempt_at=None,
    )
    if is_delivered:
        health.note_success(channel)


def _audit(channel: NotificationChannel, owner: Owner, what: str) -> None:
    text = f"{what.capitalize()} notification channel {channel.name} ({channel.type}, {channel.target})"
    audit.record(f"notification_channel_{what}", owner, text)
