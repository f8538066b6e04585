"""Chart of the findings of the last pipelines by severity."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import select

from project_service.areas.vulnerabilities.findings.queries import pipelines_of
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.models import FindingCount, Pipeline
from project_service.areas.vulnerabilities.severity_order import FindingRank
from project_service.domain.projects import Project
from project_service.kit.charts import Chart, stacked
from project_service.kit.db.session import db

MAX_PIPELINES = 20
WORST_FIRST = sorted(FindingSeverity, reverse=True)


def last_pipelines(project: Project) -> Chart:
    """Return a chart of the last pipelines of the default branch, oldest first, without dismissed findings."""
    pipelines = list(db.session.scalars(pipelines_of(project).limit(MAX_PIPELINES)))[::-1]
    rows = db.session.execute(
        select(FindingCount.pipeline_id, FindingCount.sort, FindingCount.found - FindingCount.dismissed).where(
            FindingCount.pipeline_id.in_([pipeline.id for pipeline in pipelines])
        )
    )
    counted: dict[int, Counter[FindingSeverity]] = {pipeline.id: Counter() for pipeline in pipelines}
    for pipeline_id, number, count in rows:
        counted[pipeline_id][FindingRank.of(number).severity] += count
    columns: list[tuple[Pipeline, Counter[FindingSeverity]]] = [
        (pipeline, counted[pipeline.id]) for pipeline in pipelines
    ]
    return stacked(columns, WORST_FIRST)
