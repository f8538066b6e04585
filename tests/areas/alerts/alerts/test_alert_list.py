"""The list of alerts and the page of an alert: content and actions."""

from __future__ import annotations

import datetime as dt
import html
import json
import re

import pytest

from project_service.access import visible_notes as planned_notes
from project_service.areas.alerts.alerts import listing
from project_service.areas.alerts.models import OPSGENIE, TARGET, Alert, AlertIntegration, Severity, Status
from project_service.domain.accounts.users import BLOCKED, User
from project_service.domain.todos import Todo
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support import sample_data
from tests.support.sample_data import ADA, DEV, GUS, MAX, OLIVE, RITA, SAM, make_todo
from tests.support.visitors import store

LIST = "/acme/shop/-/alert_management"
ONE = f"{LIST}/1"


@pytest.fixture
def developer(visit, project):
    return visit(DEV)


@pytest.fixture
def make_alert(project):
    """Store alerts of the shop, the newest first."""

    def make(iid, **fields):
        own = {"project_id": project.id, "iid": iid, "title": "Alert"}
        own |= {"started_at": clock.now() - dt.timedelta(minutes=iid)}
        return store(Alert(**own | fields))

    return make


def listed(page):
    """Return the numbers of the alerts that a page of the list shows, in order."""
    return [int(iid) for iid in re.findall(r'/details">#(\d+) ', page.text)]


def badges(page):
    return [int(count) for count in re.findall(r'<span class="badge">(\d+)\+?</span></a></li>', page.text)]


def notes():
    db.session.remove()
    return [note.body for note in db.session.query(Note).filter(Note.noteable_type == TARGET).order_by(Note.id)]


def comment_numbers(page):
    """Return the numbers of the comments that a page shows."""
    return re.findall(r"<p>Word (\d)</p>", page.text)


def link_of(page, relation):
    """Return the URL of the link to the previous or next page."""
    match = re.search(f'rel="{relation}" href="([^"]+)"', page.text)
    return html.unescape(match[1]) if match else None


def users_with_todos():
    """Return the users with pending to-do items."""
    db.session.remove()
    return [todo.user_id for todo in db.session.query(Todo).filter(Todo.done_at.is_(None))]


def alert_now():
    db.session.remove()
    return db.session.query(Alert).filter(Alert.iid == 1).one()


@pytest.mark.parametrize(
    ("query", "iids"),
    [
        ("", [1, 2]),
        ("?tab=open", [1, 2]),
        ("?tab=triggered", [1]),
        ("?tab=acknowledged", [2]),
        ("?tab=resolved", [3]),
        ("?tab=ignored", [4]),
        ("?tab=all", [1, 2, 3, 4]),
        ("?tab=nonsense", [1, 2]),
    ],
)
def test_each_tab_has_its_alerts_and_its_count(query, iids, developer, make_alert):
    for iid, status in enumerate(Status, start=1):
        make_alert(iid, status=status)

    page = developer.get(f"{LIST}{query}")

    assert (listed(page), badges(page)) == (iids, [2, 1, 1, 1, 1, 4])


@pytest.mark.parametrize(
    ("name", "down"),
    [
        ("started_at", [1, 2, 3]),
        ("created_at", [3, 2, 1]),
        ("updated_at", [1, 3, 2]),
        ("ended_at", [2, 3, 1]),
        ("event_count", [2, 1, 3]),
        ("severity", [2, 1, 3]),
        ("status", [3, 1, 2]),
        ("nonsense", [1, 2, 3]),
    ],
)
def test_the_list_is_sorted_both_ways(name, down, developer, make_alert):
    def day(number):
        return dt.datetime(2026, 3, number, tzinfo=dt.UTC)

    names = ("started_at", "created_at", "updated_at", "ended_at", "events", "severity", "status")
    rows = [
        (day(3), day(1), day(3), day(1), 5, Severity.HIGH, Status.ACKNOWLEDGED),
        (day(2), day(2), day(1), day(3), 9, Severity.CRITICAL, Status.RESOLVED),
        (day(1), day(3), day(2), day(2), 1, Severity.UNKNOWN, Status.TRIGGERED),
    ]
    for iid, row in enumerate(rows, start=1):
        fields = dict(zip(names, row, strict=True))
        if name != "created_at":
            fields["created_at"] = day(9)  # after all starts
        make_alert(iid, **fields)

    pages = [developer.get(f"{LIST}?tab=all&order_by={name}&sort={sort}") for sort in ("desc", "asc", "")]

    assert [listed(page) for page in pages] == [down, down[::-1], down]


def test_a_column_header_reverses_the_order_and_returns_to_page_one(developer, make_alert):
    make_alert(1)

    page = html.unescape(developer.get(f"{LIST}?tab=all&search=ale&order_by=event_count&sort=desc&page=1").text)

    assert '<a href="?tab=all&search=ale&order_by=event_count&sort=asc">Events' in page
    assert '<a href="?tab=all&search=ale&order_by=severity&sort=desc">Severity' in page


@pytest.mark.parametrize(
    ("search", "iids"),
    [
        ("100%25", [1]),
        ("DISK_", [2]),
        ("smoke", [3]),
        ("nagios", [4]),
        ("ovens", [5]),
        ("+full+", [1]),
        ("%C3%BCber", [6]),
        ("%C3%9CBER", [6]),
        ("db-2", [1]),
        ("full+disk", [1]),
        ("disk+smoke", []),
        ("%22full+disk%22", []),
        ("%22100+slow%22", [2]),
        ("ki+na", [4]),
        ("ve", [5]),
        ("disk+10", [1, 2]),
        ("pingdom", [3]),
        ("smoke+pingd", [3]),
        ("payloads", []),
        ("%5C", []),
    ],
)
def test_the_search_is_literal_and_takes_all_words(search, iids, developer, make_alert, project):
    source = store(AlertIntegration(project_id=project.id, name="Pingdom", endpoint_identifier="1f", token="t"))
    make_alert(1, title="Disk 100% full", hosts=["db-2"], payload={"host": "payloads"})
    make_alert(2, title="disk_io 100 slow")
    make_alert(3, description="There is Smoke", integration_id=source.id)
    make_alert(4, monitoring_tool="Nagios", title="Kitchen")
    make_alert(5, service="ovens")
    make_alert(6, title="Überhitzung")

    page = developer.get(f"{LIST}?search={search}")

    assert (listed(page), badges(page)[0]) == (iids, len(iids))


@pytest.mark.parametrize(("username", "iids"), [("max", [2]), ("MAX", [2]), ("ma", []), ("", [1, 2]), ("nobody", [])])
def test_the_list_is_filtered_by_assignee(username, iids, developer, make_alert, people):
    make_alert(1)
    make_alert(2, assignee_id=people[MAX].id)

    page = developer.get(f"{LIST}?assignee_username={username}")

    assert (listed(page), badges(page)[0]) == (iids, len(iids))
    assert ("No alert fits these filters." in page.text) == (not iids)


def test_pages_of_alerts_keep_the_query(developer, make_alert):
    for iid in range(1, 22):
        make_alert(iid)

    first, second = developer.get(f"{LIST}?search=alert"), developer.get(f"{LIST}?search=alert&page=2")

    assert (listed(first), listed(second)) == (list(range(1, 21)), [21])
    assert 'rel="next" href="?search=alert&page=2"' in html.unescape(first.text)
    assert 'rel="prev" href="?search=alert&page=1"' in html.unescape(second.text)
    assert '<a href="?search=alert&tab=all">All' in html.unescape(second.text)


@pytest.mark.parametrize(("person", "invited"), [(MAX, True), (DEV, False)])
def test_without_alerts_the_list_explains_how_to_begin(person, invited, visit, project):
    page = visit(person).get(LIST).text

    assert ("Surface alerts here" in page, "Search alerts" in page) == (True, False)
    assert ("Authorize external service" in page) == invited


@pytest.mark.parametrize(("active", "text"), [(True, "No alerts to display."), (False, "Surface alerts here")])
def test_with_an_active_integration_the_list_is_empty(active, text, developer, project):
    store(AlertIntegration(project_id=project.id, name="A", active=active, endpoint_identifier="1f", token="t"))

    assert text in developer.get(LIST).text


def test_an_empty_tab_says_so_when_other_tabs_have_alerts(developer, make_alert):
    make_alert(1, status=Status.RESOLVED, ended_at=clock.now())

    page = developer.get(LIST)

    assert (listed(page), "No alerts to display." in page.text) == ([], True)


@pytest.mark.parametrize("active", [True, False])
def test_an_active_opsgenie_integration_replaces_the_list(active, developer, make_alert, project):
    make_alert(1)
    fields = {"name": "Ops", "type": OPSGENIE, "endpoint_identifier": "1f", "token": "t"}
    store(AlertIntegration(project_id=project.id, active=active, target_url="https://ops.example", **fields))

    page = developer.get(LIST)

    assert ("Opsgenie is enabled" in page.text, 'href="https://ops.example"' in page.text) == (active, active)
    assert listed(page) == ([] if active else [1])


def test_the_chart_counts_the_alerts_of_thirty_days(developer, make_alert):
    now = clock.now()
    for iid, severity in ((1, Severity.CRITICAL), (2, Severity.HIGH), (3, Severity.CRITICAL)):
        make_alert(iid, severity=severity, started_at=now)
    make_alert(4, started_at=now - dt.timedelta(days=29), severity=Severity.LOW)
    make_alert(5, started_at=now - dt.timedelta(days=31))

    page = developer.get(LIST).text
    rows = re.findall(r'<tr><th scope="row">([\d-]+)</th>(.*?)</tr>', page)
    days = [now.date().isoformat(), (now - dt.timedelta(days=29)).date().isoformat()]
    bars = re.findall(r'<rect x="(\d+)" y="([\d.]+)" width="\d+" height="([\d.]+)" class="severity-(\w+)"', page)

    assert "last 30 days (4)" in page
    assert [(day, re.findall(r"\d+", cells)) for day, cells in rows] == [
        (days[0], ["2", "1", "0", "0", "0", "0"]),
        (days[1], ["0", "0", "0", "1", "0", "0"]),
    ]
    assert [(x, severity) for x, _, _, severity in bars] == [("0", "low"), ("580", "high"), ("580", "critical")]
    assert [round(float(height)) for _, _, height, _ in bars] == [27, 27, 53]
    assert [round(float(y)) for _, y, _, _ in bars] == [53, 53, 0]


def test_the_chart_is_empty_for_old_alerts(developer, make_alert):
    make_alert(1, started_at=clock.now() - dt.timedelta(days=40))

    page = developer.get(LIST)

    assert (listed(page), "last 30 days (0)" in page.text) == ([1], True)
    assert ("<svg" in page.text, "<rect" in page.text) == (True, False)
    assert ('aria-label="0 alerts in the last 30 days"' in page.text, "<summary>Numbers" in page.text) == (True, False)


@pytest.mark.parametrize("part", ["overview", "metrics", "activity"])
def test_each_tab_of_an_alert_has_a_url(part, developer, make_alert):
    make_alert(1, payload={"generatorURL": "http://prom.example/graph?g0.expr=up"})

    page = developer.get(f"{ONE}/details/{part}")

    assert page.status_code == 200
    assert ("Add a to-do item" in page.text, "<dt>Severity</dt>" in page.text) == (True, True)
    assert f'<a href="{ONE}/details/{part}" aria-current="page">' in page.text


@pytest.mark.parametrize("generator", ["http://prom.example/graph?g0.expr=up", "javascript:alert(1)?g0.expr=up"])
def test_a_query_links_to_its_generator_if_that_is_an_http_url(generator, developer, make_alert):
    make_alert(1, payload={"generatorURL": generator})

    page = developer.get(f"{ONE}/details/metrics").text

    assert "<code>up</code></pre>" in page
    assert (f'href="{generator}"' in page) == generator.startswith("http")


def test_a_row_shows_the_main_fields_of_an_alert(developer, make_alert, people, project):
    issue = issue_rules.create_issue(people[MAX], project, title="Repair", issue_type="incident")
    db.session.commit()
    make_alert(1, severity=Severity.MEDIUM, events=7, assignee_id=people[MAX].id, issue_id=issue.id)
    make_alert(2, started_at=clock.now() - dt.timedelta(hours=13))
    issue_rules.close_issue(people[MAX], issue)
    db.session.commit()

    page = developer.get(f"{LIST}?tab=all").text
    rows = re.findall(r"<tr( class=\"recent\")?>\s*<td class=\"pick\">(.*?)</tr>", page, re.DOTALL)

    assert [bool(recent) for recent, _ in rows] == [True, False]
    for text in ("Medium", 'data-label="Events">7<', 'issues/1">#1</a> (closed)', 'data-label="Assignees">Max<'):
        assert text in rows[0][1]
    for text in ("Critical", 'data-label="Incident"></td>', 'data-label="Assignees"></td>'):
        assert text in rows[1][1]


def test_an_alert_with_a_future_start_is_not_shown_as_started(developer, make_alert):
    make_alert(1, started_at=clock.now() + dt.timedelta(hours=3, seconds=30))
    make_alert(2, started_at=clock.now())

    page = developer.get(LIST).text

    assert re.findall(r">(in 3 hours|just now)</time>", page) == ["just now", "in 3 hours"]
    assert page.count('class="recent"') == 1


@pytest.mark.both_databases
def test_an_alert_with_a_future_start_is_ordered_by_its_receipt(developer, make_alert):
    now = clock.now()
    for iid, hours in ((1, 2), (2, 1), (3, 3)):
        make_alert(iid, created_at=now - dt.timedelta(hours=hours), started_at=now - dt.timedelta(hours=hours))
    make_alert(4, created_at=now - dt.timedelta(minutes=90), started_at=now + dt.timedelta(days=9000))

    pages = [developer.get(f"{LIST}{query}") for query in ("", "?tab=all", "?order_by=status&sort=asc", "?sort=asc")]

    assert [listed(page) for page in pages] == [[2, 4, 1, 3]] * 3 + [[3, 1, 4, 2]]


def test_a_status_change_in_the_list_keeps_the_query(developer, make_alert):
    make_alert(1)
    query = "?tab=triggered&search=al%26ert&page=1"
    page = developer.get(f"{LIST}?tab=triggered&search=al").text
    return_query = html.unescape(re.search(r'name="back" value="([^"]*)"', page).group(1))

    queries_by_status = {"acknowledged": return_query, "resolved": query}
    responses = [
        developer.send(f"{ONE}/status", status=status, back=address) for status, address in queries_by_status.items()
    ]

    assert [response.location for response in responses] == [f"{LIST}?tab=triggered&search=al", f"{LIST}{query}"]
    assert alert_now().status == Status.RESOLVED


@pytest.mark.parametrize("back", ["", "//elsewhere.example", "https://elsewhere.example", "/../?", "?\r\na=b"])
def test_an_invalid_query_redirects_to_the_alert(back, developer, make_alert):
    make_alert(1)

    assert developer.send(f"{ONE}/status", status="acknowledged", back=back).location == f"{ONE}/details"


@pytest.mark.parametrize(
    ("person", "status"), [(ADA, 200), (OLIVE, 200), (MAX, 200), (DEV, 200), (RITA, 404), (GUS, 404), (SAM, 404)]
)
def test_roles_that_see_alerts(person, status, visit, make_alert):
    make_alert(1)
    visitor = visit(person)

    assert [visitor.get(address).status_code for address in (LIST, f"{ONE}/details")] == [status] * 2


@pytest.mark.parametrize(("person", "status"), [(RITA, 404), (SAM, 404)])
def test_roles_that_cannot_change_alerts(person, status, visit, make_alert):
    make_alert(1)
    visitor = visit(person)
    fields = {"status": "resolved", "assignee_id": "", "todo": "add", "note": "Mine"}

    responses = [
        visitor.send(f"{ONE}/{name}", **fields) for name in ("status", "assignee", "todo", "incident", "notes")
    ]

    assert [response.status_code for response in responses] == [status] * 5
    assert (alert_now().status, notes()) == (Status.TRIGGERED, [])


def test_a_huge_alert_number_is_not_found(developer, make_alert):
    make_alert(1)

    numbers = (2**63, 10**30, "1" * 4000, "1" * 5000)
    addresses = [f"/acme/shop/-/{part}" for part in ("alert_management/{}/details", "issues/{}", "environments/{}")]
    responses = [developer.get(address.format(number)).status_code for address in addresses for number in numbers]
    assert responses == [404, 404, 404, 414] * 3  # the last path is too long for any page


def test_a_huge_page_number_is_empty(developer, make_alert):
    make_alert(1)

    assert developer.get(f"{LIST}?page={'1' * 5000}").status_code == 200


@pytest.mark.parametrize("iid", [2, 3])
def test_unknown_and_foreign_alerts_are_not_found(iid, visit, make_alert):
    make_alert(1)
    make_alert(2, project_id=sample_data.make_project().id)
    admin = visit(ADA)

    assert admin.get(f"{LIST}/{iid}/details").status_code == 404
    names = ("status", "assignee", "todo", "incident", "notes")
    assert [admin.send(f"{LIST}/{iid}/{name}").status_code for name in names] == [404] * 5


def test_the_page_of_an_alert_shows_its_facts(developer, make_alert, project):
    environment = store(Environment(project_id=project.id, name="production", slug="production"))
    moment = dt.datetime(2026, 3, 4, 5, 6, 7, tzinfo=dt.UTC)
    times = {"started_at": moment, "ended_at": moment + dt.timedelta(hours=1), "status": Status.RESOLVED}
    texts = {
        "monitoring_tool": "Nagios",
        "service": "ovens",
        "hosts": ["a", "b"],
        "description": "It is <cold>",
    }
    make_alert(1, severity=Severity.LOW, events=3, environment_id=environment.id, **times, **texts)

    page = developer.get(f"{ONE}/details").text
    summary = page.partition('<dl class="facts">')[2].partition("</dl>")[0]
    rows = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", summary)
    facts = [(name, re.sub("<[^>]+>", "", text).strip()) for name, text in rows]

    assert facts == [
        ("Severity", "Low"),
        ("Environment", "production"),
        ("Start time", "4 Mar 2026 05:06:07 UTC"),
        ("End time", "4 Mar 2026 06:06:07 UTC"),
        ("Events", "3"),
        ("Tool", "Nagios"),
        ("Service", "ovens"),
        ("Hosts", "a, b"),
    ]
    assert ('<span class="badge">Resolved</span>' in page, "by Nagios" in page) == (True, True)
    assert "It is &lt;cold&gt;" in page


def test_fields_without_a_value_are_left_out(developer, make_alert):
    make_alert(1)

    page = developer.get(f"{ONE}/details").text

    assert re.findall("<dt>(.*?)</dt>", page) == ["Severity", "Start time", "Events", "Received"]
    assert ("Metrics" in page, "Hosts" in page) == (False, False)
    assert "No alert data to display." in page


def test_only_http_urls_become_links_in_the_payload(developer, make_alert):
    links = {"a": "https://a.example/x?y=1", "b": "http://b.example"}
    texts = {
        "script": "javascript:alert(1)",
        "text": "<b>bold</b>",
        "list": ["https://c.example"],
        "none": None,
    }
    make_alert(1, payload={"links": links, "words": texts, "empty": {}})

    page = developer.get(f"{ONE}/details").text
    branches = re.findall(r"<summary>(.*?)</summary>", page)
    leaves = dict(re.findall(r'<span class="key">(.*?)</span> (.*?)</li>', page))

    assert branches == ["Menu", "More", "links", "words", "list", "empty"]
    assert leaves == {
        "a": '<a href="https://a.example/x?y=1" rel="noreferrer noopener nofollow">https://a.example/x?y=1</a>',
        "b": '<a href="http://b.example" rel="noreferrer noopener nofollow">http://b.example</a>',
        "script": "javascript:alert(1)",
        "text": "&lt;b&gt;bold&lt;/b&gt;",
        "0": '<a href="https://c.example" rel="noreferrer noopener nofollow">https://c.example</a>',
        "none": "null",
    }


def test_a_large_payload_is_truncated_and_can_be_downloaded(developer, make_alert):
    payload = {"many": list(range(3000)), "deep": json.loads('{"a":' * 98 + "1" + "}" * 98)}
    make_alert(1, payload=payload)

    page = developer.get(f"{ONE}/details")

    assert (page.status_code, page.text.count('<span class="key">')) == (200, 1999)
    assert "1100 more values are left out here." in page.text
    assert developer.get(f"{ONE}/payload.json").json == payload


def test_the_page_and_its_payload_show_every_digit_of_an_integer(developer, make_alert):
    make_alert(1, payload={"id": 2**64})

    assert str(2**64) in developer.get(f"{ONE}/details").text
    assert developer.get(f"{ONE}/payload.json").text == f'{{"id":{2**64}}}'


@pytest.mark.parametrize(
    "payload",
    [
        {"runbook": "https://run.example/1"},
        {"annotations": {"runbook": "https://run.example/1"}, "generatorURL": "http://p.example/graph?g0.expr=up"},
    ],
)
def test_an_alert_links_to_its_runbook_and_environment(payload, developer, make_alert, project):
    environment = store(Environment(project_id=project.id, name="production", slug="production"))
    make_alert(1, payload=payload, environment_id=environment.id)

    page = developer.get(f"{ONE}/details").text

    assert f'<a href="/acme/shop/-/environments/{environment.id}">production</a>' in page
    assert '<dt>Runbook</dt><dd><a href="https://run.example/1"' in page
    metrics = developer.get(f"{ONE}/details/metrics").text
    assert ("<code>up</code></pre>" in metrics, ">Metrics</a>" in page) == ("annotations" in payload,) * 2
    assert "Alert" in developer.get(f"/acme/shop/-/environments/{environment.id}").text


def test_an_alert_is_reassigned(developer, make_alert, people):
    make_alert(1)
    ids = [str(people[MAX].id), str(people[OLIVE].id), str(people[OLIVE].id), "0", ""]

    statuses = [developer.send(f"{ONE}/assignee", assignee_id=one).status_code for one in ids]

    assert statuses == [302] * 5
    assert alert_now().assignee_id is None
    assert notes() == ["assigned to @max", "assigned to @olive and unassigned @max", "unassigned @olive"]
    assert {todo.user_id for todo in db.session.query(Todo)} == {people[MAX].id, people[OLIVE].id}


@pytest.mark.parametrize("person", [SAM, RITA])
def test_an_alert_is_not_assigned_to_users_who_cannot_see_it(person, developer, make_alert, people):
    make_alert(1)

    response = developer.send(f"{ONE}/assignee", assignee_id=str(people[person].id))

    assert (response.status_code, "Assignee has no permissions" in response.text) == (422, True)
    assert (alert_now().assignee_id, notes(), db.session.query(Todo).count()) == (None, [], 0)


def test_a_to_do_item_is_added_once_and_done_by_its_owner(developer, visit, make_alert, people):
    make_alert(1)
    maintainer = visit(MAX)
    for visitor in (developer, developer, maintainer):
        visitor.send(f"{ONE}/todo", todo="add")
    page = developer.get(f"{ONE}/details").text

    maintainer.send(f"{ONE}/todo", todo="done")

    assert "Mark as done" in page
    assert users_with_todos() == [people[DEV].id]
    assert "Add a to-do item" in maintainer.get(f"{ONE}/details").text


def test_resolving_an_alert_completes_the_callers_to_do_item(developer, make_alert, people):
    alert = make_alert(1)
    for name in (DEV, MAX):
        make_todo(alert, people[name])

    developer.send(f"{ONE}/status", status="resolved")

    assert users_with_todos() == [people[MAX].id]


def test_a_comment_is_shown_below_the_alert(developer, make_alert):
    make_alert(1)

    response = developer.send(f"{ONE}/notes", note="Look at **this** <script>")
    blank = developer.send(f"{ONE}/notes", note="  ")
    page = developer.get(response.location).text

    number = db.session.query(Note.id).scalar()
    assert (response.status_code, response.location) == (302, f"{ONE}/details?note={number}#note_{number}")
    assert (blank.status_code, "can&#39;t be blank" in blank.text) == (422, True)
    assert notes() == ["Look at **this** <script>"]
    assert ("<p>Look at <strong>this</strong> &lt;script&gt;</p>" in page, "<strong>Dev</strong>" in page) == (
        True,
        True,
    )


def test_comments_have_the_length_limit_of_issue_comments(developer, make_alert, monkeypatch):
    monkeypatch.setattr(issue_rules, "LONGEST_TEXT", 10)
    make_alert(1)

    responses = [developer.send(f"{ONE}/notes", note="x" * length) for length in (11, 10)]

    assert [response.status_code for response in responses] == [422, 302]
    assert "is too long (maximum is 10 characters)" in responses[0].text
    assert notes() == ["x" * 10]


def test_comments_are_paginated(developer, make_alert, project, monkeypatch):
    monkeypatch.setattr(planned_notes, "NOTES_PER_PAGE", 2)
    alert, now = make_alert(1), clock.now()
    for number in range(1, 5):
        fields = {"noteable_type": TARGET, "noteable_id": alert.id, "body": f"Word {number}", "created_at": now}
        store(Note(project_id=project.id, **fields))

    response = developer.send(f"{ONE}/notes", note="Word 5")
    last = developer.get(response.location)
    before = developer.get(f"{ONE}/details{link_of(last, 'prev')}")
    first = developer.get(f"{ONE}/details/activity")

    assert [comment_numbers(page) for page in (first, before, last)] == [["1", "2"], ["3", "4"], ["5"]]
    assert (link_of(first, "next"), link_of(last, "next")) == ("?page=2", None)
    assert developer.get(f"{ONE}/details?note={10**9}").status_code == 404


def test_an_alert_links_to_its_incident(developer, make_alert):
    make_alert(1)
    before = developer.get(f"{ONE}/details").text

    response = developer.send(f"{ONE}/incident")
    after = developer.get(response.location).text

    assert ("Create incident" in before, "View incident" in before) == (True, False)
    assert ("Create incident" in after, 'href="/acme/shop/-/issues/1">View incident' in after) == (False, True)
    assert "for this alert" in developer.get(f"{ONE}/details/activity").text
    assert "Alert details" in developer.get("/acme/shop/-/issues/1").text
    assert f'href="{ONE}/details">#1 Alert' in developer.get("/acme/shop/-/issues/1").text


def test_an_incident_hides_its_alert_from_users_who_cannot_see_it(developer, visit, make_alert):
    make_alert(1)
    developer.send(f"{ONE}/incident")

    page = visit(RITA).get("/acme/shop/-/issues/1")

    assert (page.status_code, "Alert details" in page.text) == (200, False)


def test_mentioned_users_who_see_the_alert_get_a_to_do_item(developer, make_alert, people):
    make_alert(1)

    developer.send(f"{ONE}/notes", note="@Max and @olive. look, not @rita, @sam or mail@ada")

    assert {todo.user_id for todo in db.session.query(Todo)} == {people[MAX].id, people[OLIVE].id}


def test_only_assignable_users_are_offered(developer, make_alert, people):
    make_alert(1)
    with unit_of_work():
        db.session.get_one(User, people[OLIVE].id).state = BLOCKED

    page = developer.get(f"{ONE}/details").text
    offered = re.search(r'<select id="assignee".*?</select>', page, re.DOTALL)[0]
    refused = developer.send(f"{ONE}/assignee", assignee_id=str(people[OLIVE].id))

    assert re.findall(r"@(\w+)<", offered) == ["dev", "max"]
    assert refused.status_code == 422


def test_users_can_assign_an_alert_to_themselves(developer, make_alert, people):
    make_alert(1)

    developer.send(f"{ONE}/assignee", assignee_id="0", assign_myself=str(people[DEV].id))

    assert alert_now().assignee_id == people[DEV].id
    assert "Assign yourself" not in developer.get(f"{ONE}/details").text


@pytest.mark.parametrize("query", ["search=ALERT", "assignee_username=max", ""])
def test_counters_of_a_search_are_exact(query, developer, make_alert, people, monkeypatch):
    for iid, status in enumerate((0, 0, 1, 2, 2, 2, 3), start=1):
        make_alert(iid, status=status, title="An alert", assignee_id=people[MAX].id)
    counters = []

    for limit in (100, 7, 6, 4):
        monkeypatch.setattr(listing, "MAX_COUNTED_ROWS", limit)
        counters.append(badges(developer.get(f"{LIST}?most={limit}&{query}")))

    assert counters == [[3, 2, 1, 3, 1, 7]] * 2 + [[3, 2, 1, 3, 1, 6], [3, 2, 1, 3, 1, 4]]


def test_counters_above_the_limit_are_marked(developer, make_alert, monkeypatch):
    monkeypatch.setattr(listing, "MAX_COUNTED_ROWS", 2)
    for iid in (1, 2, 3):
        make_alert(iid)
    make_alert(4, status=Status.ACKNOWLEDGED)

    page = developer.get(LIST)

    assert re.findall(r'<span class="badge">(\d\+?)</span></a></li>', page.text) == ["2+", "2+", "1", "0", "0", "2+"]
