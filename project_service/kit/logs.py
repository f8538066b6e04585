"""Structured logs: one JSON object a line, each with the id of the request or job it belongs to.

What could be a secret is replaced before it is written, wherever in an entry it stands.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import orjson
import structlog

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_SECRET_NAMES = re.compile(r"(token|password|secret|authorization|cookie|api_key|private)", re.IGNORECASE)
_IN_TEXT = re.compile(
    r"(?i)((?:private[-_]token|access_token|authorization|password|secret|token)[\"']?\s*[=:]\s*[\"']?(?:bearer\s+)?)[^\s\"'&,;]+"
)
_USER_INFO = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+@")
HIDDEN = "[FILTERED]"


def configure(level: str) -> None:
    """Send structlog and the standard library's loggers to standard error as JSON lines."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        hide_secrets,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(serializer=_dumps),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [output]
    root.setLevel(level)
    logging.getLogger("alembic").setLevel("WARNING")
    for name in ("rq", "rq.worker"):
        logging.getLogger(name).setLevel("WARNING")


def hide_secrets(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace what could be a secret: by the name of its key, and inside texts."""
    for name, value in entry.items():
        entry[name] = _hidden(name, value)
    return entry


def new_request_id() -> str:
    """An id for a request that brought none."""
    return secrets.token_hex(16)


def request_id() -> str | None:
    """The id of the request or job at work."""
    found: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return found


@contextmanager
def bound(**values: Any) -> Iterator[None]:
    """Have every line written inside carry these values."""
    with structlog.contextvars.bound_contextvars(**values):
        yield


def _hidden(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _hidden(str(key), inner) for key, inner in value.items()}
    if isinstance(value, str):
        if _SECRET_NAMES.search(name):
            return HIDDEN
        return _USER_INFO.sub(f"{HIDDEN}@", _IN_TEXT.sub(rf"\1{HIDDEN}", value))
    return value


def _dumps(entry: Any, **_options: Any) -> str:
    return orjson.dumps(entry, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def bind(**values: Any) -> None:
    """Begin anew with these values: a thread serves one request after the other."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**values)
