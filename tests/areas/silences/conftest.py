"""A clock that tests move, and silences and alerts of the shop."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.areas.silences.jobs import update_silences
from project_service.domain.alerts import own_alerts
from project_service.domain.alerts.own_alerts import OwnAlert
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work

TITLE = [{"field": "title", "operator": "matches", "value": "disk*"}]


class Shop:
    """The shop on a day whose time tests move."""

    def __init__(self, client, project):
        self.client, self.project = client, project
        self.now = dt.datetime(2027, 3, 1, 12, tzinfo=dt.UTC)
        self.silences = f"/projects/{project.id}/silences"
        self.address = f"/projects/{project.id}/alert_management_alerts"

    def silence(self, matchers=TITLE, *, by=None, **fields):
        fields = {"comment": "Move", "matchers": matchers} | fields
        fields |= {} if "ends_at" in fields else {"duration": 3600}
        response = (by or self.client).post(self.silences, json=fields)
        assert response.status_code == 201, response.json
        self.passes()
        return response.json

    def alert(self, title="disk full", **fields):
        with unit_of_work():
            about = {"fingerprint": title, "monitoring_tool": "Test", "started_at": self.now} | fields
            iid = own_alerts.report(OwnAlert(project_id=self.project.id, title=title, **about))
        db.session.remove()
        return iid

    def passes(self, **time):
        self.now += dt.timedelta(**time)
        db.session.remove()
        update_silences()
        db.session.remove()

    def read(self, iid):
        return self.client.get(f"{self.address}/{iid}").json

    def resolve(self, iid):
        assert self.client.put(f"{self.address}/{iid}", json={"status": "resolved"}).status_code == 200


@pytest.fixture
def shop(as_maintainer, project, monkeypatch):
    shop = Shop(as_maintainer, project)
    monkeypatch.setattr(clock, "now", lambda: shop.now)
    return shop
