"""The request, the application and what is kept beside them, as they are.

Flask's ``request``, ``current_app`` and ``g`` look for the real thing each time something is asked of them, which takes
six times as long as what is asked. What runs in every request gets the thing once, from here.
"""

from __future__ import annotations

from typing import Any, cast

import flask
from flask.ctx import _AppCtxGlobals


def request() -> flask.Request:
    """The current request itself."""
    return cast("flask.Request", _real(flask.request))


def app() -> flask.Flask:
    """The current application itself."""
    return cast("flask.Flask", _real(flask.current_app))


def g() -> _AppCtxGlobals:
    """What is kept beside the current request, itself."""
    return cast("_AppCtxGlobals", _real(flask.g))


def _real(proxy: Any) -> Any:
    return proxy._get_current_object()
