"""The request, the application and what is kept beside them, as they are.

Flask's ``request``, ``current_app`` and ``g`` look for the real thing each time something is asked of them, which takes
six times as long as what is asked. What runs in every request gets the thing once, from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import flask
from flask.ctx import _AppCtxGlobals

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_served: ContextVar[WSGIEnvironment | None] = ContextVar("served", default=None)


def request() -> flask.Request:
    """The current request itself."""
    real: flask.Request = flask.request._get_current_object()  # type: ignore[attr-defined]  # of what stands for it
    return real


def app() -> flask.Flask:
    """The current application itself."""
    real: flask.Flask = flask.current_app._get_current_object()  # type: ignore[attr-defined]  # as above
    return real


def g() -> _AppCtxGlobals:
    """What is kept beside the current request, itself."""
    real: _AppCtxGlobals = flask.g._get_current_object()
    return real


def environ() -> WSGIEnvironment | None:
    """The environment of the current request, if there is one, whether Flask answers it or a layer in front of it."""
    return flask.request.environ if flask.has_request_context() else _served.get()


@contextmanager
def serving(environ: WSGIEnvironment) -> Iterator[None]:
    """Answer a request in front of Flask, with the application at hand and nothing else of a request of Flask's."""
    token = _served.set(environ)
    try:
        yield
    finally:
        _served.reset(token)
