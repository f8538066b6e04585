"""What tests of vulnerability findings begin with: reports, as scanners write them, and how they are sent."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import orjson

DATA = Path(os.environ.get("PROJECT_SERVICE_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
REPORTS = DATA / "security-reports"


def vulnerability(key: str = "a", **fields: Any) -> dict[str, Any]:
    """An entry of a SAST report; ``key`` makes it different from others. Fields that are ``None`` are left out."""
    made = {
        "id": f"id-{key}",
        "name": f"Finding {key}",
        "cve": f"key:{key}",
        "severity": "High",
        "confidence": "High",
        "identifiers": [{"type": "rule", "name": f"Rule {key}", "value": key, "url": f"https://rules.example/{key}"}],
        "location": {"file": f"app/{key}.py", "start_line": 3, "end_line": 5},
    } | fields
    return {name: value for name, value in made.items() if value is not None}


def report(*vulnerabilities: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A report with these entries."""
    return {"version": "14.0.0", "vulnerabilities": list(vulnerabilities)} | fields


def findings(project: Any, query: str = "scope=all&per_page=100") -> str:
    """The address of the list."""
    return f"/projects/{project.id}/vulnerability_findings?{query}"


def send(client: Any, project: Any, report: Any, report_type: str = "sast", **fields: Any) -> Any:
    """Send a report: a document, or the bytes of a file."""
    raw = report if isinstance(report, bytes) else orjson.dumps(report)
    data = {"file": (io.BytesIO(raw), "report.json"), "report_type": report_type} | fields
    return client.post(f"/projects/{project.id}/security_reports", data=data)


def ingest(client: Any, project: Any, report: Any, report_type: str = "sast", **fields: Any) -> int:
    """Send a report that is taken; the id of its pipeline."""
    answer = send(client, project, report, report_type, **fields)
    assert answer.status_code == 201, answer.json
    return int(answer.json["pipeline_id"])
