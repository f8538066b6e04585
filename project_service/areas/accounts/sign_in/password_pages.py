"""Pages for a forgotten password: ask for a mail, and set a new password with its link."""

from __future__ import annotations

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.pages import SIGN_IN, PageBlueprint
from project_service.areas.accounts.sign_in import password_resets, signing_in
from project_service.areas.accounts.sign_in.forms import NewPasswordForm, ResetRequestForm
from project_service.kit import mail
from project_service.kit.http.errors import Invalid

pages = PageBlueprint("password_pages", __name__)
REQUEST, RESET = "/users/password/new", "/users/password/edit"
MAX_EMAIL_LENGTH = 255
SENT = "If an account has this e-mail address, a mail with a link is on its way. The link works for one hour."


@pages.get(REQUEST)
@pages.allow(Ability.ANYBODY)
def ask_reset() -> ResponseReturnValue:
    """Show the form that asks for a mail."""
    return _request_page(ResetRequestForm())


@pages.post(REQUEST)
@pages.allow(Ability.ANYBODY)
def request_reset() -> ResponseReturnValue:
    """Ask for a mail; the answer is the same for addresses that no user has."""
    form = ResetRequestForm()
    if not form.validate() or len(form.email.data or "") > MAX_EMAIL_LENGTH or not mail.is_on():
        return _request_page(form), 422
    wait = password_resets.request_reset(form.email.data or "", request.remote_addr)
    if wait is not None:
        form.problems.append(signing_in.wait_text(wait))
        return _request_page(form), 429
    flash(SENT)
    return redirect(url_for(SIGN_IN))


def _request_page(form: ResetRequestForm) -> str:
    return render_template("accounts/password_request.html", form=form, can_mail=mail.is_on())


@pages.get(RESET)
@pages.allow(Ability.ANYBODY)
def show_reset() -> ResponseReturnValue:
    """Show the form for a new password; the link is not used up by looking at it."""
    form = NewPasswordForm(formdata=None)
    form.reset_password_token.data = request.args.get("reset_password_token", "")
    return render_template("accounts/password_reset.html", form=form)


@pages.post(RESET)
@pages.allow(Ability.ANYBODY)
def reset_password() -> ResponseReturnValue:
    """Set a new password."""
    form = NewPasswordForm()

    def reset() -> None:
        if form.new_password.data != form.repeated.data:
            raise Invalid(repeated="is another one")
        token, password = form.reset_password_token.data or "", form.new_password.data or ""
        password_resets.reset_password(token, password, request.remote_addr)

    if form.accepted(reset):
        flash("Your password was changed, and all your sessions were ended. Sign in with the new password.")
        return redirect(url_for(SIGN_IN))
    return render_template("accounts/password_reset.html", form=form), 422
