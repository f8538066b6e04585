"""Periodic jobs: mails about access tokens that expire soon."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import ColumnElement, and_, select, update

from project_service.areas.accounts import mails
from project_service.areas.accounts.tokens import resource_tokens
from project_service.domain import page_paths
from project_service.domain.accounts.resource_bots import bots
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import ACTIVE, User
from project_service.kit import clock, jobs, mail
from project_service.kit.db.session import db
from project_service.kit.http import urls

EXPIRY_NOTICE = dt.timedelta(days=7)


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("accounts.jobs.mail_expiring_tokens")
def mail_expiring_tokens() -> None:
    """Mail those who manage a project or group when one of its access tokens expires within a week, once."""
    if not mail.is_on():
        return
    with jobs.step():
        token_ids = [token.id for token, _ in resource_tokens.expiring()]
    jobs.for_each(token_ids, _mail_expiring_resource_token)


def _mail_expiring_resource_token(token_id: int) -> None:
    with jobs.step():
        for token, subject in resource_tokens.expiring(PersonalAccessToken.id == token_id):
            path = subject.full_path
            page = f"{page_paths.base_of(subject)}/-/settings/access_tokens"
            body = (
                f"The access token {token.name} of {path} expires on {token.expires_at}. "
                "What uses it stops working then.\n"
                f"Rotate it or create another one: {urls.absolute(page)}\n"
            )
            mail.queue(
                resource_tokens.addresses(subject), f"The access token {token.name} of {path} expires soon", body
            )
            token.expiry_mailed_on = clock.today()


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("accounts.jobs.mail_expiring_personal_tokens")
def mail_expiring_personal_tokens() -> None:
    """Mail each user, once per token, which of their access tokens expire within ``EXPIRY_NOTICE``."""
    if not mail.is_on():
        return
    with jobs.step():
        owners = (
            select(PersonalAccessToken.user_id)
            .join(User)
            .where(_expires_soon(), User.state == ACTIVE, User.id.not_in(bots()))
        )
        user_ids = list(db.session.scalars(owners.where(User.deleting_since.is_(None)).distinct()))
    jobs.for_each(user_ids, _mail_expiring_tokens)


def _mail_expiring_tokens(user_id: int) -> None:
    with jobs.step():
        due = update(PersonalAccessToken).where(PersonalAccessToken.user_id == user_id, _expires_soon())
        claimed = due.values(expiry_mailed_on=clock.today()).returning(PersonalAccessToken)
        tokens = sorted(db.session.scalars(claimed), key=lambda token: (token.expires_at, token.id))
        if tokens:
            mails.queue_expiring_tokens(db.session.get_one(User, user_id), tokens)


def _expires_soon() -> ColumnElement[bool]:
    token, today = PersonalAccessToken, clock.today()
    return and_(
        token.revoked.is_(False),
        token.expires_at > today,
        token.expires_at <= today + EXPIRY_NOTICE,
        token.expiry_mailed_on.is_(None),
    )
