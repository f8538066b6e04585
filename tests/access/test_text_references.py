"""What texts refer to, as links."""

from __future__ import annotations

import re

import pytest

from project_service.access.identity import Caller
from project_service.access.references import text_references
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.labels import Label
from project_service.kit.texts import markdown
from tests.support.sample_data import GUS, MAX, make_label, make_project
from tests.support.visitors import store

LINK = re.compile(r'<a (?:class="label" )?href="([^"]*)"')


@pytest.fixture
def render(app, project, people):
    def links(text, name=MAX):
        with app.test_request_context():
            text_references.prepare(Caller.of(people[name]), project, [text])
            return markdown.block(text)

    return links


@pytest.fixture
def issues(project, group):
    store(Issue(project_id=project.id, iid=3, title="A <b>", state="closed"))
    store(Issue(project_id=project.id, iid=4, title="Secret", confidential=True))
    store(Issue(project_id=make_project("tool", group).id, iid=1, title="Hidden"))
    make_label(project, "bug", color="#ff0000")
    store(Label(group_id=group.id, title="two words", color="#00ff00"))


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("#3", ["/acme/shop/-/issues/3"]),
        ("(#3), acme/shop#3.", ["/acme/shop/-/issues/3"] * 2),
        ("acme/tool#1 #99 x#3 ##3 a/#3 #3x", []),
        ("@max. @MAX @nobody me@max", ["/max", "/max"]),
        ("~bug ~nope a~bug", ["/acme/shop/-/issues?label=bug"]),
        ('~"two words"', ["/acme/shop/-/issues?label=two+words"]),
        ("`#3` and\n\n    #3 @max\n", []),
        ("[#3](/x) https://x.example/#3", ["/x", "https://x.example/#3"]),
        ("deadbee1 550e8400-e29b-41d4 12345678 deadbeef", []),
        ("**#3** <i>@max</i>", ["/acme/shop/-/issues/3", "/max"]),
    ],
    ids=["own", "path", "none", "users", "labels", "words", "code", "links", "commits", "inside"],
)
def test_texts_link_what_exists_outside_of_code_and_links(text, links, render, issues):
    assert LINK.findall(render(text)) == links


def test_titles_are_escaped_and_closed_issues_say_so(render, issues):
    assert '<a href="/acme/shop/-/issues/3" title="A &lt;b&gt;">#3 (closed)</a>' in render("#3")


def test_only_what_the_reader_may_see_is_linked(render, issues):
    assert [LINK.findall(render("#4", name)) for name in (MAX, GUS)] == [["/acme/shop/-/issues/4"], []]


def test_commits_are_linked_where_there_is_code(render, project):
    project.default_branch = "main"

    assert LINK.findall(render("fixed in deadbee1.")) == ["/acme/shop/-/commit/deadbee1"]


def test_one_statement_is_sent_for_each_kind(render, issues, count_queries):
    few = " ".join(("#3", "@max", "~bug"))
    render(few)
    with count_queries() as queries:
        render(few)
    with count_queries() as more:
        render(" ".join([few, "#4", "@gus", "~nope", "#5", "@dev"]))

    assert len(more) == len(queries)


def test_hostile_texts_take_linear_time(render, project):
    for text in ("a/" * 60_000 + "#3", "~" * 100_000, "f" * 100_000, "@a." * 30_000):
        assert render(text)


@pytest.mark.parametrize(
    ("text", "number", "checked", "expected"),
    [
        ("- [ ] a\n- [x] b", 1, True, "- [x] a\n- [x] b"),
        ("- [ ] a\r\n- [x] b", 2, False, "- [ ] a\n- [ ] b"),
        ("> 1. [X] a", 1, False, "> 1. [ ] a"),
        ("- [ ] a", 1, False, None),
        ("- [ ] a", 2, True, None),
        ("text [ ] a", 1, True, None),
    ],
    ids=["tick", "untick", "quoted", "same", "line", "text"],
)
def test_tasks_are_ticked_by_their_line(text, number, checked, expected):
    assert markdown.toggled(text, number, checked=checked) == expected
