"""Results of ``report check``: text for people, JSON and JUnit for machines (scanner formats reference, section 14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring  # nosec B405: it only writes

import orjson

JUNIT = "junit"
SEVERITY_WIDTH = 9
NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def text_of(answer: dict[str, Any]) -> str:
    """Return a line for each scanner and each failing finding, and the result."""
    return "".join(f"{_printable(line)}\n" for line in _lines(answer))


def json_of(answer: dict[str, Any]) -> str:
    """Return the answer of the service."""
    return orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode() + "\n"


def junit_of(answer: dict[str, Any]) -> str:
    """Return a ``testsuite`` for each scanner with a ``testcase`` for each new finding; one that passes without any."""
    gate = answer["gate"]
    by_scanner: dict[str, list[dict[str, Any]]] = {}
    for finding in gate["new_findings"]:
        by_scanner.setdefault(finding["scanner"] or "unknown", []).append(finding)
    left = sum(gate["new"].values()) - len(gate["new_findings"])
    names = [report["scanner"]["name"] or "unknown" for report in answer["reports"]]
    for name in names:
        by_scanner.setdefault(name, [])
    suites = Element("testsuites", name="security findings")
    for name, findings in by_scanner.items():
        failures = sum(finding["failing"] for finding in findings)
        suite = _suite(suites, name, len(findings) or 1, failures)
        for finding in findings:
            location = _xml(finding["location"] or finding["scanner"] or "unknown")
            case = SubElement(suite, "testcase", name=_xml(finding["name"]), classname=location)
            if finding["failing"]:
                message = f"{finding['severity']}: {finding['name']}"
                failure = SubElement(case, "failure", message=_xml(message), type=finding["severity"])
                failure.text = _xml("\n".join(filter(None, (finding["identifier"], finding["location"]))))
        if not findings:
            SubElement(suite, "testcase", name="no new findings", classname=_xml(name))
    if left > 0:
        suite = _suite(suites, "not listed", 1)
        SubElement(suite, "testcase", name=f"{left} more new findings", classname="not listed")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


FORMATS: dict[str, Callable[[dict[str, Any]], str]] = {"text": text_of, "json": json_of, JUNIT: junit_of}


def _suite(suites: Element, name: str, tests: int, failures: int = 0) -> Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": "0", "skipped": "0"}
    return SubElement(suites, "testsuite", {"name": _xml(name), **counts})


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    for report in answer["reports"]:
        types = ", ".join(report["report_types"])
        counts = (
            _counted(report["found"], "entry", "entries"),
            _counted(report["merged"], "finding", "findings"),
            f"{report['dropped']} the same as others",
            f"{report['left']['total']} left out",
        )
        yield f"{report['scanner']['external_id'] or 'unknown'} ({types}): {', '.join(counts)}"
    for warning in answer["warnings"]:
        yield f"warning: {warning['message']}"
    gate = answer["gate"]
    width = max((len(finding["location"]) for finding in gate["findings"]), default=0)
    for finding in gate["findings"]:
        yield f"{finding['severity']:<{SEVERITY_WIDTH}}{finding['location']:<{width}}  {finding['name']}".rstrip()
    if (left := gate["failing"] - len(gate["findings"])) > 0:
        yield f"and {left} more"
    yield f"{gate['status']}: {gate['message']}"


def _counted(count: int, noun: str, nouns: str) -> str:
    return f"{count} {noun if count == 1 else nouns}"


def _printable(line: str) -> str:
    """Return a line without characters that control a terminal."""
    return NOT_SHOWN.sub(" ", line)


def _xml(value: str) -> str:
    return NOT_IN_XML.sub("\ufffd", value)
