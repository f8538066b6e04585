"""Findings followed from report to report: the table of transitions, and sequences of reports."""

from __future__ import annotations

import itertools

import orjson
import pytest
from sqlalchemy import select

from project_service.areas.vulnerabilities.findings.service import undo_dismissal
from project_service.areas.vulnerabilities.models import Feedback, Finding, TrackedFindingState
from project_service.areas.vulnerabilities.tracking.queries import STATES, tracked_findings_of
from project_service.areas.vulnerabilities.tracking.states import (
    DETECTED,
    RESOLVED,
    TRANSITIONS,
    Observation,
    TrackingOutcome,
    state_before,
)
from project_service.domain.projects import Project
from project_service.kit.db.session import db, unit_of_work
from tests.areas.vulnerabilities.findings.test_vulnerability_feedback import send_feedback
from tests.support import query_plans
from tests.support.sample_data import DEV
from tests.support.security_reports import DATA, bill, findings, report, send, vulnerability

SEEN, MISSING, UNKNOWN = Observation.SEEN, Observation.MISSING, Observation.UNKNOWN
SAMPLES = DATA / "scanner-reports"
needs_samples = pytest.mark.skipif(not SAMPLES.exists(), reason="the reports of scanners are missing")


@pytest.fixture
def dev(as_, project):
    return as_(DEV)


@pytest.mark.parametrize(
    ("state", "observation", "after", "outcome"),
    [
        (None, SEEN, DETECTED, TrackingOutcome.NEW),
        (None, MISSING, None, None),
        (None, UNKNOWN, None, None),
        (DETECTED, SEEN, DETECTED, TrackingOutcome.KNOWN),
        (DETECTED, MISSING, RESOLVED, TrackingOutcome.RESOLVED),
        (DETECTED, UNKNOWN, DETECTED, None),
        (RESOLVED, SEEN, DETECTED, TrackingOutcome.REAPPEARED),
        (RESOLVED, MISSING, RESOLVED, None),
        (RESOLVED, UNKNOWN, RESOLVED, None),
    ],
)
def test_the_table_of_transitions(state, observation, after, outcome):
    assert TRANSITIONS[state, observation] == (after, outcome)
    assert len(TRANSITIONS) == 9


@pytest.mark.parametrize(
    ("own", "default", "is_resolved_by_this", "before"),
    [
        (None, None, False, None),
        (None, DETECTED, False, DETECTED),
        (None, RESOLVED, False, RESOLVED),
        (RESOLVED, DETECTED, False, RESOLVED),
        (RESOLVED, None, True, DETECTED),
        (DETECTED, RESOLVED, True, DETECTED),
    ],
)
def test_the_state_that_a_report_finds(own, default, is_resolved_by_this, before):
    assert state_before(own, default, is_resolved_by_this=is_resolved_by_this) == before


def result(rule="R", line=3, code="", **fields):
    region = {"startLine": line} | ({"snippet": {"text": code}} if code else {})
    place = {"physicalLocation": {"artifactLocation": {"uri": fields.pop("uri", "a.py")}, "region": region}}
    return {"ruleId": rule, "message": {"text": f"Found by {rule}."}, "locations": [place]} | fields


def sarif(*results, scanner="Scan", **run):
    return {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": scanner}}, "results": list(results), **run}]}


def upload(client, project, document, report_type="", **fields):
    """Send a report; returns new, reappeared, known, moved and resolved findings."""
    response = send(client, project, document, report_type, **fields)
    assert response.status_code in (200, 201), response.json
    body = response.json
    assert sum(body["tracking"][name] for name in ("new", "reappeared", "known")) == body["merged"]
    return tuple(body["tracking"][name] for name in ("new", "reappeared", "known", "moved", "resolved"))


def states(ref="main"):
    db.session.expire_all()
    rows = db.session.scalars(select(TrackedFindingState).where(TrackedFindingState.ref == ref))
    return {row.tracked.key and row.finding.data["identifiers"][0]["external_id"]: str(row.state) for row in rows}


def sample(name):
    return (SAMPLES / name).read_bytes()


@needs_samples
def test_runs_of_semgrep_with_moved_fixed_and_added_calls(dev, project):
    runs = [upload(dev, project, sample(f"semgrep{name}.sarif")) for name in ("", "-moved", "")]

    assert runs == [(5, 0, 0, 0, 0), (1, 0, 4, 4, 1), (0, 1, 4, 4, 1)]


@needs_samples
def test_moved_lines_of_a_scanner_that_tells_only_lines(dev, project):
    document = orjson.loads(sample("ruff.sarif"))
    upload(dev, project, document)
    for one in document["runs"][0]["results"]:
        region = one["locations"][0]["physicalLocation"]["region"]
        region["startLine"] += 7
        region["endLine"] += 7

    assert upload(dev, project, document) == (0, 0, 9, 9, 0)


@needs_samples
def test_another_format_of_the_same_scanner(dev, project):
    upload(dev, project, sample("bandit.json"))

    assert upload(dev, project, sample("bandit.sarif")) == (0, 0, 10, 0, 0)


@needs_samples
def test_an_empty_complete_report_resolves_its_series_only(dev, project):
    upload(dev, project, sample("every-rule.sarif"))
    document = orjson.loads(sample("every-rule.sarif").decode("utf-8-sig"))
    document["runs"] = [document["runs"][0] | {"results": []}]

    assert upload(dev, project, document) == (0, 0, 0, 0, 10)
    assert list(states().values()).count("detected") == 1


def test_an_incomplete_report_resolves_nothing(dev, project):
    upload(dev, project, sarif(result("A"), result("B")))
    failed = {"invocations": [{"executionSuccessful": False}]}

    assert upload(dev, project, sarif(result("A"), **failed)) == (0, 0, 1, 0, 0)
    assert states() == {"A": "detected", "B": "detected"}


@pytest.mark.parametrize("is_reversed", [False, True])
def test_reports_of_one_pipeline_are_one(is_reversed, dev, project):
    upload(dev, project, sarif(result("A"), result("B")))
    first = send(dev, project, sarif(result("A")), "", sha="ab" * 20).json
    parts = [sarif(result("B")), sarif(result("C"), invocations=[{"executionSuccessful": False}])]
    for part in reversed(parts) if is_reversed else parts:
        upload(dev, project, part, pipeline_id=first["pipeline_id"])

    assert first["tracking"]["resolved"] == 1
    assert states() == {"A": "detected", "B": "detected", "C": "detected"}
    assert db.session.scalars(select(TrackedFindingState.reappearances)).all() == [0, 0, 0]


def test_a_late_report_of_an_older_pipeline_moves_no_state(dev, project):
    older = send(dev, project, sarif(result("A"), scanner="Other"), "", sha="ab" * 20).json["pipeline_id"]
    upload(dev, project, sarif(result("A")))

    assert upload(dev, project, sarif(result("B")), pipeline_id=older) == (1, 0, 0, 0, 0)
    assert states() == {"A": "detected"}


def test_a_branch_starts_with_the_states_of_the_default_branch(dev, project):
    upload(dev, project, sarif(result("A"), result("B")))
    upload(dev, project, sarif(result("A")))

    assert upload(dev, project, sarif(result("A"), result("B"), result("C")), ref="feature") == (1, 1, 1, 0, 0)
    assert states() == {"A": "detected", "B": "resolved"}
    assert states("feature") == {"A": "detected", "B": "detected", "C": "detected"}


def test_another_category_and_another_scanner_are_untouched(dev, project):
    upload(dev, project, sarif(result("A")), category="api")
    upload(dev, project, sarif(result("B"), scanner="Other"))

    assert upload(dev, project, sarif(), category="web") == (0, 0, 0, 0, 0)
    assert states() == {"A": "detected", "B": "detected"}


def test_a_new_version_of_a_package_is_the_same_finding(dev, project):
    upload(dev, project, bill("acme"))

    assert upload(dev, project, bill("acme", version="2.0")) == (0, 0, 1, 1, 0)


def test_signatures_follow_entries_of_gitlabs_format(dev, project):
    tracking = {"items": [{"signatures": [{"algorithm": "scope_offset", "value": "a.py|f:1"}]}]}
    entries = [vulnerability(tracking=tracking, location={"file": "a.py", "start_line": line}) for line in (3, 90)]
    upload(dev, project, report(entries[0]), "sast")

    assert upload(dev, project, report(entries[1]), "sast") == (0, 0, 1, 1, 0)


def test_a_dry_run_counts_and_stores_nothing(dev, project):
    assert upload(dev, project, sarif(result("A")), dry_run="true") == (1, 0, 0, 0, 0)
    assert states() == {}


def feedback_on(finding, feedback_type):
    names = {"project_fingerprint": finding["project_fingerprint"], "finding_uuid": finding["uuid"]}
    return {"vulnerability_feedback": {"feedback_type": feedback_type, "category": finding["report_type"], **names}}


@pytest.mark.parametrize("code", ["call()", ""])
def test_a_dismissal_holds_for_later_places_and_after_a_return(code, dev, project):
    fingerprints = {"fingerprints": {"a/v1": "x"}} if code else {}
    upload(dev, project, sarif(result("A", line=3, code=code, **fingerprints)))
    (before,) = dev.get(findings(project)).json
    assert send_feedback(dev, feedback_on(before, "dismissal")).status_code == 201
    if code:  # also resolved ones are recognised by their code, though the key is another one
        upload(dev, project, sarif())
    upload(dev, project, sarif(result("A", line=9, code=code)))
    (after,) = dev.get(findings(project)).json

    assert after["uuid"] != before["uuid"]
    assert (after["state"], after["dismissal_feedback"]["finding_uuid"]) == ("dismissed", before["uuid"])
    assert [one["state"] for one in tracked(dev, project, "state=detected,dismissed")] == ["dismissed"]


def test_the_issue_of_a_finding_is_that_of_its_later_places(dev, project):
    iids = set()
    for line in (3, 9):
        upload(dev, project, sarif(result("A", line=line)))
        (one,) = dev.get(findings(project)).json
        iids.add(send_feedback(dev, feedback_on(one, "issue")).json["issue_iid"])

    assert len(iids) == 1
    assert [one["issue_iid"] for one in tracked(dev, project)] == list(iids)


def tracked(client, project, query=""):
    response = client.get(f"/projects/{project.id}/tracked_findings?{query}")
    assert response.status_code == 200, response.json
    return response.json


def test_tracked_findings_are_listed_by_state_and_severity(dev, project):
    pipelines = []
    for rules in ("ABC", "AC", "ABC", "AB"):
        results = [result(rule, level={"A": "note"}.get(rule, "error")) for rule in rules]
        pipelines.append(send(dev, project, sarif(*results), "").json["pipeline_id"])
    upload(dev, project, sarif(result("D"), scanner="Other"), category="api")

    first, second, third = tracked(dev, project)
    assert [one["identifiers"][0]["external_id"] for one in (first, second, third)] == ["B", "D", "A"]
    assert (first["reappearances"], first["first_seen_pipeline_id"], first["last_seen_pipeline_id"]) == (
        *(1, pipelines[0], pipelines[3]),
    )
    assert [first[name] for name in ("state", "severity", "branch", "scanner")] == ["detected", "high", "main", "scan"]
    (gone,) = tracked(dev, project, "state=resolved")
    assert (gone["name"], gone["resolved_pipeline_id"]) == ("Found by C.", pipelines[3])
    assert len(tracked(dev, project, "severity=low")) == len(tracked(dev, project, "category=api")) == 1
    assert len(tracked(dev, project, "scanner=scan&report_type=sast")) == 2
    assert tracked(dev, project, "branch=other") == []


def test_listed_findings_say_since_when_they_are_known(dev, project):
    upload(dev, project, sarif(result("A")), category="api")
    upload(dev, project, sarif(result("A")), category="api")
    (one,) = dev.get(findings(project)).json
    (same,) = tracked(dev, project)

    assert (one["tracked_id"], one["category"]) == (same["id"], "api")
    assert (one["first_seen_at"], one["last_seen_at"]) == (same["first_seen_at"], same["last_seen_at"])


def differing_dismissals():
    """The states whose dismissal is not that of their finding."""
    statement = select(TrackedFindingState).join(TrackedFindingState.finding)
    return db.session.scalars(statement.where(Finding.dismissed != TrackedFindingState.dismissed)).all()


def test_states_have_the_dismissals_of_their_findings(dev, project):
    upload(dev, project, sarif(result("A"), result("S", suppressions=[{"kind": "inSource"}])))
    shown = [tracked(dev, project, "state=dismissed")]
    (open_one,) = tracked(dev, project, "state=detected")
    feedback = send_feedback(dev, feedback_on(open_one, "dismissal")).json
    shown.append(tracked(dev, project, "state=dismissed"))
    upload(dev, project, sarif(result("A", line=9), result("S")))
    shown.append(tracked(dev, project, "state=dismissed"))
    with unit_of_work():
        undo_dismissal(project, db.session.get_one(Feedback, feedback["id"]))
    shown.append(tracked(dev, project, "state=dismissed"))

    assert [sorted(one["identifiers"][0]["name"] for one in rows) for rows in shown] == [["S"], ["A", "S"], ["A"], []]
    assert differing_dismissals() == []


@pytest.mark.both_databases
@pytest.mark.parametrize("size", [1, 2, 3])
def test_each_combination_of_states_is_in_the_order_of_an_index(size, project):
    for states in itertools.combinations(STATES, size):
        statement = tracked_findings_of(db.session.get_one(Project, project.id), "main", state=states).limit(20)
        text = str(statement.compile(db.engine, compile_kwargs={"literal_binds": True}))

        assert query_plans.faults(text, ()) == set(), states
