"""Pages of personal access tokens."""

from __future__ import annotations

from flask import redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.accounts.tokens import queries, service
from project_service.areas.accounts.tokens.forms import TokenForm
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.kit.db.session import db
from project_service.kit.http.errors import RecordNotFound
from project_service.kit.http.forms import confirmation

pages = PageBlueprint("account_pages", __name__)

TOKENS = "/-/profile/personal_access_tokens"
navigation.add(navigation.NavigationEntry("Access tokens", TOKENS, 30, Ability.SIGNED_IN), "account")


@pages.get(TOKENS)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def list_tokens() -> ResponseReturnValue:
    """Show the access tokens of the current user."""
    return _tokens(TokenForm())


@pages.post(TOKENS)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def create_token() -> ResponseReturnValue:
    """Create an access token and show its secret once."""
    form = TokenForm()

    def create() -> PersonalAccessToken:
        name, scopes, expires_at = form.name.data, form.scopes.data, form.expires_at.data
        return service.create_token(current_user(), name=name, scopes=scopes, expires_at=expires_at)

    if accepted := form.accepted(create):
        return _tokens(TokenForm(formdata=None), accepted.result.token), 201
    return _tokens(form), 422


@pages.get(f"{TOKENS}/<int:token_id>/revoke")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def ask_revoke_token(token_id: int) -> ResponseReturnValue:
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
def revoke_token(token_id: int) -> ResponseReturnValue:
    """Revoke an access token."""
    service.revoke_token(_own_token(token_id))
    return redirect(url_for(".list_tokens"))


def _own_token(token_id: int) -> PersonalAccessToken:
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
