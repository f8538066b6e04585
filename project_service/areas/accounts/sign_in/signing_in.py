"""The browser's part of signing in: the session cookie, and the time between password and second factor."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from flask import request, session

from project_service.access.identity import SESSION_KEY
from project_service.areas.accounts.profile.forms import OwnPasswordForm
from project_service.areas.accounts.sign_in import passwords, sessions
from project_service.domain.accounts import sign_ins
from project_service.domain.accounts.sign_ins import TooManyFailures, WrongPassword
from project_service.domain.accounts.users import ACTIVE, DEACTIVATED, User
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import Accepted, Result
from project_service.kit.security import tokens

WAITING_KEY = "second_factor"  # of the user who has sent a right password, in the signed cookie
WAITING_SECONDS = 600
MAX_AGENT_LENGTH = 255
NOT_RIGHT = "is not right"


def begin(user: User, *, second_factor: bool) -> None:
    """Sign a user in at this browser."""
    agent = request.user_agent.string[:MAX_AGENT_LENGTH]
    secret = sessions.start_session(user, second_factor=second_factor, address=request.remote_addr, agent=agent)
    session.clear()  # the session of before the sign-in must not survive it
    session[SESSION_KEY] = secret
    session.permanent = True


def wait_for_second_factor(user: User) -> None:
    """Remember in the cookie that a user has sent a right password, and nothing else."""
    session.clear()
    until = int(clock.now().timestamp()) + WAITING_SECONDS
    session[WAITING_KEY] = {"user": user.id, "until": until, "proof": _proof(user)}


def waiting_user() -> User | None:
    """Return the user whose second factor is waited for; a change of the password ends the waiting."""
    waiting = session.get(WAITING_KEY)
    if not isinstance(waiting, dict) or waiting["until"] < clock.now().timestamp():
        return None
    user = db.session.get(User, waiting["user"])
    if user is None or user.deleting_since is not None or user.state not in (ACTIVE, DEACTIVATED):
        return None
    return user if user.two_factor_enabled and tokens.same(waiting["proof"], _proof(user)) else None


def accepted_with_password(form: OwnPasswordForm, user: User, act: Callable[[], Result]) -> Accepted[Result] | None:
    """Accept a form, as ``Form.accepted``, whose sender has to prove the own password; wrong ones are counted.

    For views with ``own_transactions``: ``act`` runs in a unit of work that begins after the password was checked.
    """
    if not form.validate_on_submit():
        return None
    if problem := _password_problem(user, form.current_password.data or ""):
        form.refuse(Invalid(**{passwords.CURRENT: problem}))
        return None
    verified_hash = user.password_hash

    def act_if_unchanged() -> Result:
        try:
            sessions.lock_for_sign_in(user, verified_hash)
        except WrongPassword as error:
            raise Invalid(**{passwords.CURRENT: NOT_RIGHT}) from error
        return act()

    with unit_of_work():
        return form.accepted(act_if_unchanged)


def _password_problem(user: User, password: str) -> str | None:
    if not password:
        return "is missing"
    try:
        sign_ins.check_password(user, password, request.remote_addr)
    except WrongPassword:
        return NOT_RIGHT
    except TooManyFailures:
        return "was wrong too often; try again later"
    return None


def wait_text(wait: dt.timedelta) -> str:
    """Return what a page says when there were too many attempts."""
    minutes = max(1, round(wait.total_seconds() / 60))
    return f"Too many failed attempts. Try again in {minutes} minute{'s' if minutes > 1 else ''}."


def _proof(user: User) -> str:
    return tokens.digest(user.password_hash or "")
