"""Chains of events: a hook is not sent again in a chain that its own request began (webhooks reference, section 9).

A request of a hook names its chain in ``X-Gitlab-Event-UUID``. A receiver that calls the API because of it passes the
header on, and what that call changes belongs to the same chain. The name of a chain that a hook begins is made so that
the hook can be recognised in it: nothing is stored until a request passes one on.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import uuid
from collections.abc import Iterable

import structlog
from flask import g, has_request_context, request

from project_service.areas.webhooks.models import WebHook
from project_service.domain import rate_limits
from project_service.domain.rate_limits import LimitExceeded, RateLimit

MEMORY = dt.timedelta(minutes=30)
MAX_HOOKS = 100
UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
SENT = RateLimit("web_hook_chain:hook", 1, int(MEMORY.total_seconds()))
LENGTH = RateLimit("web_hook_chain", MAX_HOOKS, int(MEMORY.total_seconds()))

log = structlog.get_logger(__name__)


def of_request() -> str | None:
    """Return the chain that the current request belongs to, if its client says so."""
    chain = request.headers.get("X-Gitlab-Event-UUID", "") if has_request_context() else ""
    return chain if UUID.fullmatch(chain) else None


def begun_by(hook_id: int) -> str:
    """Return a new chain that a hook begins."""
    return str(_chain(uuid.uuid4().bytes[:8], hook_id))


def not_sent_before(hooks: Iterable[WebHook]) -> list[WebHook]:
    """Return the hooks that were not sent yet in the chain of the current request; all of them without a chain."""
    chain = of_request()
    return list(hooks) if chain is None else [hook for hook in hooks if _is_new(uuid.UUID(chain), hook.id)]


def _is_new(chain: uuid.UUID, hook_id: int) -> bool:
    """Decide once per request whether a hook may be sent, so that it gets all events of the request or none."""
    decided: dict[int, bool] = g.setdefault("decided_hooks_of_chain", {})
    if hook_id not in decided:
        decided[hook_id] = _chain(chain.bytes[:8], hook_id) != chain and _count(chain, hook_id)
        if not decided[hook_id]:
            log.warning("web hook not sent again in its chain", hook=hook_id, chain=str(chain))
    return decided[hook_id]


def _count(chain: uuid.UUID, hook_id: int) -> bool:
    """Count a hook in the transaction of the change; false if it was counted before, or the chain is too long."""
    counters = SENT.counter(str(chain), hook_id), LENGTH.counter(str(chain))
    if rate_limits.wait_of(*counters) is not None:
        return False
    try:
        rate_limits.count_in_unit(*counters)
    except LimitExceeded:  # another request of the chain was faster
        return False
    return True


def _chain(seed: bytes, hook_id: int) -> uuid.UUID:
    digest = hashlib.sha256(seed + str(hook_id).encode()).digest()
    return uuid.UUID(bytes=seed + digest[:8], version=4)
