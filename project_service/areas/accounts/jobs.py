"""Periodic jobs: removal of expired browser sessions and rate limit windows, mails about expiring tokens."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete

from project_service.areas.accounts import resource_tokens
from project_service.domain import rate_limits
from project_service.domain.namespaces import Group
from project_service.domain.tokens import BrowserSession
from project_service.kit import clock, jobs, mail
from project_service.kit.db.session import db
from project_service.kit.http import urls


@jobs.periodic(every=dt.timedelta(hours=1))
@jobs.job("accounts.jobs.prune_sessions")
def prune_sessions() -> None:
    """Delete expired browser sessions and past windows of rate limits."""
    db.session.execute(delete(BrowserSession).where(BrowserSession.expires_at <= clock.now()))
    rate_limits.prune()


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("accounts.jobs.mail_expiring_tokens")
def mail_expiring_tokens() -> None:
    """Mail those who manage a project or group when one of its access tokens expires within a week, once."""
    for token, place in resource_tokens.expiring():
        path = place.full_path
        page = f"/groups/{path}" if isinstance(place, Group) else f"/{path}"
        body = (
            f"The access token {token.name} of {path} expires on {token.expires_at}. What uses it stops working then.\n"
            f"Rotate it or create another one: {urls.absolute(page)}/-/settings/access_tokens\n"
        )
        mail.queue(resource_tokens.addresses(place), f"The access token {token.name} of {path} expires soon", body)
        token.expiry_mailed_on = clock.today()
