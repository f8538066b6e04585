"""Periodic job: delete OAuth tokens that cannot be used or renewed any more."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete

from project_service.domain.accounts.tokens import OAuthToken
from project_service.kit import clock, jobs
from project_service.kit.db.session import db

TOKEN_AGE = dt.timedelta(days=30)


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("accounts.jobs.delete_old_oauth_tokens")
def delete_old_oauth_tokens() -> None:
    """Delete the tokens that are older than ``TOKEN_AGE``: until then they can be renewed."""
    with jobs.step():
        db.session.execute(delete(OAuthToken).where(OAuthToken.created_at < clock.now() - TOKEN_AGE))
