"""How a request waits without keeping others from being answered."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from flask import has_request_context, request

ASIDE = "project_service.aside"  # of the environment of a request: our web server puts it there


def aside() -> AbstractContextManager[None]:
    """While this request waits for anything but the processor, let another one compute.

    Few requests compute at once (``kit.webserver.Crew``); elsewhere, and on other web servers, nothing happens.
    """
    if not has_request_context():
        return nullcontext()
    found: AbstractContextManager[None] = request.environ.get(ASIDE, nullcontext)()
    return found
