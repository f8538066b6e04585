"""Serialization of the settings of error tracking."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select

from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.transfers.archive import layout
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.templates import Line


def serialize_error_tracking(context: ExportContext) -> Iterator[Line]:
    """Generate the row of the settings, if there are any."""
    setting = ErrorTrackingSetting
    imported = next(context.archived(layout.ERROR_TRACKING), {})
    statement = select(setting.api_url, setting.project_name, setting.organization_name, setting.integrated)
    for api_url, name, organization, integrated in context.execute(
        statement.where(setting.project_id == context.project.id)
    ):
        # releases before 14 know no such key
        now = {"integrated": integrated} if integrated or "integrated" in imported else {}
        yield (
            imported
            | now
            | {
                "project_id": context.project.id,
                "api_url": api_url,
                "project_name": name,
                "organization_name": organization,
            }
        )
