"""The administration area: settings, feature flags, background tasks, health, versions."""

from __future__ import annotations

import platform
from importlib.metadata import version

from flask import current_app, flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.instance import doctor, probes, service, setting_texts
from project_service.areas.instance.forms import SettingsForm
from project_service.areas.instance.version import FEATURE_DEFINITIONS, OWN
from project_service.domain import instance_settings
from project_service.domain.instance_settings import COMPATIBLE
from project_service.kit import clock, jobs
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("admin_pages", __name__)
PACKAGES = ("Flask", "SQLAlchemy", "rq", "gunicorn")
navigation.add(
    navigation.NavigationEntry("Administration", "/admin", 90, Ability.ADMINISTER, within=("/admin",)), "main"
)
for _title, _address, _order in (
    ("Settings", "/admin/settings", 20),
    ("Feature flags", "/admin/features", 30),
    ("Background tasks", "/admin/tasks", 40),
    ("Health", "/admin/health", 50),
    ("About", "/admin/about", 90),
):
    navigation.add(navigation.NavigationEntry(_title, _address, _order, Ability.ADMINISTER), "administration")


@pages.get("/admin/settings")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def show_settings() -> ResponseReturnValue:
    """Show the application settings."""
    return _settings(SettingsForm.of(instance_settings.all_settings()))


@pages.post("/admin/settings")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def save_settings() -> ResponseReturnValue:
    """Change the application settings that differ from what is stored."""
    form, stored = SettingsForm(), instance_settings.all_settings()
    form.add_choices_without_effect(stored)
    before = SettingsForm.of(stored).texts()
    changes = {name: text for name, text in form.texts().items() if text != before[name]}
    if form.accepted(lambda: service.change_settings_from_text(changes)):
        changed = "The settings were changed. They apply from the next request on."
        flash(changed if changes else "Nothing was changed.")
        return redirect("/admin/settings")
    return _settings(form), 422


@pages.get("/admin/features")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def show_features() -> ResponseReturnValue:
    """Show the feature flags that the service uses, and others that were set."""
    features_by_name = {feature["name"]: feature for feature in service.features()}
    used = [
        features_by_name.pop(feature["name"], {"name": feature["name"], "state": "off", "gates": []})
        for feature in FEATURE_DEFINITIONS
    ]
    return render_template(
        "instance/features.html",
        used=used,
        others=list(features_by_name.values()),
        texts=setting_texts.FEATURES,
        form=Form(),
    )


@pages.post("/admin/features/<name>")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def set_feature(name: str) -> ResponseReturnValue:
    """Switch a feature on or off for all, or forget that it was set."""
    if request.form.get("value") == "delete":
        service.delete_feature(name)
        flash(f"{name} was deleted.")
    else:
        state = "on" if request.form.get("value") == "true" else "off"
        service.set_feature(name, value="true" if state == "on" else "false")
        flash(f"{name} is {state}.")
    return redirect("/admin/features")


@pages.get("/admin/tasks")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def list_tasks() -> ResponseReturnValue:
    """Show the background tasks of one state: failed, running or waiting."""
    state = request.args.get("state", "")
    counts = jobs.states()
    if state not in counts:
        state = next((name for name, count in counts.items() if count), "failed")
    page = read_page(jobs.tasks_in(state), request.args.get("page"), 50)
    titles = {name: f"{name.capitalize()} ({count})" for name, count in counts.items()}
    return render_template("instance/tasks.html", page=page, state=state, titles=titles, form=Form(), now=clock.now())


@pages.post("/admin/tasks/<int:task_id>/retry")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def retry_task(task_id: int) -> ResponseReturnValue:
    """Run a failed task again."""
    if not jobs.retry(task_id):
        raise NotFound("Task")
    flash("The task is tried again.")
    return redirect("/admin/tasks?state=failed")


@pages.get("/admin/health")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def show_health() -> ResponseReturnValue:
    """Show the findings of ``doctor`` and of the readiness probe."""
    db.session.rollback()  # the checks use transactions of their own
    problems, is_ready = probes.readiness()
    examination = doctor.examine(current_app.config["SETTINGS"])
    return render_template(
        "instance/health.html", examination=examination, checks=list(probes.CHECKS), problems=problems, ready=is_ready
    )


@pages.get("/admin/about")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def show_about() -> ResponseReturnValue:
    """Show the versions of the service and of what it runs on."""
    versions = {"Project Service": OWN, "GitLab API": f"v4, as of GitLab {COMPATIBLE}"}
    versions |= {"Python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    dialect = db.engine.dialect
    number = ".".join(str(part) for part in dialect.server_version_info or ())
    versions["Database"] = f"{dialect.name} {number}"
    settings = current_app.config["SETTINGS"]
    facts = {"Data directory": str(settings.data_dir), "Address": settings.external_url or "as bound"}
    facts["Redis"] = "embedded" if settings.embedded_redis else "external"
    facts["Files"] = "an object store" if settings.storage_url.startswith("s3:") else "the data directory"
    return render_template("instance/about.html", versions=versions, facts=facts)


def _settings(form: SettingsForm) -> str:
    return render_template("instance/settings.html", form=form, groups=setting_texts.grouped_settings())
