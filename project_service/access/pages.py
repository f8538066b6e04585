"""The blueprint of the pages: the same steps as the API, with a browser session in place of a token."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, g, redirect, request, url_for
from flask_wtf.csrf import CSRFProtect
from werkzeug.wrappers import Response

from project_service.access import identity, steps
from project_service.access.abilities import Ability
from project_service.kit.database import unit_of_work

SIGN_IN = "sessions.sign_in"
csrf = CSRFProtect()
View = Callable[..., Any]


class PageBlueprint(Blueprint):
    """The pages of one area."""

    def add_url_rule(self, rule: str, endpoint: str | None = None, view_func: Any = None, *args: Any, **options: Any) -> None:
        """Register a page behind the steps of a request; a page that names no ability does not register."""
        steps.check_guarded(view_func)
        super().add_url_rule(rule, endpoint or view_func.__name__, self._answer(view_func), *args, **options)

    def signed_in(self, view: View) -> View:
        """Somebody has to be signed in; a browser is sent to the sign-in page and comes back afterwards."""

        @functools.wraps(view)
        def checked(*args: Any, **url: Any) -> Any:
            if identity.caller().user_id is None:
                return redirect(url_for(SIGN_IN, next=request.full_path.rstrip("?") if request.method == "GET" else None))
            return view(*args, **url)

        checked.needs_user = True  # type: ignore[attr-defined]  # a mark for the guard of the route table
        return checked

    def allow(self, ability: Ability) -> Callable[[View], View]:
        """Find what the URL is about, judge, hide."""
        return steps.allow(ability)

    def _answer(self, view: View) -> View:
        @functools.wraps(view)
        def answered(**url: Any) -> Any:
            writing = request.method not in identity.READ_METHODS
            if writing:
                csrf.protect()
            with unit_of_work(write=False):
                g.caller = identity.by_session()
            with unit_of_work(write=writing):
                return view(**url)

        return answered


def back_to(address: str | None, otherwise: str) -> Response:
    """Go where a form says people came from, if that is a page of ours; never anywhere else."""
    return redirect(address if address and is_ours(address) else otherwise)


def is_ours(address: str) -> bool:
    """Whether an address is a path on this server: no scheme, no host, no tricks with slashes and backslashes."""
    parts = urlsplit(address)
    return (
        not parts.scheme
        and not parts.netloc
        and address.startswith("/")
        and not address.startswith(("//", "/\\"))
        and "\\" not in address
        and address.isprintable()
    )
