"""Queries of the log of requests to integrations."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from sqlalchemy import Select, func, select

from project_service.areas.alerts.models import AlertIntegration, AlertRequest, Outcome
from project_service.kit import clock
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http.errors import RecordNotFound

REFUSED_WITHIN = dt.timedelta(days=1)


def requests_of(integration: AlertIntegration, outcome: str | None = None) -> Select[AlertRequest]:
    """The logged requests of an integration, newest first; several processes write them, each some time later."""
    statement = select(AlertRequest).where(AlertRequest.integration_id == integration.id)
    if outcome is not None:
        statement = statement.where(AlertRequest.outcome == outcome)
    return statement.order_by(AlertRequest.received_at.desc(), AlertRequest.id.desc()).options(NO_LAZY_LOADING)


def find_request(integration: AlertIntegration, request_id: int) -> AlertRequest:
    """One logged request of an integration."""
    logged = db.session.scalar(requests_of(integration).where(AlertRequest.id == request_id))
    if logged is None:
        raise RecordNotFound
    return logged


def body_of(integration: AlertIntegration, request_id: int) -> str:
    """The stored body of a logged request."""
    return find_request(integration, request_id).body or ""


def refused_counts(integrations: Sequence[AlertIntegration]) -> dict[int, int]:
    """How many requests of the last day were refused, by integration, as far as the log keeps them."""
    statement = (
        select(AlertRequest.integration_id, func.sum(AlertRequest.count))
        .where(
            AlertRequest.integration_id.in_([integration.id for integration in integrations]),
            AlertRequest.outcome == str(Outcome.REFUSED),
            AlertRequest.received_at > clock.now() - REFUSED_WITHIN,
        )
        .group_by(AlertRequest.integration_id)
    )
    return {integration_id: int(count) for integration_id, count in db.session.execute(statement)}


def newest_tests(integrations: Sequence[AlertIntegration]) -> dict[int, dt.datetime]:
    """When the last test message of its tool arrived, by integration."""
    statement = (
        select(AlertRequest.integration_id, func.max(AlertRequest.received_at))
        .where(
            AlertRequest.integration_id.in_([integration.id for integration in integrations]),
            AlertRequest.outcome == str(Outcome.TEST),
        )
        .group_by(AlertRequest.integration_id)
    )
    newest: dict[int, dt.datetime] = dict(db.session.execute(statement).all())
    return newest
