"""Structured logs: JSON, or lines for people on a terminal, with request id; secrets are filtered in keys and texts."""

from __future__ import annotations

import functools
import logging
import os
import random
import re
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import orjson
import structlog

from project_service.kit import known_secrets

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
HIDDEN = "[FILTERED]"
STANDARD_ERROR = 2
LIFECYCLE = "project_service.lifecycle"  # the logger for starts, restarts and stops of processes
TEXT = "text"
_UTC_STAMP = structlog.processors.TimeStamper(fmt="iso", utc=True)
_NAMES = "token|passw(?:or)?d|passphrase|pwd|secret|api[-_]?key|private|signature|jwt"
_HEADERS = "authorization|cookie"
_IS = r"""[\w-]{0,40}\\*["']?\s*[=:]\s*"""
_SUSPICIOUS = re.compile(rf"{_NAMES}|{_HEADERS}|://", re.IGNORECASE)  # besides known secrets
# every match above contains one of these; none has an "i", which has four forms when case is ignored
_WORDS = (
    *("token", "pass", "pwd", "secret", "key", "vate", "author", "cook", "://", "gnature", "jwt"),
    *known_secrets.HINTS,
)
_SECRET_NAME = re.compile(rf"{_NAMES}|{_HEADERS}", re.IGNORECASE)
_IN_TEXT = (
    # credentials of an address; first, since the others may take the "@" for a part of a secret
    re.compile(r"(://)[^/\s?#\"']*(?=@)"),
    re.compile(rf"""(?is)((?:{_NAMES}|{_HEADERS}){_IS}b?\\*(["']))(?:(?!\2).)*"""),  # between the quotes
    re.compile(rf"""(?i)((?:{_HEADERS}){_IS})(?!b?\\*["'])[^\r\n"']+"""),  # a header: the rest of the line
    re.compile(rf"""(?i)((?:{_NAMES}){_IS})(?!b?\\*["'])[^\s"'&,;]+"""),  # others: one word
)


def configure(level: str | None, log_format: str | None = None) -> None:
    """Send structlog and the standard library's loggers to standard error.

    The level is by default ``INFO``; on a terminal it is ``WARNING``, with the lines of ``LIFECYCLE``, so that what the
    start printed stays in sight.

    The format is ``json`` or ``text``, lines for people; by default text on a terminal and JSON elsewhere. structlog
    writes directly: through the standard library each line would take five times as long.
    """
    is_terminal = os.isatty(STANDARD_ERROR)
    lifecycle_level = level or "INFO"
    level = level or ("WARNING" if is_terminal else "INFO")
    as_text = log_format == TEXT or (log_format is None and is_terminal)
    stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False) if as_text else _UTC_STAMP
    render_lines: Any = structlog.dev.ConsoleRenderer(colors=is_terminal and not os.environ.get("NO_COLOR"))
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.stdlib.add_logger_name,
        stamp,
        structlog.processors.format_exc_info,
        hide_secrets,
    ]
    structlog.configure(
        processors=[
            *shared,
            *([render_lines, _encode] if as_text else [structlog.processors.JSONRenderer(serializer=_as_bytes)]),
        ],
        logger_factory=structlog.BytesLoggerFactory(os.fdopen(STANDARD_ERROR, "wb", closefd=False)),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    output = logging.StreamHandler(os.fdopen(STANDARD_ERROR, "w", closefd=False))
    output.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                render_lines if as_text else structlog.processors.JSONRenderer(serializer=_dumps),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [output]
    root.setLevel(level)
    logging.getLogger(LIFECYCLE).setLevel(lifecycle_level)
    logging.getLogger("alembic").setLevel("WARNING")
    for name in ("rq", "rq.worker"):
        logging.getLogger(name).setLevel("WARNING")
    # its warnings about invalid headers quote the response, which may repeat credentials of the request in any encoding
    logging.getLogger("urllib3").setLevel("ERROR")


def hide_secrets(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace values with a secret's key, and secrets inside texts (structlog processor)."""
    text = repr(entry).casefold()
    if not any(word in text for word in _WORDS):  # most lines: one search instead of one for each value
        return entry
    for name, value in entry.items():
        entry[name] = _hidden(name, value)
    return entry


def new_request_id() -> str:
    """Return an id for a request without one."""
    return f"{random.getrandbits(128):032x}"  # not a secret: a fast generator is enough


def request_id() -> str | None:
    """Return the id of the current request or job."""
    bound_id: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return bound_id


@contextmanager
def bound(**values: Any) -> Iterator[None]:
    """Add these values to every line that is logged inside the block."""
    with structlog.contextvars.bound_contextvars(**values):
        yield


def _hidden(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if _is_secret(name):
        return HIDDEN
    if isinstance(value, dict):
        return {key: _hidden(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_hidden(name, inner) for inner in value]
    return _without_secrets(value) if isinstance(value, str) else value


@functools.lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def _without_secrets(text: str) -> str:
    if _SUSPICIOUS.search(text):  # most texts: one search instead of four
        for pattern in _IN_TEXT:
            text = pattern.sub(rf"\1{HIDDEN}", text)
    return known_secrets.without_known_secrets(text, HIDDEN)


def _dumps(entry: Any, **options: Any) -> str:
    return _as_bytes(entry, **options).decode()


def _as_bytes(entry: Any, **_options: Any) -> bytes:
    return orjson.dumps(entry, default=_as_text, option=orjson.OPT_NON_STR_KEYS)


def _encode(_logger: Any, _method: str, line: str) -> bytes:
    return line.encode(errors="replace")


def _as_text(value: Any) -> str:
    return _without_secrets(str(value))


def bind(**values: Any) -> None:
    """Replace the values of the previous request of this thread."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**values)
