"""Pages of branches, tags and comparisons: creation and deletion by the rules of pushes."""

from __future__ import annotations

import html
import re

import pytest

from project_service.areas.repositories.content import compare_pages
from project_service.domain.repositories.protected_refs import ProtectedBranch
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, RITA, ROLES, SAM
from tests.support.visitors import store

BRANCHES, TAGS, COMPARE = (f"/acme/shop/-/{page}" for page in ("branches", "tags", "compare"))


def names_in(visitor, address):
    return re.findall(r'/-/(?:tree|tags)/[^"]*"><strong>(.*?)</strong>', visitor.get(address).text)


def test_tags_are_created_and_deleted(visit, code):
    visitor = visit(DEV)

    created = visitor.send(f"{TAGS}/new", name="v2/rc", ref="feature/x", message="Release <2>")
    text = visitor.get(TAGS).text
    question = visitor.get(f"{TAGS}/v2/rc/delete").text
    deleted = visitor.send(f"{TAGS}/v2/rc/delete")

    assert (created.status_code, created.location, deleted.location) == (302, TAGS, TAGS)
    assert "Release &lt;2&gt;" in text
    assert f'href="{TAGS}/v2/rc/delete">' in text
    assert "Delete the tag v2/rc?" in question
    assert sorted(names_in(visitor, TAGS)) == ["v1.0", "v1.1"]


def test_branches_are_created_and_deleted(visit, code):
    visitor = visit(DEV)

    created = visitor.send(f"{BRANCHES}/new", name="topic", ref="v1.0")
    names = names_in(visitor, BRANCHES)
    deleted = visitor.send(f"{BRANCHES}/topic/delete")

    assert (created.location, deleted.location) == (BRANCHES, BRANCHES)
    assert "topic" in names
    assert "topic" not in names_in(visitor, BRANCHES)


@pytest.mark.parametrize(
    ("page", "fields", "message"),
    [
        ("tags", {"name": "v1.0", "ref": "main"}, "Tag v1.0 already exists"),
        ("tags", {"name": "a b", "ref": "main"}, "Tag name invalid"),
        ("tags", {"name": "v2", "ref": "<none>"}, "Target <none> is invalid"),
        ("tags", {"name": "main", "ref": "main"}, "cannot use default branch name"),
        ("branches", {"name": "other", "ref": "main"}, "Branch already exists"),
        ("branches", {"name": "main/x", "ref": "main"}, "conflicts with existing branch hierarchy"),
    ],
)
def test_an_invalid_name_shows_an_error_and_stays_in_the_form(page, fields, message, visit, code):
    response = visit(DEV).send(f"/acme/shop/-/{page}/new", **fields)

    shown = html.unescape(response.text)
    assert (response.status_code, message in shown) == (422, True)
    assert f'value="{fields["name"]}"' in shown


def test_protected_tags_have_a_badge_and_only_maintainers_delete_them(visit, code, protected_tag):
    refused_creation = visit(DEV).send(f"{TAGS}/new", name="v2", ref="main")
    refused_deletion = visit(DEV).send(f"{TAGS}/v1.0/delete")
    text = visit(DEV).get(TAGS).text

    assert "You are not allowed to create this tag as it is protected." in refused_creation.text
    assert (refused_creation.status_code, refused_deletion.status_code) == (422, 403)
    assert '<span class="badge">protected</span>' in text
    assert "/delete" not in text
    assert "/delete" in visit(MAX).get(TAGS).text
    assert visit(MAX).send(f"{TAGS}/v1.0/delete").status_code == 302


def test_only_maintainers_delete_protected_branches(visit, code, project):
    store(ProtectedBranch(project_id=project.id, name="other"))

    statuses = [visit(DEV).send(f"{BRANCHES}/{name}/delete").status_code for name in ("main", "other", "none")]

    assert statuses == [403, 403, 404]
    assert visit(MAX).send(f"{BRANCHES}/other/delete").status_code == 302


@pytest.mark.parametrize("page", ["tags", "branches"])
@pytest.mark.parametrize("person", ROLES)
def test_the_create_form_is_shown_to_users_who_may_push(page, person, visit, code):
    response = visit(person).get(f"/acme/shop/-/{page}")

    offered = f"/-/{page}/new" in response.text
    assert offered is (person not in (RITA, GUS))
    assert visit(person).get(f"/acme/shop/-/{page}/new").status_code == (200 if offered else 403)


@pytest.mark.parametrize(("person", "status"), [(NOBODY, 302), (SAM, 404), (GUS, 403), (RITA, 403)])
def test_users_who_may_not_push_are_refused(person, status, visit, code):
    forms = [f"{page}/{form}" for page in (TAGS, BRANCHES) for form in ("new", "v1.0/delete", "other/delete")]
    visitor, before = visit(person), (names_in(visit(MAX), TAGS), names_in(visit(MAX), BRANCHES))

    responses = [visitor.send(form, name="new", ref="main").status_code for form in forms]

    assert responses == [status] * len(forms)
    assert (names_in(visit(MAX), TAGS), names_in(visit(MAX), BRANCHES)) == before


def test_two_revisions_are_compared(visit, code):
    sent = visit(RITA).get(f"{COMPARE}?from=v1.1&to=feature/x")
    text = visit(RITA).get(sent.location).text
    straight = visit(RITA).get(f"{COMPARE}/v1.1..feature/x").text

    assert sent.location == f"{COMPARE}/v1.1...feature/x"
    assert "Feature change" in text
    assert "docs/guide.md → docs/manual.md" in text
    assert '<span class="line add" data-old="" data-new="3">+more' in text
    assert ("bad\ufffd.txt" in text, "bad\ufffd.txt" in straight) == (False, True)


def test_a_comparison_reports_missing_revisions(visit, code, monkeypatch):
    monkeypatch.setattr(compare_pages, "MAX_SHOWN_COMMITS", 1)

    assert "There is no branch, tag or commit &lt;none&gt;." in visit(RITA).get(f"{COMPARE}?from=main&to=<none>").text
    assert "has no commits that" in visit(RITA).get(f"{COMPARE}/main...main").text
    assert "there are more" in visit(RITA).get(f"{COMPARE}/v1.0...main").text
    assert [visit(RITA).get(f"{COMPARE}/{pair}").status_code for pair in ("main", "a...b")] == [404, 404]
