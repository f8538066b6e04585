"""A receiver for tests: an integration of the sample project and a function that posts to it."""

from __future__ import annotations

import json

from sqlalchemy import select

from project_service.areas.alerts.models import HTTP, PROMETHEUS, Alert, AlertIntegration, AlertRequest
from project_service.areas.alerts.receivers import delivery_log
from project_service.kit.db.session import db

KEY, IDENTIFIER = "0123456789abcdef" * 2, "00112233445566ff"


def make_receiver(app, project, **fields):
    """Make an active integration; return a function that posts a body to its address."""
    fields = {"type": HTTP, "name": "Monitor", "active": True, "mapping": {}} | fields
    db.session.add(AlertIntegration(project_id=project.id, endpoint_identifier=IDENTIFIER, token=KEY, **fields))
    db.session.commit()
    path = "/acme/shop/prometheus/alerts/notify.json"
    if fields["type"] != PROMETHEUS:
        path = f"/acme/shop/alerts/notify/monitor/{IDENTIFIER}.json"

    def send(body, *, key=KEY, content_type="application/json", **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        db.session.remove()
        authorization = {"Authorization": f"Bearer {key}"} if key else {}
        client = app.test_client(use_cookies=False)
        return client.post(path, data=data, headers=authorization | headers, content_type=content_type)

    return send


def alerts():
    """All alerts, oldest first."""
    db.session.remove()
    return list(db.session.scalars(select(Alert).order_by(Alert.iid)))


def logged_requests():
    """All logged requests, oldest first."""
    db.session.remove()  # a session of its own writes the log
    delivery_log.flush()
    return list(db.session.scalars(select(AlertRequest).order_by(AlertRequest.id)))
