"""What people do about errors: assign, comment, merge and separate, resolve in the next release, search events."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import select

from project_service.areas.error_tracking.collection.derived_tags import derived_tags
from project_service.areas.error_tracking.errors.models import TrackedErrorFacet
from project_service.areas.error_tracking.events.event_search import terms_of
from project_service.areas.error_tracking.events.event_views import offset_of
from project_service.domain.events.models import Event
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db
from tests.areas.error_tracking.errors.test_errors import CRASH, ago
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, RITA, SAM
from tests.support.sentry_requests import Sender, track_errors

LIST = "/acme/shop/-/error_tracking"
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/138.0.0.0 Safari/537.36"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.5 Mobile/15E148 Safari/604.1"
)


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


@pytest.fixture
def errors(project):
    """The path of the list."""
    return f"/projects/{project.id}/error_tracking/errors"


def only(client, errors):
    """Return the path of the only error."""
    [error] = client.get(errors).json
    return f"{errors}/{error['id']}"


def test_an_error_is_assigned_and_commented_without_an_event_of_the_feed(sender, errors, as_, people):
    sender.event(message="low")
    developer = as_(DEV)
    one = only(developer, errors)
    events = db.session.query(Event).count()

    assigned = developer.put(one, json={"assignee_id": people[RITA].id}).json
    note = developer.post(f"{one}/notes", json={"body": "Seen **twice** @rita"}).json

    assert assigned["assignee"]["username"] == RITA
    assert (note["body"], note["noteable_type"], note["author"]["username"]) == (
        "Seen **twice** @rita",
        "ErrorTracking::Error",
        DEV,
    )
    assert [row["id"] for row in as_(RITA).get(f"{one}/notes").json] == [note["id"]]
    assert developer.put(f"{one}/notes/{note['id']}", json={"body": "Once"}).json["body"] == "Once"
    assert db.session.query(Event).count() == events
    assert developer.put(one, json={"assignee_id": 0}).json["assignee"] is None
    assert developer.put(one, json={"assignee_id": people[SAM].id}).status_code == 400
    assert developer.put(one, json={}).json == {"error": "status is missing"}
    assert developer.delete(f"{one}/notes/{note['id']}").status_code == 204


@pytest.mark.parametrize(("person", "status"), [(DEV, 201), (RITA, 403), (GUS, 403), (SAM, 404), (NOBODY, 401)])
def test_developers_comment(person, status, sender, errors, as_):
    sender.event(message="low")
    one = only(as_(MAX), errors)

    assert as_(person).post(f"{one}/notes", json={"body": "Seen"}).status_code == status


def test_comments_are_changed_by_authors_and_maintainers(sender, errors, as_):
    sender.event(message="low")
    one = only(as_(MAX), errors)
    note = as_(MAX).post(f"{one}/notes", json={"body": "Mine"}).json["id"]

    assert as_(DEV).put(f"{one}/notes/{note}", json={"body": "x"}).status_code == 403
    assert as_(MAX).delete(f"{one}/notes/{note}").status_code == 204
    assert as_(MAX).post(f"{one}/notes", json={"body": " "}).status_code == 400


@pytest.mark.both_databases
def test_an_error_resolved_in_the_next_release_comes_back_only_in_a_newer_one(sender, errors, as_):
    developer = as_(DEV)
    sender.event(message="other", release="0.9")
    sender.event(message="low", release="1.0")
    [error] = developer.get(errors, query_string={"search": "low"}).json
    one = f"{errors}/{error['id']}"
    resolved = developer.put(one, json={"status": "resolved", "in_next_release": True}).json

    for release in ("1.0", "0.9", None):
        sender.event(message="low", release=release)
    assert (resolved["resolved_in_next_release"], developer.get(one).json["status"]) == (True, "resolved")
    sender.event(message="low", release="1.1")

    shown = developer.get(one).json
    assert (shown["status"], shown["count"], shown["resolved_in_next_release"]) == ("unresolved", 5, False)


def test_the_next_release_needs_a_release(sender, errors, as_):
    sender.event(message="low")
    one = only(as_(DEV), errors)

    refused = as_(DEV).put(one, json={"status": "resolved", "in_next_release": True})

    assert (refused.status_code, "no event of this error names a release" in refused.text) == (400, True)


@pytest.mark.both_databases
def test_merged_errors_are_counted_together_and_separated_again(sender, errors, as_):
    developer = as_(DEV)
    sender.event(message="first", timestamp=ago(hours=5), release="1", user={"id": 1})
    sender.event(message="second", timestamp=ago(hours=2), release="2", environment="staging", user={"id": 2})
    sender.event(message="second", timestamp=ago(hours=1), release="2", user={"id": 1})
    second, first = developer.get(errors, query_string={"order_by": "last_seen"}).json
    developer.post(f"{errors}/{second['id']}/notes", json={"body": "Mine"})

    merged = developer.post(f"{errors}/{first['id']}/merges", json={"error_ids": [second["id"]]}).json
    sender.event(message="second", timestamp=ago(minutes=5))

    assert (merged["count"], merged["user_count"], merged["title"], merged["last_release"]) == (3, 2, "second", "2")
    assert developer.get(f"{errors}/{second['id']}").json["count"] == 4
    assert len(developer.get(f"{errors}/{first['id']}/notes").json) == 1
    [row] = developer.get(f"{errors}/{first['id']}/merges").json
    assert (row["id"], row["title"], row["merged_by"]["username"]) == (second["id"], "second", DEV)
    again = developer.delete(f"{errors}/{first['id']}/merges/{second['id']}").json
    names = ("id", "count", "user_count", "first_seen", "last_seen", "environments", "frequency", "first_release")
    assert {name: again[name] for name in names} == {name: second[name] for name in names}
    left = developer.get(f"{errors}/{first['id']}").json
    assert (left["count"], left["user_count"], left["title"], left["environments"]) == (2, 1, "second", ["production"])
    assert sum(count for _, count in left["frequency"]) == 2
    sender.event(message="second")
    assert developer.get(f"{errors}/{second['id']}").json["count"] == 3
    assert len(developer.get(f"{errors}/{second['id']}/notes").json) == 1
    assert developer.delete(f"{errors}/{first['id']}/merges/{second['id']}").status_code == 404


@pytest.mark.both_databases
def test_events_of_releases_are_counted_also_by_merged_and_separated_errors(sender, errors, as_, project):
    for message in ("first", "second", "second"):
        sender.event(message=message, release="1")
    second, first = (error["id"] for error in as_(DEV).get(errors).json)

    def counted():
        rows = db.session.execute(select(TrackedErrorFacet.error_id, TrackedErrorFacet.count).filter_by(value="1"))
        return {str(error_id): count for error_id, count in rows}

    before = counted()
    as_(DEV).post(f"{errors}/{first}/merges", json={"error_ids": [second]})
    merged = counted()
    as_(DEV).delete(f"{errors}/{first}/merges/{second}")

    assert (before, merged, counted()) == ({first: 1, second: 2}, {first: 3}, before)


def test_merging_errors_moves_their_to_do_items_and_undoing_it_moves_them_back(sender, errors, as_, people):
    for message in ("first", "second"):
        sender.event(message=message)
    developer = as_(DEV)
    second, first = (error["id"] for error in developer.get(errors).json)
    for error, names in ((first, [RITA]), (second, [RITA, MAX])):
        for name in names:
            developer.put(f"{errors}/{error}", json={"assignee_id": people[name].id})

    def pending():
        found = {name: as_(name).get("/todos", query_string={"state": "pending"}).json for name in (RITA, MAX)}
        return {name: {todo["target"]["id"] for todo in todos} for name, todos in found.items()}

    before = pending()
    developer.post(f"{errors}/{first}/merges", json={"error_ids": [second]})
    assert (before, pending()) == ({RITA: {first, second}, MAX: {second}}, {RITA: {first}, MAX: {first}})
    developer.delete(f"{errors}/{first}/merges/{second}")
    assert pending() == before


def test_errors_that_both_have_an_issue_are_not_merged(sender, errors, as_):
    developer = as_(DEV)
    sender.event(message="first")
    sender.event(message="second")
    ids = [error["id"] for error in developer.get(errors).json]
    for error_id in ids:
        developer.post(f"{errors}/{error_id}/issue")

    refused = developer.post(f"{errors}/{ids[0]}/merges", json={"error_ids": [ids[1]]})

    assert (refused.status_code, "both errors have an issue" in refused.text) == (400, True)
    assert len(developer.get(errors).json) == 2
    assert developer.post(f"{errors}/{ids[0]}/merges", json={"error_ids": [ids[0]]}).status_code == 400


def test_events_are_found_by_id_words_tags_environment_and_release(sender, errors, as_):
    chrome = {"headers": {"User-Agent": CHROME}}
    first = sender.event(**CRASH, tags={"shop": "North East"}, request=chrome, release="1").json["id"]
    second = sender.event(**CRASH, environment="staging", contexts={"os": {"name": "Linux", "version": "6.1"}})
    events = f"{only(as_(RITA), errors)}/events"

    def found(**query):
        return {event["id"] for event in as_(RITA).get(events, query_string=query).json}

    assert found(search=first[:8]) == found(search='shop:"north east"') == found(release="1") == {first}
    assert found(search="browser:chrome") == set()
    assert found(search='browser:"Chrome 138" os:Linux') == {first}
    assert found(search='"os:linux 6.1" unrelated') == set()
    assert found(search='"os:linux 6.1" zero') == found(environment="staging") == {second.json["id"]}
    assert found(search="by zero") == {first, second.json["id"]}


@pytest.mark.parametrize(
    ("agent", "names"),
    [
        (CHROME, ["Chrome 138", "Linux"]),
        (IPHONE, ["Safari 17", "iOS 17"]),
        (f"{CHROME} Edg/138.0", ["Edge 138", "Linux"]),
        ("curl/8", []),
        ("A" * 100_000, []),
    ],
    ids=["chrome", "iphone", "edge", "curl", "long"],
)
def test_browser_and_system_are_read_from_the_user_agent(agent, names):
    assert [tag["value"] for tag in derived_tags({}, {"headers": [["user-agent", agent]]})] == names


def test_times_of_breadcrumbs_are_relative_and_searches_are_split_at_blanks():
    event = dt.datetime(2026, 11, 27, 12, tzinfo=dt.UTC)
    moments = ("2026-11-27T11:59:57.65Z", "2026-11-27T12:00:00Z", "2026-11-27T12:02:00Z", "2026-11-26T10:00:00Z", None)

    assert [offset_of(moment, event) for moment in moments] == [
        "2.35 s before",
        "at the event",
        "2 min after",
        "1 d before",
        "",
    ]
    assert terms_of('a browser:"Chrome 138" "two words"x "b:c d"') == ["a", "browser:chrome 138", "two wordsx", "b:c d"]


def error_of(errors, as_, title):
    [error] = as_(MAX).get(errors, query_string={"search": title}).json
    return f"{LIST}/{error['id']}"


def test_the_page_assigns_comments_and_resolves_in_the_next_release(visit, sender, errors, as_, people):
    sender.event(
        **CRASH, release="1", tags={"shop": "north"}, breadcrumbs=[{"message": "click", "timestamp": ago(seconds=3)}]
    )
    developer = visit(DEV)
    one = error_of(errors, as_, "zero")

    developer.send(f"{one}/assignee", assign_myself=str(people[DEV].id))
    commented = developer.send(f"{one}/notes", note="Look at <script>this</script>")
    developer.send(f"{one}/status", status="resolved_in_next_release")

    page = developer.get(f"{one}/details").text
    assert "in the next release" in page
    assert "Look at" in page
    assert "<script>this" not in page
    assert "before</time>" in page
    assert f"{one}/events?search=%22shop%3Anorth%22" in page
    assert f'<a href="/{DEV}">' in page
    note = commented.headers["Location"].partition("#note_")[2]
    assert developer.send(f"{one}/notes/{note}/edit", note="Changed").status_code == 302
    assert developer.send(f"{one}/notes", note=" ").status_code == 422
    assert "Changed" in visit(RITA).get(f"{one}/details").text
    assert developer.send(f"{one}/notes/{note}/delete").status_code == 302
    reporter = visit(RITA).get(f"{one}/details").text
    assert ('action="' in reporter.partition("<main")[2], "Assign yourself" in reporter) == (False, False)


def test_selected_errors_are_resolved_ignored_and_merged(visit, sender, errors, as_):
    developer = visit(DEV)
    for number, name in enumerate(("one", "two", "three")):
        sender.event(message=name, timestamp=ago(hours=3 - number))
    ids = [error["id"] for error in reversed(as_(MAX).get(errors).json)]

    merged = developer.send(LIST, errors=ids[:2], change="merge")
    assert merged.headers["Location"] == f"{LIST}/{ids[0]}/details"
    page = developer.get(f"{LIST}/{ids[0]}/details").text
    assert ("Merged 2 errors" in page, f"{LIST}/{ids[0]}/merges/{ids[1]}/undo" in page) == (True, True)
    developer.send(f"{LIST}/{ids[0]}/merges/{ids[1]}/undo")
    resolved = developer.send(f"{LIST}?level=error", errors=ids, change="ignored")

    assert resolved.headers["Location"] == f"{LIST}?level=error"
    assert "Ignored: 3 errors." in developer.get(LIST).text
    assert [error["status"] for error in as_(MAX).get(errors).json] == ["ignored"] * 3
    assert developer.send(LIST, change="ignored").status_code == 422
    assert developer.send(LIST, errors=ids, change="x").status_code == 422
    assert visit(RITA).get(LIST).text.count('name="errors"') == 0


def test_an_event_is_passed_on_as_markdown_and_json(visit, sender, errors, as_):
    event = sender.event(**CRASH, tags={"shop": "```"}, release="1").json["id"]
    one = error_of(errors, as_, "zero")

    markdown = visit(RITA).get(f"{one}/events/{event}/event.md")
    exported = visit(RITA).get(f"{one}/events/latest/event.json")

    assert markdown.mimetype == "text/plain"
    assert "app/shop.py:12 in price_of" in markdown.text
    assert "````\nshop: ```\n````" in markdown.text
    assert "hunter2" not in markdown.text
    assert (exported.json["id"], exported.json["tags"]) == (event, [{"key": "shop", "value": "```"}])
    assert "No stored event matches" in visit(RITA).get(f"{one}/events?search=nothing").text
    assert event[:8] in visit(RITA).get(f"{one}/events?search=shop:``` &release=1".replace(" ", "")).text


def test_comments_go_with_their_error(sender, errors, as_):
    sender.event(message="low")
    one = only(as_(MAX), errors)
    as_(MAX).post(f"{one}/notes", json={"body": "Mine"})

    as_(MAX).delete(one)

    assert db.session.query(Note).count() == 0


def test_assignees_and_mentioned_users_get_to_do_items(sender, errors, as_, people):
    sender.event(message="low")
    one = only(as_(DEV), errors)

    as_(DEV).put(one, json={"assignee_id": people[MAX].id})
    note = as_(DEV).post(f"{one}/notes", json={"body": "@rita, @gus and `@max`: see"}).json
    as_(DEV).put(f"{one}/notes/{note['id']}", json={"body": "@rita: see"})

    [assigned] = as_(MAX).get("/todos").json
    [mentioned] = as_(RITA).get("/todos", query_string={"type": "ErrorTracking::Error"}).json
    assert (assigned["action_name"], assigned["target"]["title"]) == ("assigned", "low")
    assert (mentioned["action_name"], "#note_" in mentioned["target_url"]) == ("mentioned", True)
    assert as_(GUS).get("/todos").json == []
    as_(MAX).put(one, json={"status": "resolved"})
    assert as_(MAX).get("/todos").json == []
    as_(MAX).delete(one)
    assert as_(RITA).get("/todos").json == []
