"""Commits, read through the API."""

from __future__ import annotations

import pytest

from project_service.domain.repositories.reading import objects


def titles(response):
    return [commit["title"] for commit in response.json]


def test_a_commit_has_the_documented_keys(as_maintainer, code, project):
    shown = as_maintainer.get(f"{code}/commits/v1.1").json

    assert shown == {
        "id": shown["id"],
        "short_id": shown["id"][:8],
        "created_at": "2021-02-04T04:05:06.000+01:00",
        "parent_ids": shown["parent_ids"],
        "title": "Second: ünï",
        "message": "Second: ünï\n",
        "author_name": "Ada",
        "author_email": "ada@example.org",
        "authored_date": "2021-02-04T04:05:06.000+01:00",
        "committer_name": "Ada",
        "committer_email": "ada@example.org",
        "committed_date": "2021-02-04T04:05:06.000+01:00",
        "web_url": f"http://localhost/{project.full_path}/-/commit/{shown['id']}",
        "stats": {"additions": 1, "deletions": 0, "total": 1},
        "status": None,
        "project_id": project.id,
        "last_pipeline": None,
    }
    assert "stats" not in as_maintainer.get(f"{code}/commits/v1.1?stats=false").json
    assert as_maintainer.get(f"{code}/commits/{shown['id'][:7]}").json["id"] == shown["id"]


def test_commits_are_listed_without_totals(as_maintainer, code):
    first = as_maintainer.get(f"{code}/commits?per_page=3")
    second = as_maintainer.get(f"{code}/commits?per_page=3&page=2")

    assert titles(first)[:2] == ["Change a type and add a submodule", "Merge feature"]
    assert len(titles(first) + titles(second)) == 5
    assert "X-Total" not in first.headers
    assert 'rel="last"' not in first.headers["Link"]
    assert (first.headers["X-Next-Page"], second.headers["X-Next-Page"]) == ("2", "")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("ref_name=v1.0", ["First commit"]),
        ("ref_name=v1.0..feature/x", ["Feature change"]),
        ("path=/docs", ["Feature change", "First commit"]),
        ("first_parent=true&path=docs", ["Merge feature", "First commit"]),
        ("until=2021-02-03T04:05:06%2B01:00", ["First commit"]),
        ("since=2021-02-06T00:00:00Z", ["Change a type and add a submodule"]),
        ("author=nobody", []),
        ("ref_name=nothing", []),
        ("all=true&since=2021-02-06T00:00:00Z", ["Not merged", "Change a type and add a submodule"]),
    ],
)
def test_commits_are_filtered(query, expected, as_maintainer, code):
    assert titles(as_maintainer.get(f"{code}/commits?{query}")) == expected


def test_commits_include_stats_on_request(as_maintainer, code):
    [one] = as_maintainer.get(f"{code}/commits?with_stats=true&ref_name=v1.0").json

    assert one["stats"]["additions"] > 5


@pytest.mark.parametrize("query", ["since=yesterday", "ref_name=-x", "per_page=0"])
def test_invalid_parameters_are_refused(query, as_maintainer, code):
    assert as_maintainer.get(f"{code}/commits?{query}").status_code == 400


def test_the_diffs_of_a_commit_are_listed(as_maintainer, code):
    response = as_maintainer.get(f"{code}/commits/main~1/diff?per_page=1")
    [renamed] = as_maintainer.get(f"{code}/commits/main~1/diff?per_page=1&page=2").json

    assert response.json == [
        {
            "old_path": "app.py",
            "new_path": "app.py",
            "a_mode": "100644",
            "b_mode": "100755",
            "diff": "@@ -1,2 +1,3 @@\n def f(x):\n     return x + 1\n+more\n",
            "new_file": False,
            "renamed_file": False,
            "deleted_file": False,
            "too_large": False,
        }
    ]
    assert response.headers["X-Total"] == "2"
    assert (renamed["old_path"], renamed["new_path"], renamed["renamed_file"]) == (
        "docs/guide.md",
        "docs/manual.md",
        True,
    )


def test_a_diff_shows_type_changes_and_submodules(as_maintainer, code):
    link, sub = as_maintainer.get(f"{code}/commits/main/diff").json

    assert link["diff"] == ("@@ -1 +0,0 @@\n-../../etc/passwd\n\\ No newline at end of file\n@@ -0,0 +1 @@\n+file\n")
    assert (sub["b_mode"], sub["diff"].startswith("@@ -0,0 +1 @@\n+Subproject commit ")) == ("160000", True)


def test_the_refs_and_sequence_number_of_a_commit_are_returned(as_maintainer, code):
    refs = as_maintainer.get(f"{code}/commits/v1.1/refs").json

    assert [(ref["type"], ref["name"]) for ref in refs] == [("branch", "main"), ("branch", "other"), ("tag", "v1.1")]
    assert as_maintainer.get(f"{code}/commits/main/sequence").json == {"count": 5}
    assert as_maintainer.get(f"{code}/commits/main/statuses").json == []
    assert as_maintainer.get(f"{code}/commits/main/signature").json == {"message": "404 Signature Not Found"}


@pytest.mark.parametrize("below", ["", "/diff", "/refs", "/sequence", "/signature", "/statuses"])
def test_an_unknown_commit_is_not_found(below, as_maintainer, code):
    response = as_maintainer.get(f"{code}/commits/nothing{below}")

    assert (response.status_code, response.json) == (404, {"message": "404 Commit Not Found"})


def test_long_messages_and_names_are_truncated():
    person = b"author " + b"a" * 100_000 + b" <a@example.org> 1 +0000\n"
    content = b"tree " + b"1" * 40 + b"\n" + person + b"\n" + "ä".encode() * 1_000_000

    found = objects.parse_commit("2" * 40, content)

    assert len(found.message.encode()) <= objects.MAX_MESSAGE_BYTES + 2
    assert len(found.author.name) == objects.MAX_PERSON_BYTES
    assert len(objects.parse_tag(content).message.encode()) <= objects.MAX_MESSAGE_BYTES + 2
