"""Pages with the statistics of alerts: of a project, and of the projects of a group."""

from __future__ import annotations

from flask import render_template

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.page_parts.home_scope import HomeScope
from project_service.access.pages import PageBlueprint
from project_service.areas.alerts.models import Alert
from project_service.areas.alerts.statistics import statistics
from project_service.domain.access_levels import Role
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project

pages = PageBlueprint("alert_statistics_pages", __name__)
OF_GROUP = "/-/alert_statistics"
navigation.add(navigation.NavigationEntry("Alerts", OF_GROUP, 40, Ability.READ_GROUP), "group")


@pages.get("/<path:project>/-/alert_management/statistics")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def show_statistics(project: Project) -> str:
    """Show alerts per hour and the mean times of a project."""
    mean_times = statistics.statistics_of(Alert.project_id == project.id)
    return render_template("alerts/statistics.html", base="project.html", project=project, statistics=mean_times)


@pages.get(f"/groups/<path:group>{OF_GROUP}")
@pages.signed_in
@pages.allow(Ability.READ_GROUP)
def show_group_statistics(group: Group) -> str:
    """Show the same of the projects of a group whose alerts the caller may see."""
    projects = HomeScope(caller(), group).projects(Role.DEVELOPER, "monitor")
    mean_times = statistics.statistics_of(Alert.project_id.in_(projects))
    return render_template("alerts/statistics.html", base="group.html", group=group, statistics=mean_times)
