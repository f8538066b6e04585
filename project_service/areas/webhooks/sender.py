"""The sender of web hooks, and the listener that queues events for them (webhooks reference, sections 8, 11 and 12)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, or_, select
from sqlalchemy.orm import joinedload, load_only

from project_service.areas.webhooks import chains, logs
from project_service.areas.webhooks.branch_filters import admits
from project_service.areas.webhooks.models import DISABLED, TEMPORARILY_DISABLED, WebHook
from project_service.areas.webhooks.requests import HookRequest, HookResponse, perform, request_of
from project_service.areas.webhooks.triggers import ALWAYS_SENT_TO_SYSTEM, SYSTEM_HOOK, header_of, trigger_of
from project_service.domain import instance_settings
from project_service.domain.accounts import user_pictures
from project_service.domain.hooks.hook_events import HookEvent
from project_service.domain.namespaces import NamespaceAncestor
from project_service.domain.projects import Project
from project_service.kit import deliveries, exact_json
from project_service.kit.db.base import Key
from project_service.kit.db.session import db
from project_service.kit.deliveries import Delivery, DeliveryOutcome, DeliveryResult, Hold, Loaded
from project_service.kit.security.outgoing_http.rules import Policy

RETRY_DELAYS = (
    dt.timedelta(seconds=10),
    dt.timedelta(minutes=1),
    dt.timedelta(minutes=10),
    dt.timedelta(hours=1),
)
MAX_RETRY_AFTER = dt.timedelta(hours=1)
REPEATED_STATUSES = ("408", "429")


def on_event(event: HookEvent) -> None:
    """Queue an event for the hooks that want it, in its transaction: the payload once, a delivery for each."""
    on_events([event])


def on_events(events: Sequence[HookEvent]) -> None:
    """Queue events that the same hooks want: the payloads in one statement, and the deliveries in another."""
    event = events[0]
    hooks = event.listeners
    if hooks is None:
        project_id = None if event.project is None else event.project.id
        above = _hooks_above(project_id, None if event.group is None else event.group.id)
        hooks = [hook for hook in above if _wants(hook, event.flag, event.branch)]
    hooks = chains.not_sent_before(hooks)
    for group in ([hook for hook in hooks if not hook.is_system], [hook for hook in hooks if hook.is_system]):
        if not group:
            continue
        content = {
            "flag": event.flag,
            "trigger": "system_hooks" if group[0].is_system else event.trigger or trigger_of(event.flag),
        }
        bodies = [exact_json.dumps(_payload_of(event, is_system=group[0].is_system)).decode() for event in events]
        payloads = deliveries.add_payloads(bodies)
        deliveries.enqueue_all(
            (hook.receiver, content | {"event_uuid": chains.of_request() or chains.begun_by(hook.id)}, payload)
            for payload in payloads
            for hook in group
        )


def _payload_of(event: HookEvent, *, is_system: bool) -> dict[str, Any]:
    return event.system_payload() if is_system and event.system_payload is not None else event.payload()


def on_question(project_id: int, flag: str) -> list[WebHook]:
    """Return the hooks that want events of a project, whatever the branch."""
    return [hook for hook in _hooks_above(project_id, None) if _wants(hook, flag, None)]


def _hooks_above(project_id: int | None, group_id: int | None) -> Iterator[WebHook]:
    """Return the hooks of a project or group, of the groups above it, and of the instance."""
    if project_id is None:
        rows = db.session.execute(HOOKS_ABOVE_GROUP, {"group": group_id})
    else:
        rows = db.session.execute(HOOKS_ABOVE_PROJECT, {"project": project_id})
    for hook, shows_gravatars, *project in rows:
        user_pictures.note_switch(shows_gravatars)
        hook.listened_project = project[0] if project else None
        yield hook


def _select_hooks(groups: Select[int], *conditions: ColumnElement[bool]) -> Select[WebHook, Any]:
    of_instance = and_(WebHook.project_id.is_(None), WebHook.group_id.is_(None))
    columns = load_only(
        WebHook.project_id,
        WebHook.group_id,
        WebHook.events,
        WebHook.push_events_branch_filter,
        WebHook.branch_filter_strategy,
    )
    # the setting is needed for the users of payloads
    statement = select(WebHook, user_pictures.switch()).where(
        or_(WebHook.group_id.in_(groups), of_instance, *conditions)
    )
    return statement.options(columns).order_by(WebHook.id)


_ABOVE = select(NamespaceAncestor.ancestor_id)
_PROJECT_ID = bindparam("project", type_=Key)
# every change asks for its hooks: the statements are built once; the project is for the payloads
HOOKS_ABOVE_GROUP = _select_hooks(_ABOVE.where(NamespaceAncestor.namespace_id == bindparam("group", type_=Key)))
HOOKS_ABOVE_PROJECT = (
    _select_hooks(
        _ABOVE.join(Project, Project.namespace_id == NamespaceAncestor.namespace_id).where(Project.id == _PROJECT_ID),
        WebHook.project_id == _PROJECT_ID,
    )
    .add_columns(Project)
    .join(Project, Project.id == _PROJECT_ID)
    .options(joinedload(Project.namespace))
)


def _wants(hook: WebHook, flag: str, branch: str | None) -> bool:
    if hook.is_system and flag in ALWAYS_SENT_TO_SYSTEM:
        return True
    return hook.enables(flag) and (branch is None or admits(hook, branch))


class WebHookSender(deliveries.Sender):
    """Sends events in order per hook; a repeated one is passed by those after it."""

    kind = "web_hook"

    def load(self, batch: Sequence[Delivery]) -> Loaded | Hold:
        """Return the request of a delivery; nothing for a hook that was deleted or is disabled for good."""
        [delivery] = batch
        hook = db.session.get(WebHook, delivery.receiver_id)
        if hook is None or hook.alert_status == DISABLED or delivery.payload is None or _is_in_removal(hook):
            return Loaded([None])
        if hook.alert_status == TEMPORARILY_DISABLED and hook.disabled_until is not None:
            return Hold(hook.disabled_until)
        content = delivery.content
        message = request_of(
            hook,
            policy_of(hook),
            flag=content["flag"],
            trigger=content["trigger"],
            event_header=SYSTEM_HOOK if hook.is_system else header_of(content["flag"]),
            payload=delivery.payload.body,
            payload_id=delivery.payload_id,
            idempotency_key=delivery.idempotency_key,
            event_uuid=content.get("event_uuid"),
            attempt=delivery.attempts + 1,
        )
        return Loaded([message], share=share_of(hook))

    def send(self, messages: Sequence[HookRequest]) -> Iterator[DeliveryOutcome]:
        """Send one request."""
        for message in messages:
            yield outcome_of(perform(message))

    def settle(self, delivery: Delivery, outcome: DeliveryOutcome, next_attempt_at: dt.datetime | None) -> None:
        """Write the log and count the result, if the hook still exists."""
        hook = db.session.get(WebHook, delivery.receiver_id)
        if hook is None:
            return
        if outcome.result is DeliveryResult.DROPPED:
            hook.dropped_events += 1
            return
        logs.record_attempt(hook, outcome.details)

    def retry_delay(self, delivery: Delivery, outcome: DeliveryOutcome) -> dt.timedelta | None:
        """Return the pause before the next attempt (webhooks reference, section 11)."""
        return deliveries.backoff(RETRY_DELAYS, delivery, outcome, MAX_RETRY_AFTER)


def outcome_of(response: HookResponse) -> DeliveryOutcome:
    """Return what the engine is to do after an answer."""
    error = None if response.is_success else response.error or f"HTTP {response.status}"
    if response.is_success:
        result = DeliveryResult.DELIVERED
    elif response.status in REPEATED_STATUSES or not response.status.isdigit() or response.status.startswith("5"):
        result = DeliveryResult.AGAIN
    else:
        result = DeliveryResult.FINAL
    return DeliveryOutcome(result, error, response.retry_after_seconds, response)


def policy_of(hook: WebHook) -> Policy:
    """Return which addresses a hook may reach; those of administrators may be local."""
    policy = instance_settings.outgoing_policy()
    if not hook.is_system:
        return policy
    return Policy(allow_local=True, allowed=policy.allowed, own_url=policy.own_url)


def _is_in_removal(hook: WebHook) -> bool:
    owner: Any = hook.project if hook.project_id is not None else hook.group
    return owner is not None and owner.deleting_since is not None


def share_of(hook: WebHook) -> str | None:
    """Return whose threads a hook uses; all projects of a person count as one."""
    if hook.project is not None:
        owner_id = hook.project.namespace.owner_id
        return f"project:{hook.project_id}" if owner_id is None else f"user:{owner_id}"
    return f"group:{hook.group_id}" if hook.group_id is not None else None


deliveries.register(WebHookSender())
