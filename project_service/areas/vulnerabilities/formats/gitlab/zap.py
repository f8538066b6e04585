"""Conversion of native ZAP reports, older than the common report format (security reports reference, section 6)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport

FAILED = "dast security report parsing failed"
MAX_INSTANCES = 10_000  # of one alert
MAX_TEXT_LENGTH, MAX_LINKS = 50_000, 100
RULES = "https://github.com/zaproxy/zaproxy/blob/w2019-01-14/docs/scanners.md"
WEAKNESS = "https://cwe.mitre.org/data/definitions/{}.html"
THREATS = "http://projects.webappsec.org/w/page/13246974/Threat%20Classification%20Reference%20Grid"
SEVERITIES = {"0": "info", "1": "low", "2": "medium", "3": "high"}
CONFIDENCES = {"0": "ignore", "1": "low", "2": "medium", "3": "high", "4": "confirmed"}
_TAG = re.compile(r"<[^<>]*>")  # "<" is excluded inside: backtracking would be quadratic
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)


def vulnerabilities_of(site: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every instance of every alert in the current format, with its JSON pointer."""
    sites = list(enumerate(site)) if isinstance(site, list) else [(None, site)]
    for number, site_entry in sites:
        if site_entry is None:
            continue
        above = "/site" if number is None else f"/site/{number}"
        if not isinstance(site_entry, dict):
            raise BrokenReport(FAILED, "must be an object", above)
        for alert_number, alert in _objects(site_entry.get("alerts"), f"{above}/alerts"):
            pointer, shared = f"{above}/alerts/{alert_number}/instances", _of_alert(alert)
            instances = list(_objects(alert.get("instances"), pointer))
            if len(instances) > MAX_INSTANCES:
                raise BrokenReport(FAILED, f"has more than {MAX_INSTANCES} instances", pointer)
            for inner, instance in instances or [(0, {})]:  # without an instance it is about the whole site
                yield f"{pointer}/{inner}", shared | {"location": _location(site_entry, instance)}


def _objects(value: Any, pointer: str) -> Iterator[tuple[int, dict[str, Any]]]:
    if value is not None and not isinstance(value, list):
        raise BrokenReport(FAILED, "must be an array", pointer)
    for position, item in enumerate(value or ()):
        if not isinstance(item, dict):
            raise BrokenReport(FAILED, "must be an object", f"{pointer}/{position}")
        yield position, item


def _of_alert(alert: dict[str, Any]) -> dict[str, Any]:
    """Return what all instances of an alert have in common; it is stored with each of them."""
    return {
        "message": alert.get("name"),
        "description": _plain(alert.get("desc")),
        "solution": _plain(alert.get("solution")),
        "cve": alert.get("pluginid"),
        "severity": SEVERITIES.get(str(alert.get("riskcode")), "unknown"),
        "confidence": CONFIDENCES.get(str(alert.get("confidence")), "unknown"),
        "scanner": {"id": "zaproxy", "name": "ZAProxy"},
        "identifiers": list(_identifiers(alert)),
        "links": [
            {"url": _plain(match[1])}
            for match in islice(_PARAGRAPH.finditer(str(alert.get("reference") or "")), MAX_LINKS)
        ],
    }


def _location(site: dict[str, Any], instance: dict[str, Any]) -> dict[str, Any]:
    host = str(site.get("@name") or "")
    return {
        "hostname": host,
        "path": str(instance.get("uri") or "").removeprefix(host),
        "method": instance.get("method") or "",
        "param": instance.get("param") or "",
    }


def _identifiers(alert: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "ZAProxy_PluginId", "name": alert.get("name"), "value": alert.get("pluginid"), "url": RULES}
    weakness, threat = alert.get("cweid"), alert.get("wascid")
    if weakness:
        yield {"type": "CWE", "name": f"CWE-{weakness}", "value": weakness, "url": WEAKNESS.format(weakness)}
    if threat:
        yield {"type": "WASC", "name": f"WASC-{threat}", "value": threat, "url": THREATS}


def _plain(text: Any) -> str:
    return html.unescape(_TAG.sub("", str(text or "")[:MAX_TEXT_LENGTH])).strip()
