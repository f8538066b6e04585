"""Reports of scanners for tests of vulnerability findings, and their upload."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import orjson
from werkzeug.datastructures import FileStorage
from werkzeug.test import encode_multipart

from project_service.areas.vulnerabilities.ingestion import ingestion

DATA = Path(os.environ.get("PROJECT_SERVICE_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")
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


def bill(*names: str, version: str = "1.0", **fields: Any) -> dict[str, Any]:
    """A bill of materials in CycloneDX, with a vulnerability of each component."""
    components = [
        {"bom-ref": name, "type": "library", "name": name, "version": version, "purl": f"pkg:npm/{name}@{version}"}
        for name in names
    ]
    vulnerabilities = [{"id": f"CVE-2099-{place}", "affects": [{"ref": name}]} for place, name in enumerate(names, 1)]
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": components}
    return document | {"vulnerabilities": vulnerabilities} | fields


def findings(project: Any, query: str = "scope=all&per_page=100") -> str:
    """The address of the list."""
    return f"/projects/{project.id}/vulnerability_findings?{query}"


def send(client: Any, project: Any, report: Any, report_type: str = "sast", **fields: Any) -> Any:
    """Send a report: a document, or the bytes of a file."""
    raw = report if isinstance(report, bytes) else orjson.dumps(report)
    file = FileStorage(io.BytesIO(raw), "report.json", "file")
    data = {"file": file, "report_type": report_type} | fields
    # encoded here: the test client would leave the file open that it gathers a large body in
    boundary, body = encode_multipart(data)
    content_type = f"multipart/form-data; boundary={boundary}"
    return client.post(f"/projects/{project.id}/security_reports", data=body, content_type=content_type)


def ingest(client: Any, project: Any, report: Any, report_type: str = "sast", **fields: Any) -> int:
    """Send a valid report; return the id of its pipeline."""
    response = send(client, project, report, report_type, **fields)
    assert response.status_code == 201, response.json
    return int(response.json["pipeline_id"])


def ingest_report(project: Any, report: Any, report_type: str = "sast", **fields: Any) -> int:
    """The same without HTTP, in a unit of work of its own."""
    return ingestion.ingest(project, io.BytesIO(orjson.dumps(report)), report_type, **fields).pipeline_id
