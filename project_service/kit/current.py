"""The request, the application and what is kept beside them, as they are.

Flask's ``request``, ``current_app`` and ``g`` look for the real thing each time something is asked of them, which takes
six times as long as what is asked. What runs in every request gets the thing once, from here.
"""

from __future__ import annotations

import flask
from flask.ctx import _AppCtxGlobals


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
