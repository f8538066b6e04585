"""Structured logs: one JSON object a line, each with the id of the request or job it belongs to.

What could be a secret is replaced before it is written, wherever in an entry it stands.
"""

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

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
HIDDEN = "[FILTERED]"
STANDARD_ERROR = 2
_NAMES = "token|passw(?:or)?d|secret|api[-_]?key|private"
_HEADERS = "authorization|cookie"
_IS = r"""[\w-]{0,40}\\*["']?\s*[=:]\s*"""
_SUSPICIOUS = re.compile(rf"{_NAMES}|{_HEADERS}|://", re.IGNORECASE)
# one is in whatever matches the above; none has an "i", which is one of four letters to whoever ignores case
_WORDS = ("token", "passw", "secret", "key", "vate", "author", "cook", "://")
_SECRET_NAME = re.compile(rf"{_NAMES}|{_HEADERS}", re.IGNORECASE)
_IN_TEXT = (
    re.compile(rf"""(?is)((?:{_NAMES}|{_HEADERS}){_IS}b?\\*(["']))(?:(?!\2).)*"""),  # all there is between the quotes
    re.compile(rf"""(?i)((?:{_HEADERS}){_IS})(?!b?\\*["'])[^\r\n"']+"""),  # a header: the rest of its line
    re.compile(rf"""(?i)((?:{_NAMES}){_IS})(?!b?\\*["'])[^\s"'&,;]+"""),  # anything else: a word
    re.compile(r"(://)[^/\s?#\"']*(?=@)"),  # credentials of an address
)


def configure(level: str) -> None:
    """Send structlog and the standard library's loggers to standard error as JSON lines.

    Our own lines go there directly: through the standard library each would take five times as long, and every request
    writes one.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        hide_secrets,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=_as_bytes)],
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
    # it warns of odd headers with all that the far side sent, which may be what it was sent: credentials in any coding
    logging.getLogger("urllib3").setLevel("ERROR")


def hide_secrets(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace what could be a secret: by the name of its key, and inside texts."""
    whole = repr(entry).casefold()
    if not any(word in whole for word in _WORDS):  # nearly all lines: one look instead of one at each value
        return entry
    for name, value in entry.items():
        entry[name] = _hidden(name, value)
    return entry


def new_request_id() -> str:
    """An id for a request that brought none."""
    return f"{random.getrandbits(128):032x}"  # it protects nothing, and need not ask the kernel


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
    if not _SUSPICIOUS.search(text):  # nearly all lines: one look instead of four
        return text
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def _dumps(entry: Any, **options: Any) -> str:
    return _as_bytes(entry, **options).decode()


def _as_bytes(entry: Any, **_options: Any) -> bytes:
    return orjson.dumps(entry, default=_as_text, option=orjson.OPT_NON_STR_KEYS)


def _as_text(value: Any) -> str:
    return _without_secrets(str(value))


def bind(**values: Any) -> None:
    """Begin anew with these values: a thread serves one request after the other."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**values)
