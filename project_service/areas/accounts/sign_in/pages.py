"""Pages: sign in, sign out."""

from __future__ import annotations

from flask import redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import SESSION_KEY, caller
from project_service.access.pages import PageBlueprint, back_to
from project_service.access.sign_in import password_sign_ins
from project_service.areas.accounts.sign_in import queries as session_queries
from project_service.areas.accounts.sign_in import sessions as sign_in_sessions
from project_service.areas.accounts.sign_in import signing_in
from project_service.areas.accounts.sign_in.forms import SignInForm
from project_service.domain.accounts import sign_ins
from project_service.domain.accounts.sign_ins import TooManyFailures, WrongPassword
from project_service.kit import mail
from project_service.kit.db.session import unit_of_work

sessions = PageBlueprint("sessions", __name__)

HOME = "home_pages.show_home"
WRONG_LOGIN = "Invalid login or password."


@sessions.get("/users/sign_in")
@sessions.allow(Ability.ANYBODY)
def sign_in() -> ResponseReturnValue:
    """Show the sign-in form."""
    if caller().user_id is not None:
        return back_to(request.args.get("next"), url_for(HOME))
    return _sign_in(SignInForm())


@sessions.post("/users/sign_in")
@sessions.own_transactions
@sessions.allow(Ability.ANYBODY)
def create_session() -> ResponseReturnValue:
    """Sign in."""
    form = SignInForm()
    if not form.validate():
        return _sign_in(form), 422
    try:
        user = password_sign_ins.authenticate(
            form.login.data or "", form.password.data or "", sign_in_sessions.may_have_session
        )
        verified_hash = user.password_hash
        with unit_of_work():
            sign_in_sessions.lock_for_sign_in(user, verified_hash)
            sign_ins.reset_failures(user)
            if user.two_factor_enabled:
                signing_in.wait_for_second_factor(user)
                return redirect(url_for("two_factor_pages.ask_code", next=request.args.get("next")))
            signing_in.begin(user, second_factor=False)
            return back_to(request.args.get("next"), url_for(HOME))
    except TooManyFailures as error:
        form.problems.append(signing_in.wait_text(error.wait))
        return _sign_in(form), 429
    except WrongPassword:
        form.problems.append(WRONG_LOGIN)
        return _sign_in(form), 401


def _sign_in(form: SignInForm) -> str:
    is_new = session_queries.is_first_user_new()
    return render_template("accounts/sign_in.html", form=form, can_mail=mail.is_on(), is_new=is_new)


@sessions.post("/users/sign_out")
@sessions.with_expired_password
@sessions.without_two_factor
@sessions.allow(Ability.ANYBODY)
def delete_session() -> ResponseReturnValue:
    """Sign out."""
    if secret := session.get(SESSION_KEY):
        sign_in_sessions.sign_out(str(secret))
    session.clear()
    return redirect(url_for(".sign_in"))
