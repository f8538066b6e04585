"""The quality gate: new findings against the default branch."""

from __future__ import annotations

import pytest

from tests.areas.vulnerabilities.tracking.test_tracking import feedback_on, result, sarif, send_feedback
from tests.support.sample_data import DEV
from tests.support.security_reports import findings, ingest_report


@pytest.fixture
def dev(as_, project):
    return as_(DEV)


def report_of(project, *results, ref=None):
    return ingest_report(project, sarif(*results), None, ref=ref)


def gate(client, project, query=""):
    response = client.get(f"/projects/{project.id}/security_gate?{query}")
    assert response.status_code == 200, response.json
    return response.json


def high(rule, **fields):
    return result(rule, level="error", **fields)


def test_new_findings_of_a_branch_fail_the_gate(dev, project):
    main = report_of(project, high("A"))
    report_of(project, high("A"), high("B"), high("C"), result("D", level="note"), ref="feature")

    found = gate(dev, project, "branch=feature")

    assert (found["status"], found["failing"], found["known"]) == ("failed", 2, 1)
    assert (found["new"]["high"], found["new"]["low"]) == (2, 1)
    assert found["compared_with"] == {"branch": "main", "pipeline_id": main}
    assert found["message"] == "2 new findings of high or above since main."
    assert [one["name"] for one in found["findings"]] == ["Found by B.", "Found by C."]
    assert gate(dev, project, "branch=feature&fail_on=critical")["status"] == "passed"
    assert gate(dev, project, "branch=feature&fail_on=low")["failing"] == 3
    assert (
        gate(dev, project, "branch=feature&report_type=dast")["message"]
        == "No new findings of high or above since main."
    )


def test_without_a_baseline_all_findings_are_new(dev, project):
    report_of(project, high("A"), ref="feature")

    found = gate(dev, project, "branch=feature")

    assert (found["compared_with"], found["status"]) == (None, "failed")
    assert found["message"] == (
        "1 new finding of high or above on feature; main has no report of this scanner to compare with."
    )


def test_unknown_dismissed_and_suppressed_findings(dev, project):
    report_of(project)
    unknown = result("U", kind="review", level="none")
    report_of(project, high("A"), high("S", suppressions=[{"kind": "inSource"}]), unknown, ref="feature")
    pipeline = gate(dev, project, "branch=feature")
    listed = dev.get(findings(project, f"pipeline_id={_newest(dev, project)}")).json
    (first,) = (one for one in listed if one["name"] == "Found by A.")
    send_feedback(dev, feedback_on(first, "dismissal"))

    assert pipeline["failing"] == 1
    assert gate(dev, project, "branch=feature")["status"] == "passed"
    judged = gate(dev, project, "branch=feature&fail_on_unknown=true")
    assert (judged["failing"], judged["message"]) == (1, "1 new finding of high or above or unknown since main.")


def _newest(dev, project):
    return dev.get(f"/projects/{project.id}/tracked_findings?branch=feature").json[0]["last_seen_pipeline_id"]


def test_the_default_branch_is_compared_with_itself_before(dev, project):
    numbers = [report_of(project, *map(high, rules)) for rules in ("A", "AB", "B", "AB")]

    gates = [gate(dev, project, f"pipeline_id={number}") for number in numbers]

    assert [one["failing"] for one in gates][1:] == [1, 0, 1]
    assert dev.get(f"/projects/{project.id}/security_gate?pipeline_id=999").status_code == 404
    assert dev.get(f"/projects/{project.id}/security_gate?fail_on=terrible").status_code == 400
