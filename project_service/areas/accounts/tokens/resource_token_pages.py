"""Pages of access tokens of projects and groups, and the page on which leaked tokens are revoked."""

from __future__ import annotations

import datetime as dt
from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation, sections
from project_service.access.pages import PageBlueprint
from project_service.access.roles import role_of
from project_service.areas.accounts.tokens import queries, resource_tokens
from project_service.areas.accounts.tokens.resource_token_forms import LeakedTokenForm, ResourceTokenForm, RotateForm
from project_service.domain import page_paths, rate_limits
from project_service.domain.access_levels import Role
from project_service.domain.accounts.resource_bots import MAX_TOKEN_LIFETIME, ProjectOrGroup
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.projects import Project
from project_service.domain.rate_limits import RateLimit
from project_service.kit import clock
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("resource_token_pages", __name__)
PAGE = "access_tokens"
SETTINGS = f"/-/settings/{PAGE}"
OF_PROJECT, OF_GROUP = f"/<path:project>{SETTINGS}", f"/groups/<path:group>{SETTINGS}"
LEAKED = "/-/profile/leaked_token"
STATES = {"active": "Active", "inactive": "Revoked or expired"}
PER_PAGE = 50
DEFAULT_LIFETIME = dt.timedelta(days=30)
LEAKED_TOKENS = RateLimit("leaked_token", 10, 600)  # that a user may send
NOT_REVOKED = "No token was revoked: there is no active token with this text that you may revoke."

navigation.add(navigation.NavigationEntry("Access tokens", SETTINGS, 30, Ability.ADMIN_GROUP_TOKENS), "group_settings")
navigation.add(navigation.NavigationEntry("Leaked token", LEAKED, 35, Ability.SIGNED_IN), "account")


def fill(subject: ProjectOrGroup) -> dict[str, Any]:
    """Return the template variables of the list and the form."""
    state = request.args.get("state", "")
    state = state if state in STATES else "active"
    statement = queries.tokens_of_resource(subject, state=state, sort="created_desc")
    return {
        "tokens": read_page(statement, request.args.get("page"), PER_PAGE),
        "token_state": state,
        "token_states": STATES,
        "token_form": _form(subject, formdata=None, expires_at=clock.today() + DEFAULT_LIFETIME),
        "tokens_address": _address(subject),
        "role_title": lambda level: Role(level or 0).title,
        "secret": None,
    }


sections.add(
    sections.Section(
        PAGE,
        "access-tokens",
        "Tokens of this project",
        10,
        Ability.ADMIN_PROJECT_TOKENS,
        "accounts/resource_tokens.html",
        fill,
    )
)


@pages.get(OF_GROUP)
@pages.signed_in
@pages.allow(Ability.ADMIN_GROUP_TOKENS)
def list_group_tokens(group: ProjectOrGroup) -> ResponseReturnValue:
    """Show the access tokens of a group."""
    return _list(group)


@pages.post(OF_PROJECT, endpoint="create_project_token")
@pages.post(OF_GROUP, endpoint="create_group_token")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
def create_token(subject: ProjectOrGroup) -> ResponseReturnValue:
    """Create an access token and show its secret once."""
    form = _form(subject)
    names = ("name", "scopes", "access_level", "expires_at")
    fields = {name: form[name].data for name in names}
    if accepted := form.accepted(lambda: resource_tokens.create_token(caller(), subject, **fields)):
        return _list(subject, status=201, secret=accepted.result.token)
    _remove_status(form)
    return _list(subject, status=422, token_form=form)


@pages.get(f"{OF_PROJECT}/<int:token_id>/rotate", endpoint="ask_rotate_project_token")
@pages.get(f"{OF_GROUP}/<int:token_id>/rotate", endpoint="ask_rotate_group_token")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
def ask_rotate_token(subject: ProjectOrGroup, token_id: int) -> ResponseReturnValue:
    """Ask when the new secret expires; the same lifetime as before is suggested."""
    token = queries.find_resource_token(subject, token_id)
    return _rotate(subject, token, RotateForm(expires_at=_suggested_expiry(token)))


@pages.post(f"{OF_PROJECT}/<int:token_id>/rotate", endpoint="rotate_project_token")
@pages.post(f"{OF_GROUP}/<int:token_id>/rotate", endpoint="rotate_group_token")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
def rotate_token(subject: ProjectOrGroup, token_id: int) -> ResponseReturnValue:
    """Replace an access token by a new one and show its secret once."""
    token = queries.find_resource_token(subject, token_id)
    form = RotateForm()
    day = form.expires_at.data
    if accepted := form.accepted(lambda: resource_tokens.rotate_token(caller(), subject, token, expires_at=day)):
        return _list(subject, secret=accepted.result.token)
    _remove_status(form)
    return _rotate(subject, queries.find_resource_token(subject, token_id), form), 422


@pages.get(f"{OF_PROJECT}/<int:token_id>/revoke", endpoint="ask_revoke_project_token")
@pages.get(f"{OF_GROUP}/<int:token_id>/revoke", endpoint="ask_revoke_group_token")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
def ask_revoke_token(subject: ProjectOrGroup, token_id: int) -> ResponseReturnValue:
    """Ask before an access token is revoked."""
    token = queries.find_resource_token(subject, token_id)
    return confirmation(
        title="Revoke access token",
        question=f"Revoke the token “{token.name}”? Programs that use it will be refused, and its bot leaves.",
        button="Revoke",
        back=_address(subject),
        **_named(subject),
    )


@pages.post(f"{OF_PROJECT}/<int:token_id>/revoke", endpoint="revoke_project_token")
@pages.post(f"{OF_GROUP}/<int:token_id>/revoke", endpoint="revoke_group_token")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_PROJECT_TOKENS, group=Ability.ADMIN_GROUP_TOKENS)
def revoke_token(subject: ProjectOrGroup, token_id: int) -> ResponseReturnValue:
    """Revoke an access token."""
    token = queries.find_resource_token(subject, token_id)
    resource_tokens.revoke_token(subject, token)
    flash(f"The token “{token.name}” is revoked.")
    return redirect(_address(subject))


@pages.get(LEAKED)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def ask_leaked_token() -> ResponseReturnValue:
    """Show the form for a token that others have seen."""
    return render_template("accounts/leaked_token.html", form=LeakedTokenForm())


@pages.post(LEAKED)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def revoke_leaked_token() -> ResponseReturnValue:
    """Revoke the token with this text; all tokens that are not revoked get the same answer."""
    form = LeakedTokenForm()
    user_id = caller().user_id or 0
    wait = rate_limits.count(LEAKED_TOKENS.counter(user_id))
    if wait is not None:
        form.problems.append(f"Too many tokens. Try again in {max(1, round(wait.total_seconds() / 60))} minutes.")
        return render_template("accounts/leaked_token.html", form=form), 429

    def revoke() -> PersonalAccessToken:
        token = resource_tokens.revoke_leaked(form.secret.data or "", caller())
        if token is None:
            raise Invalid(base=NOT_REVOKED)
        return token

    if accepted := form.accepted(revoke):
        flash(f"The token “{accepted.result.name}” of {accepted.result.user.name} is revoked.")
        return redirect(LEAKED)
    return render_template("accounts/leaked_token.html", form=form), 422


def _remove_status(form: Form) -> None:
    """Remove what messages of the API begin with."""
    form.problems = [text.removeprefix(resource_tokens.BAD_REQUEST) for text in form.problems]


def _form(subject: ProjectOrGroup, **options: Any) -> ResourceTokenForm:
    form = ResourceTokenForm(**({"access_level": int(Role.DEVELOPER)} | options))
    form.set_roles(role_of(caller(), subject))
    return form


def _list(subject: ProjectOrGroup, *, status: int = 200, **filled: Any) -> ResponseReturnValue:
    """Render the page; ``filled`` has a new secret, or a form to show again that was refused."""
    if isinstance(subject, Project):
        return sections.show(subject, PAGE, status=status, **filled)
    return render_template("accounts/group_tokens.html", group=subject, **(fill(subject) | filled)), status


def _rotate(subject: ProjectOrGroup, token: PersonalAccessToken, form: RotateForm) -> str:
    base = "project.html" if isinstance(subject, Project) else "group.html"
    values = {"token": token, "form": form, "base": base, "back": _address(subject), "place_name": subject.name}
    return render_template("accounts/rotate_token.html", **values, **_named(subject))


def _suggested_expiry(token: PersonalAccessToken) -> dt.date:
    if token.expires_at is None:
        return clock.today() + DEFAULT_LIFETIME
    lifetime = token.expires_at - token.created_at.date()
    return clock.today() + min(max(lifetime, dt.timedelta(days=1)), MAX_TOKEN_LIFETIME)


def _address(subject: ProjectOrGroup) -> str:
    return f"{page_paths.base_of(subject)}{SETTINGS}"


def _named(subject: ProjectOrGroup) -> dict[str, Any]:
    return {"project" if isinstance(subject, Project) else "group": subject}
