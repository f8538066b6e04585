"""Error tracking on the operations settings page."""

from __future__ import annotations

from typing import Any

from flask import redirect, request, url_for

from project_service.access import sections
from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.error_tracking import queries, service
from project_service.areas.error_tracking.forms import ErrorTrackingForm
from project_service.domain import instance_settings
from project_service.domain.projects import Project
from project_service.kit.db.session import db

pages = PageBlueprint("error_tracking_pages", __name__)


def fill(project: Project) -> dict[str, Any]:
    """Return the template variables of the section."""
    setting = queries.setting_of(project)
    return {
        "tracking": setting,
        "tracking_form": ErrorTrackingForm(formdata=None, obj=setting),
        "tracking_outcome": None,
    }


sections.add(
    sections.Section(
        "operations",
        "error-tracking",
        "Error tracking",
        50,
        Ability.ADMIN_OPERATIONS,
        "error_tracking/section.html",
        fill,
    )
)


@pages.post("/<path:project>/-/settings/operations/error_tracking")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def save_error_tracking(project: Project) -> Any:
    """Save the settings, and test the connection if that button was used."""
    form = ErrorTrackingForm()
    address = (form.api_url.data or "").strip() or None
    fields = {
        "enabled": form.enabled.data,
        "api_url": address,
        "token": form.token.data,
        "organization_name": form.organization_name.data or None,
        "project_name": form.project_name.data or None,
    }
    allowed = instance_settings.outgoing_policy()

    def save() -> None:
        db.session.commit()  # no locks while the host name is resolved
        service.save(project, problems=service.url_problems(address, allowed), **fields)

    if not form.accepted(save):
        return sections.show(project, "operations", status=422, tracking_form=form)
    if "test" not in request.form:
        return redirect(url_for("project_pages.show_settings", project=project.full_path, page="operations"))
    setting = queries.find_setting(project)
    db.session.commit()  # keep what was saved, and hold no locks during the request
    return sections.show(project, "operations", tracking_outcome=service.test_connection(setting, allowed))
