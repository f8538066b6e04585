"""Mails to users about their own account."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from flask import current_app

from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import User
from project_service.kit import clock, mail

MAX_LISTED_TOKENS = 50
DEFAULT_URL = "http://localhost"
NOT_YOU = (
    "If this was not you, change your password at once, end the sessions that you do not know, and revoke the access "
    "tokens that you do not know."
)


def queue_password_reset(user: User, token: str) -> None:
    """Queue the mail with the link to set a new password."""
    address = _address(f"/users/password/edit?reset_password_token={token}")
    _queue(
        user,
        "Reset your password",
        "A new password was requested for your account. Set it here within one hour:",
        address,
        "If you did not ask for it, ignore this mail: your password stays as it is.",
    )


def queue_password_changed(user: User) -> None:
    """Queue a mail about a new password."""
    _queue(user, "Your password was changed", f"The password of your account was changed at {_now()}.", NOT_YOU)


def queue_email_changed(user: User, former: str) -> None:
    """Queue a mail to the former address of a user about the new one."""
    text = f"The e-mail address of your account was changed to {user.email} at {_now()}."
    _queue(user, "Your e-mail address was changed", text, NOT_YOU, recipient=former)


def queue_two_factor(user: User, *, enabled: bool) -> None:
    """Queue a mail about two-factor authentication that was switched on or off."""
    word = "enabled" if enabled else "disabled"
    text = f"Two-factor authentication of your account was {word} at {_now()}."
    _queue(user, f"Two-factor authentication was {word}", text, NOT_YOU)


def queue_new_network(user: User, address: str, agent: str | None) -> None:
    """Queue a mail about a sign-in from an address that the user has not signed in from before."""
    _queue(
        user,
        "Sign-in from a new address",
        f"Your account was signed in to from an address that was not used before, at {_now()}.",
        f"Address: {address}\nBrowser: {agent or 'unknown'}",
        NOT_YOU,
        f"Your sessions: {_address('/-/profile/sessions')}",
    )


def queue_expiring_tokens(user: User, tokens: Sequence[PersonalAccessToken]) -> None:
    """Queue one mail about all access tokens of a user that expire soon."""
    lines = [f"- {token.name}, on {token.expires_at}" for token in tokens[:MAX_LISTED_TOKENS]]
    if len(tokens) > MAX_LISTED_TOKENS:
        lines.append(f"- and {len(tokens) - MAX_LISTED_TOKENS} more")
    _queue(
        user,
        "Access tokens expire soon",
        "From the day named here on, these access tokens of yours are not accepted any more:",
        "\n".join(lines),
        f"Create new ones at {_address('/-/profile/personal_access_tokens')}",
    )


def _queue(user: User, subject: str, *paragraphs: str, recipient: str | None = None) -> None:
    texts = (f"Hello {user.name},", *paragraphs, f"{_address('')} account {user.username}")
    mail.queue([recipient or user.email], subject, "\n\n".join(texts) + "\n")


def _address(path: str) -> str:
    """Return the URL of a path on the configured host, never on that which a request names."""
    return f"{current_app.config['EXTERNAL_URL'] or DEFAULT_URL}{path}"


def _now() -> str:
    return clock.now().astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
