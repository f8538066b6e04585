"""The administration area: settings, feature flags, background tasks, health, versions."""

from __future__ import annotations

import re

import pytest

from project_service.areas.instance import probes, setting_texts
from project_service.areas.instance.forms import SettingsForm
from project_service.areas.instance.version import FEATURE_DEFINITIONS
from project_service.domain import instance_settings
from project_service.domain.instance_settings import IMPORT_PROJECT_FROM_REMOTE_FILE, setting
from project_service.kit import clock, jobs
from tests.support.sample_data import ADA
from tests.support.visitors import store

SETTINGS, TASKS = "/admin/settings", "/admin/tasks"


@pytest.fixture
def administrator(visit):
    return visit(ADA)


def form_fields(**changes):
    """The fields that a browser sends for the current settings, with changes; unchecked boxes are not sent."""
    form = SettingsForm.of(instance_settings.all_settings())
    fields = {name: form[name].data for name in instance_settings.SETTINGS if name in form} | changes
    return {name: "y" if value is True else value for name, value in fields.items() if value is not False}


def test_import_sources_without_effect_are_not_shown_and_stay(app, administrator):
    with app.test_request_context():
        fields = form_fields(import_sources=[])

    administrator.send(SETTINGS, **fields)

    assert 'value="gitea"' not in administrator.get(SETTINGS).text
    stored = setting("import_sources")
    assert ("gitea" in stored, "gitlab_project" in stored) == (True, False)


def test_settings_are_changed(app, administrator):
    with app.test_request_context():
        fields = form_fields(max_import_size="7", project_export_enabled=False, restricted_visibility_levels=["public"])

    response = administrator.send(SETTINGS, **fields)

    assert response.location == SETTINGS
    assert (setting("max_import_size"), setting("project_export_enabled")) == (7, False)
    assert setting("restricted_visibility_levels") == ["public"]


def test_untouched_settings_keep_their_values(app, administrator):
    before = instance_settings.all_settings()
    with app.test_request_context():
        fields = form_fields()

    response = administrator.send(SETTINGS, **fields)

    assert (response.status_code, response.location) == (302, SETTINGS)
    assert "Nothing was changed." in administrator.get(SETTINGS).text
    assert instance_settings.all_settings() == before


def test_an_invalid_setting_changes_nothing(app, administrator):
    with app.test_request_context():
        fields = form_fields(max_import_size="many", max_export_size="3")

    response = administrator.send(SETTINGS, **fields)

    assert response.status_code == 422
    assert 'value="many"' in response.text
    assert re.search('id="max_import_size-wrong">[^<]* is invalid</p>', response.text)
    assert setting("max_export_size") == 0


def test_every_setting_and_flag_has_a_text():
    assert set(setting_texts.FEATURES) == {feature["name"] for feature in FEATURE_DEFINITIONS}
    assert "Others" not in setting_texts.grouped_settings()


def test_feature_flags_are_switched(administrator):
    page = f"/admin/features/{IMPORT_PROJECT_FROM_REMOTE_FILE}"

    administrator.send(page, value="true")
    on = instance_settings.feature_enabled(IMPORT_PROJECT_FROM_REMOTE_FILE)
    administrator.send(page, value="false")

    assert (on, instance_settings.feature_enabled(IMPORT_PROJECT_FROM_REMOTE_FILE)) == (True, False)


def test_unused_flags_are_listed_and_deleted(administrator):
    administrator.send("/admin/features/of_another_time", value="true")
    listed = administrator.get("/admin/features").text
    administrator.send("/admin/features/of_another_time", value="delete")

    assert "of_another_time" in listed
    assert "<code>of_another_time</code>" not in administrator.get("/admin/features").text


def test_a_failed_task_is_shown_with_its_error_and_can_be_retried(administrator):
    now = clock.now()
    task = store(
        jobs.Task(name="mail.send", arguments=[7], queue="mail", failed_at=now, error="No route to host", attempts=5)
    )

    listed = administrator.get(TASKS).text
    response = administrator.send(f"{TASKS}/{task.id}/retry")
    waiting = administrator.get(f"{TASKS}?state=waiting").text

    assert "No route to host" in listed
    assert response.status_code == 302
    assert "mail.send" in waiting
    assert administrator.send(f"{TASKS}/{task.id}/retry").status_code == 404


def test_the_health_page_names_failing_parts(administrator, monkeypatch):
    def fail():
        raise OSError("Connection refused")

    for name in probes.CHECKS:
        monkeypatch.setitem(probes.CHECKS, name, lambda: None)
    healthy = administrator.get("/admin/health").text
    monkeypatch.setitem(probes.CHECKS, "redis", fail)
    failing = administrator.get("/admin/health").text

    assert ("200, ok" in healthy, "503, failed" in failing) == (True, True)
    assert "redis" in failing


def test_the_about_page_shows_versions(administrator):
    text = administrator.get("/admin/about").text

    assert "SQLAlchemy" in text
    assert "sqlite" in text or "postgresql" in text
