"""Pages of two-factor authentication: the second step of a sign-in, setup, recovery codes."""

from __future__ import annotations

from flask import flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue

from project_service.access import audit
from project_service.access.abilities import Ability
from project_service.access.identity import SESSION_KEY, caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import SIGN_IN, PageBlueprint, back_to
from project_service.areas.accounts.profile.forms import OwnPasswordForm
from project_service.areas.accounts.sign_in import sessions, signing_in, two_factor
from project_service.areas.accounts.sign_in.forms import CodeForm, SetupForm
from project_service.areas.accounts.sign_in.two_factor import TooManyCodes
from project_service.domain.accounts.users import User
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import Form

pages = PageBlueprint("two_factor_pages", __name__)
SECOND_STEP, SETUP = "/users/sign_in/two_factor", "/-/profile/two_factor_auth"
SETUP_KEY = "two_factor_setup"  # of the encrypted secret in the cookie, until it is confirmed
HOME = "home_pages.show_home"
navigation.add(navigation.NavigationEntry("Two-factor authentication", SETUP, 15, Ability.SIGNED_IN), "account")


@pages.get(SECOND_STEP)
@pages.allow(Ability.ANYBODY)
def ask_code() -> ResponseReturnValue:
    """Ask for a code after the password was right."""
    if signing_in.waiting_user() is None:
        return redirect(url_for(SIGN_IN, next=request.args.get("next")))
    return render_template("accounts/two_factor/sign_in.html", form=CodeForm())


@pages.post(SECOND_STEP)
@pages.allow(Ability.ANYBODY)
def check_code() -> ResponseReturnValue:
    """Sign in with a code."""
    user, form = signing_in.waiting_user(), CodeForm()
    if user is None:
        return redirect(url_for(SIGN_IN, next=request.args.get("next")))
    if not form.validate():
        return render_template("accounts/two_factor/sign_in.html", form=form), 422
    try:
        accepted = two_factor.verify(user, form.code.data or "")
    except TooManyCodes as error:
        form.problems.append(signing_in.wait_text(error.wait))
        return render_template("accounts/two_factor/sign_in.html", form=form), 429
    if not accepted:
        audit.record_failed_sign_in(user.username, "otp")
        form.problems.append("Invalid two-factor code.")
        return render_template("accounts/two_factor/sign_in.html", form=form), 401
    signing_in.begin(user, second_factor=True)
    return back_to(request.args.get("next"), url_for(HOME))


@pages.get(SETUP)
@pages.without_two_factor
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def show_two_factor() -> ResponseReturnValue:
    """Show the setup with its QR code or, after that, the recovery codes left."""
    user = current_user()
    if user.two_factor_enabled:
        return _overview(user)
    if two_factor.secret_of(session.get(SETUP_KEY), user) is None:
        session[SETUP_KEY] = two_factor.new_setup(user)
    return _setup(user, SetupForm())


@pages.post(SETUP)
@pages.own_transactions
@pages.without_two_factor
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def enable_two_factor() -> ResponseReturnValue:
    """Switch two-factor authentication on with a code, and show the recovery codes once."""
    user, form = current_user(), SetupForm()
    secret = two_factor.secret_of(session.get(SETUP_KEY), user)
    if secret is None or user.two_factor_enabled:
        return redirect(SETUP)

    def enable() -> list[str]:
        codes = two_factor.enable(user, secret, form.code.data or "")
        sessions.end_sessions(user, besides=_own_session())
        return codes

    try:
        if accepted := signing_in.accepted_with_password(form, user, enable):
            del session[SETUP_KEY]
            return render_template("accounts/two_factor/codes.html", codes=accepted.result, enabled=True)
    except TooManyCodes as error:
        form.problems.append(signing_in.wait_text(error.wait))
        return _setup(user, form), 429
    return _setup(user, form), 422


@pages.post(f"{SETUP}/codes")
@pages.own_transactions
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def replace_codes() -> ResponseReturnValue:
    """Replace the recovery codes and show the new ones once."""
    user, form = current_user(), OwnPasswordForm(prefix="codes-")
    if not user.two_factor_enabled:
        return redirect(SETUP)
    if accepted := signing_in.accepted_with_password(form, user, lambda: two_factor.replace_recovery_codes(user)):
        return render_template("accounts/two_factor/codes.html", codes=accepted.result, enabled=False)
    return _overview(user, codes_form=form), 422


@pages.post(f"{SETUP}/disable")
@pages.own_transactions
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def disable_two_factor() -> ResponseReturnValue:
    """Switch two-factor authentication off, and end all other sessions."""
    user, form = current_user(), OwnPasswordForm(prefix="disable-")
    if not user.two_factor_enabled:
        return redirect(SETUP)

    def disable() -> None:
        if two_factor.is_required():
            raise Invalid(base="This instance requires two-factor authentication.")
        two_factor.disable(user)
        sessions.end_sessions(user, besides=_own_session())

    if signing_in.accepted_with_password(form, user, disable):
        flash("Two-factor authentication is switched off.")
        return redirect(SETUP)
    return _overview(user, disable_form=form), 422


def _setup(user: User, form: SetupForm) -> str:
    secret = two_factor.secret_of(session.get(SETUP_KEY), user) or ""
    size, path = two_factor.qr_code(two_factor.key_uri(user, secret))
    groups = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
    return render_template(
        "accounts/two_factor/setup.html", form=form, key=groups, size=size, path=path, overdue=caller().lacks_two_factor
    )


def _overview(user: User, **refused: Form) -> str:
    forms: dict[str, Form] = {
        "codes_form": OwnPasswordForm(formdata=None, prefix="codes-"),
        "disable_form": OwnPasswordForm(formdata=None, prefix="disable-"),
    }
    codes_left = two_factor.recovery_codes_left(user)
    required = two_factor.is_required()
    return render_template("accounts/two_factor/overview.html", left=codes_left, required=required, **(forms | refused))


def _own_session() -> str:
    return str(session.get(SESSION_KEY, ""))
