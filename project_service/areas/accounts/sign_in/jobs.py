"""Periodic job: removal of expired sessions and of what else signing in leaves."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete

from project_service.areas.accounts.sign_in import networks, password_resets
from project_service.domain import rate_limits
from project_service.domain.accounts.tokens import BrowserSession
from project_service.kit import clock, jobs
from project_service.kit.db.session import db


@jobs.periodic(every=dt.timedelta(hours=1))
@jobs.job("accounts.jobs.prune_sessions")
def prune_sessions() -> None:
    """Delete expired browser sessions, windows of rate limits, requests for passwords, and unused networks."""
    db.session.execute(delete(BrowserSession).where(BrowserSession.expires_at <= clock.now()))
    rate_limits.prune()
    password_resets.prune()
    networks.prune()
