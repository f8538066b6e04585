"""The overview of the administration area, and the test mail."""

from __future__ import annotations

import dataclasses

from project_service.domain.instance_settings import SETTINGS
from project_service.kit import mail
from tests.support.sample_data import ADA


def test_the_overview_counts_and_leads_to_the_lists(visit, project, group):
    text = visit(ADA).get("/admin").text

    assert '<a href="/admin/projects">Projects <strong>1</strong></a>' in text
    assert "PROJECT_SERVICE_SMTP_HOST" in text


def test_projects_and_groups_are_listed_and_searched(visit, project, group):
    visitor = visit(ADA)

    assert 'href="/acme/shop"' in visitor.get("/admin/projects?search=sho").text
    assert "No project matches." in visitor.get("/admin/projects?search=zzz").text
    assert 'href="/acme"' in visitor.get("/admin/groups").text


def test_a_test_mail_says_what_the_server_answered(app, visit, monkeypatch):
    visitor = visit(ADA)
    without = visitor.send("/admin/test_mail")
    first = visitor.get("/admin").text
    settings = dataclasses.replace(app.config["SETTINGS"], smtp_host="127.0.0.1", smtp_port=9)
    monkeypatch.setitem(app.config, "SETTINGS", settings)
    monkeypatch.setattr(mail, "TIMEOUT_SECONDS", 1)
    visitor.send("/admin/test_mail")

    assert without.location == "/admin"
    assert "No mail server is configured" in first
    assert "The mail was not sent: ConnectionRefusedError" in visitor.get("/admin").text


def test_all_settings_are_shown(visit):
    text = visit(ADA).get("/admin/settings").text

    assert [name for name in SETTINGS if f'name="{name}"' not in text] == []
