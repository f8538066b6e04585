"""Pages: sign in, sign out, personal access tokens, user profile."""

from __future__ import annotations

from typing import Any

from flask import redirect, render_template, request, session, url_for

from project_service.access import navigation, password_sign_ins
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import SESSION_KEY, caller, current_user
from project_service.access.pages import PageBlueprint, back_to
from project_service.areas.accounts import queries, service, signing_in
from project_service.areas.accounts.forms import SignInForm, TokenForm
from project_service.domain import sign_ins
from project_service.domain.sign_ins import TooManyFailures, WrongPassword
from project_service.domain.users import User
from project_service.kit import mail
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import RecordNotFound
from project_service.kit.http.forms import confirmation

sessions = PageBlueprint("sessions", __name__)
pages = PageBlueprint("account_pages", __name__)

TOKENS = "/-/profile/personal_access_tokens"
navigation.add(navigation.NavigationEntry("Access tokens", TOKENS, 30, Ability.SIGNED_IN), "account")

HOME = "project_pages.show_dashboard"
WRONG_LOGIN = "Invalid login or password."


@sessions.get("/users/sign_in")
@sessions.allow(Ability.ANYBODY)
def sign_in() -> Any:
    """Show the sign-in form."""
    if caller().user_id is not None:
        return back_to(request.args.get("next"), url_for(HOME))
    return _sign_in(SignInForm())


@sessions.post("/users/sign_in")
@sessions.own_transactions
@sessions.allow(Ability.ANYBODY)
def create_session() -> Any:
    """Sign in."""
    form = SignInForm()
    if not form.validate():
        return _sign_in(form), 422
    try:
        user = password_sign_ins.authenticate(form.login.data or "", form.password.data or "", service.may_have_session)
        verified_hash = user.password_hash
        with unit_of_work():
            service.lock_for_sign_in(user, verified_hash)
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
    is_new = queries.is_first_user_new()
    return render_template("accounts/sign_in.html", form=form, can_mail=mail.is_on(), is_new=is_new)


@sessions.post("/users/sign_out")
@sessions.with_expired_password
@sessions.without_two_factor
@sessions.allow(Ability.ANYBODY)
def delete_session() -> Any:
    """Sign out."""
    if secret := session.get(SESSION_KEY):
        service.sign_out(str(secret))
    session.clear()
    return redirect(url_for(".sign_in"))


@pages.get(TOKENS)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def list_tokens() -> Any:
    """Show the access tokens of the current user."""
    return _tokens(TokenForm())


@pages.post(TOKENS)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def create_token() -> Any:
    """Create an access token and show its secret once."""
    form = TokenForm()
    created: list[Any] = []
    fields = {"name": form.name.data, "scopes": form.scopes.data, "expires_at": form.expires_at.data}
    if form.accepted(lambda: created.append(service.create_token(current_user(), **fields))):
        return _tokens(TokenForm(formdata=None), created[0].token), 201
    return _tokens(form), 422


@pages.get(f"{TOKENS}/<int:token_id>/revoke")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def ask_revoke_token(token_id: int) -> Any:
    """Ask for confirmation before an access token is revoked."""
    token = _own_token(token_id)
    return confirmation(
        title="Revoke access token",
        question=f"Revoke the token “{token.name}”? Whatever uses it stops working at once.",
        button="Revoke",
        back=url_for(".list_tokens"),
    )


@pages.post(f"{TOKENS}/<int:token_id>/revoke")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def revoke_token(token_id: int) -> Any:
    """Revoke an access token."""
    service.revoke_token(_own_token(token_id))
    return redirect(url_for(".list_tokens"))


def _own_token(token_id: int) -> Any:
    token = queries.find_token(token_id)
    if token.user_id != caller().user_id:
        raise RecordNotFound
    return token


def _tokens(form: TokenForm, secret: str | None = None) -> str:
    tokens = list(db.session.scalars(queries.tokens_of(caller().user_id or 0)))
    active = [token for token in tokens if token.active]
    return render_template(
        "accounts/tokens.html", form=form, tokens=active, secret=secret, rest=len(tokens) - len(active)
    )


def show_user(user: User) -> Any:
    """Show the profile of a user; the route of full paths calls this function."""
    hidden = user.private_profile and caller().user_id != user.id and not allowed(caller(), Ability.ADMINISTER)
    return render_template("accounts/show.html", user=user, hidden=hidden)
