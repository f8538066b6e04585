"""Archives on the command line: what one holds, and what differs between two."""

from __future__ import annotations

import copy
import datetime as dt
import errno
import io
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from project_service.cli import application, main, transfer_progress
from project_service.kit.db.session import db
from project_service.kit.http.errors import Unprocessable
from project_service.transfers.archive import extraction, layout
from project_service.transfers.models import ImportFailure, ProjectExport
from tests.support.archives import MOMENT, make_archive, make_event, make_issue, make_note, unpack
from tests.support.sample_data import DEV, MAX, SAM

SIGNED = "\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"
LABEL = {"title": "bug", "color": "#ff0000", "created_at": MOMENT, "updated_at": MOMENT}


@pytest.fixture
def write(tmp_path):
    """Writes an archive; its path."""

    def to(name, archive):
        path = tmp_path / name
        path.write_bytes(archive)
        return str(path)

    return to


def run(*words):
    return CliRunner().invoke(main.main, ["archive", *words])


def test_an_archive_is_inspected_with_the_planned_result(write):
    issues = [make_issue(1, notes=[make_note()], events=[make_event()], label_links=[{"label": LABEL}]), {"iid": 2}]
    relations = {"labels": [LABEL], "issues": issues, "boards": [{"name": "Board"}], "services": [{"type": "Jira"}]}

    response = run(
        "inspect", write("a.tar.gz", make_archive(relations, {"visibility_level": 20, "description": "Shop"}))
    )

    words = response.output.split()
    assert response.exit_code == 0
    assert "issues, line 2: Validation failed: Title can't be blank" in response.output
    assert ["public,", "'Shop'"] == words[words.index("project") + 1 :][:2]
    assert " ".join(words).count("rows kept as they are 1") == 1
    assert "services" not in words


def test_a_file_with_an_unusable_name_is_reported(write):
    name = f"uploads/{'a' * 32}/odd\nname"

    response = run("inspect", write("a.tar.gz", make_archive({}, files={name: b"x"})))

    assert response.output.splitlines()[-2:] == ["would be left out: 1", f"  {name!r}: the name cannot be kept"]


def test_values_decided_at_the_end_are_inspected(write):
    members = [
        {"access_level": 30, "user": {"id": 7, "email": "dev@example.org"}},
        {"access_level": 30, "requested_at": MOMENT, "user": {"id": 8, "email": "rita@example.org"}},
        {"access_level": 30, "user": None, "invite_email": "new@example.org"},
    ]
    tags = [{"name": "v*"}, {"name": "v*"}, {"name": ""}, {"name": "a\0"}]
    relations = {"project_members": members, "protected_tags": tags, "error_tracking_setting": [{"api_url": "x"}]}

    response = run("inspect", write("a.tar.gz", make_archive(relations)))

    _, _, becomes = response.output.partition("would become")
    assert [" ".join(line.split()) for line in becomes.splitlines()] == [
        "",
        "error tracking setting 1",
        "members, where known 1",
        "protected tags 1",
        "rows kept as they are 2",
        "would be left out: 3",
        "protected_tags, line 2: Validation failed: Name has already been taken",
        "protected_tags, line 3: Validation failed: Name can't be blank",
        "protected_tags, line 4: string contains null byte",
    ]


def test_an_archive_that_cannot_be_imported_is_reported(write):
    response = run("inspect", write("a.tar.gz", make_archive({}, version="0.1.0")))

    assert (response.exit_code, response.output) == (
        1,
        "Error: Import version mismatch: Required 0.2.4 but was 0.1.0\n",
    )


SNIPPET = {"title": "s", "content": "c", "visibility_level": 0, "created_at": MOMENT, "updated_at": MOMENT}
BUNDLE_OF_IT = layout.snippet_bundle("s2021-02-15 15:56:00 UTC2021-02-15 15:56:00 UTC")


@pytest.mark.parametrize(
    ("relations", "project", "files", "text"),
    [
        ({}, {}, {"project.bundle": b"xx"}, "Invalid bundle file"),
        ({}, {}, {"project.wiki.bundle": b"# v2 git bundle\n"}, "Invalid bundle file"),
        ({"snippets": [SNIPPET]}, {}, {BUNDLE_OF_IT: b"xx"}, "Invalid repository bundle for snippet 's'"),
        ({}, {"description": "a\0b"}, {}, "string contains null byte"),
        ({}, {}, {"lfs-objects.json": b'{"'}, "Incorrect JSON format"),
    ],
)
def test_inspection_stops_where_an_import_would_fail(relations, project, files, text, write):
    response = run("inspect", write("a.tar.gz", make_archive(relations, project, files=files)))

    assert (response.exit_code, response.output) == (1, f"Error: {text}\n")


def test_one_row_of_a_single_object_counts(write):
    relations = {
        "project_feature": [{"a": 1}, {"a": 2}],
        "error_tracking_setting": [{"api_url": "x"}, {"api_url": "y"}],
    }

    response = run("inspect", write("a.tar.gz", make_archive(relations)))

    assert response.output.splitlines()[-3:] == [
        "would be left out: 2",
        "  project_feature, line 2: There can be one row only",
        "  error_tracking_setting, line 2: There can be one row only",
    ]


def test_a_file_that_cannot_be_imported_is_explained():
    error = Unprocessable({"error": "You need to upload an archive."})

    assert application.error_text(error) == "You need to upload an archive."


def test_skipped_rows_of_an_import_are_listed(app, project):
    def failure(relation, line, message):
        told = {"exception_class": "A", "source": "s", "exception_message": message}
        return ImportFailure(project_id=project.id, relation_name=relation, line_number=line, **told)

    db.session.add_all([failure("issues", 3, "No\x1b[31m title"), failure("uploads", None, "The name")])
    db.session.commit()

    assert list(transfer_progress.left_out(project.id)) == ["issues, line 3: No [31m title", "uploads: The name"]

    db.session.add_all([failure("labels", line, "No") for line in range(120)])
    db.session.commit()

    many = list(transfer_progress.left_out(project.id))
    assert (many[0], len(many)) == ("122 rows or files were left out, of which these are the last 100", 101)


@pytest.mark.parametrize("words", [("inspect",), ("diff",)])
def test_an_archive_is_read_from_a_pipe(words, write, tmp_path):
    content, pipe = make_archive({"issues": [make_issue(1)]}, {}), tmp_path / "pipe"
    place = write("a.tar.gz", content)
    os.mkfifo(pipe)
    other = (place,) if words == ("diff",) else ()
    command = [*words, "-", *other]

    with subprocess.Popen(["cp", place, str(pipe)]) as writer:
        by_name = run(*words, str(pipe), *other)
        writer.wait()
    by_dash = CliRunner().invoke(main.main, ["archive", *command], input=content)

    expected = run(*words, place, *other)
    assert expected.exit_code == 0
    assert [(one.exit_code, one.output) for one in (by_name, by_dash)] == [(0, expected.output)] * 2


def test_two_archives_cannot_be_read_from_one_pipe():
    response = run("diff", "-", "-")

    assert (response.exit_code, "Only one of the archives" in response.output) == (2, True)


@pytest.mark.parametrize(("words", "status"), [(("inspect",), 1), (("diff",), 2)])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_unwritable_output_is_reported(words, status, unbuffered, write):
    place = write("a.tar.gz", make_archive({}))
    command = [sys.executable, "-m", "project_service", "archive", *words, place, *([place] * (words == ("diff",)))]

    with open("/dev/full", "wb") as full:
        environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (
        status,
        "Error: the output cannot be written (No space left on device)\n",
    )


def test_an_archive_that_cannot_be_compared_is_an_error(write):
    sound, damaged = write("a.tar.gz", make_archive({})), write("b.tar.gz", b"no archive")

    response = run("diff", sound, damaged)

    assert (response.exit_code, response.output) == (2, "Error: The file is not in gzip format\n")


@pytest.mark.parametrize("words", [("inspect",), ("diff",)])
def test_an_extraction_error_names_the_temporary_directory(words, write, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    place = write("a.tar.gz", make_archive({}))
    monkeypatch.setattr(extraction, "_register", full)

    response = run(*words, place, *([place] * (words == ("diff",))))

    assert response.output == "Error: the archive cannot be read or unpacked (No space left on device)\n"


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        (DEV, transfer_progress.TransferFailed, "dev may not export acme/shop: that takes at least a maintainer"),
        (SAM, transfer_progress.TransferFailed, "sam may not see acme/shop"),
    ],
)
def test_the_export_command_needs_a_permitted_user(name, error, text, project, people):
    with pytest.raises(error) as told:
        transfer_progress.start_export(people[name], project)

    assert application.error_text(told.value) == text
    assert db.session.query(ProjectExport).count() == 0


def test_a_maintainer_exports_from_the_command_line(project, people, run_jobs, tmp_path):
    export_id = transfer_progress.start_export(people[MAX], project)
    run_jobs()
    stream = io.BytesIO()

    for target in (tmp_path / "x", stream):
        assert [step.ended for step in transfer_progress.follow_export(export_id, target)] == [True]

    assert (tmp_path / "x").read_bytes() == stream.getvalue()
    assert "VERSION" in unpack(stream.getvalue())


def test_changes_of_every_transfer_are_not_differences(write):
    one = make_issue(1, notes=[make_note("Hello")], events=[make_event()], author_id=1)
    one["issue_assignees"] = [{"user_id": 1}, {"user_id": 2}]
    note = make_note(f"Hello{SIGNED}", id=9, author={"name": "Ada"})
    other = make_issue(1, id=99, notes=[note], author_id=2, timelogs=[], issue_assignees=[{"user_id": 3}])

    response = run(
        "diff", *(write(f"{i}.tar.gz", make_archive({"issues": [row]}, {})) for i, row in enumerate((one, other)))
    )

    assert (response.exit_code, response.output) == (0, "The archives say the same.\n")


@pytest.mark.parametrize("moment", ["2021-02-15T17:56:00.645+02:00", "2021-02-15 15:56:00.645 UTC"])
def test_times_are_compared_in_several_formats(moment, write):
    written = make_issue(1, closed_at=moment, notes=[make_note("a", updated_at=moment)])
    same = make_issue(1, closed_at=MOMENT, notes=[make_note("a", updated_at=MOMENT)])
    later = make_issue(1, closed_at=MOMENT.replace("645", "646"), notes=[make_note("a", updated_at=MOMENT)])

    places = [write(f"{i}.tar.gz", make_archive({"issues": [it]}, {})) for i, it in enumerate((written, same, later))]

    assert run("diff", *places[:2]).output == "The archives say the same.\n"
    assert run("diff", places[0], places[2]).stdout == "issues 1: changed: closed_at\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2021-02-15T15:56:00.6450001Z", "2021-02-15T15:56:00.6450009Z"),
        ("2021-02-15 15:56:00 ABC", "2021-02-15T15:56:00Z"),
        ("May 2016", "2016-05-01T00:00:00Z"),
        ("", "2016-05-01T00:00:00Z"),
        ("none", "2016-05-01T00:00:00Z"),
    ],
)
def test_invalid_times_are_compared_as_text(one, other, write):
    places = [
        write(f"{i}.tar.gz", make_archive({"issues": [make_issue(1, closed_at=it)]}, {}))
        for i, it in enumerate((one, other))
    ]

    assert run("diff", *places).stdout == "issues 1: changed: closed_at\n"


@pytest.mark.parametrize(
    ("written", "named", "code"),
    [
        ("2021-02-15T17:56:00.645+02:00", "2021-02-15T17:56:00", 0),
        ("2021-02-15T21:41:00.645+05:45", "2021-02-15T21:41:00", 0),
        ("2021-02-15T15:56:00.645Z", "2021-02-15T15:56:01", 1),
        ("2021-02-15T15:56:00.645Z", "2021-02-16T15:56:00", 1),
        ("2021-02-15T15:56:00.645Z", "nowhere", 1),
    ],
)
def test_times_in_note_texts_are_compared_in_any_zone(written, named, code, write):
    before = make_note("a", updated_at=written)
    after = make_note(f"a\n\n *By Tess on {named} (imported from GitLab)*", updated_at=MOMENT)

    places = [
        write(f"{i}.tar.gz", make_archive({"issues": [make_issue(1, notes=[it])]}, {}))
        for i, it in enumerate((before, after))
    ]

    assert run("diff", *places).exit_code == code


def test_null_and_missing_fields_are_equal(write):
    branches = {"source_branch": "a", "target_branch": "b"}
    silent = {"issues": [make_issue(1)], "merge_requests": [make_issue(1, **branches)]}
    usual = {
        "issues": [make_issue(1, **layout.ISSUE_DEFAULTS)],
        "merge_requests": [make_issue(1, **branches, **layout.MERGE_REQUEST_DEFAULTS)],
    }
    said = {"issues": [make_issue(1, time_estimate=60)], "merge_requests": [make_issue(1, **branches, squash=True)]}
    types = {"lfs-objects.json": b"{}"}
    archives = [make_archive(silent, {}), make_archive(usual, {}, files=types), make_archive(said, {})]

    places = [write(f"{i}.tar.gz", archive) for i, archive in enumerate(archives)]

    assert run("diff", *places[:2]).output == "The archives say the same.\n"
    assert run("diff", *places[1:]).stdout == "issues 1: changed: time_estimate\nmerge_requests 1: changed: squash\n"


def test_files_that_imports_skip_are_a_difference(write):
    secret = "a" * 32
    names = [f"uploads/{secret}/sub/deeper.txt", f"uploads/{secret}/odd\nname", "snippets/readme.txt"]
    places = [
        write(f"{i}.tar.gz", make_archive({}, files=dict.fromkeys(some, b"x"))) for i, some in enumerate((names, []))
    ]

    response = run("diff", *places)

    assert (response.exit_code, response.stdout) == (
        1,
        "".join(f"{one!r}: only in the first\n" for one in sorted(names)),
    )
    assert run("diff", places[0], places[0]).exit_code == 0


@pytest.mark.parametrize("place", ["nowhere/shop.tar.gz", "file/shop.tar.gz", "", "folder", "a" * 300, "dangling"])
def test_an_unwritable_output_stops_the_export(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere/x")

    response = run("export", "acme/shop", place, "--as", "root")

    assert (response.exit_code, "Invalid value for 'FILE'" in response.output) == (2, True)


def test_differences_are_named(write):
    one = make_archive({"issues": [make_issue(1), make_issue(2)]}, {"description": "a"})
    other = make_archive({"issues": [make_issue(1, title="Other"), make_issue(3)]}, {"description": "b"})

    response = run("diff", write("a.tar.gz", one), write("b.tar.gz", other))

    assert (response.exit_code, response.stdout.splitlines()) == (
        1,
        [
            "issues 1: changed: title",
            "issues 2: only in the first",
            "issues 3: only in the second",
            "project: changed: description",
        ],
    )


def test_different_attributes_are_named_with_their_path(write):
    one = {"issues": [make_issue(1, weight=1, notes=[make_note("a"), make_note("b")])], "project_feature": [{"a": 20}]}
    other = {"issues": [make_issue(1, notes=[make_note("a"), make_note("c")])], "project_feature": [{"a": 10}]}

    response = run("diff", *(write(f"{i}.tar.gz", make_archive(it, {})) for i, it in enumerate((one, other))))

    assert response.stdout.splitlines() == ["issues 1: changed: notes[1].note, weight", "project_feature: changed: a"]


def test_the_number_of_named_attributes_is_limited(write):
    one, other = ({"boards": [{"name": "b"} | {f"a{n:02}": value for n in range(20)}]} for value in (1, 2))

    response = run("diff", *(write(f"{i}.tar.gz", make_archive(it, {})) for i, it in enumerate((one, other))))

    named = ", ".join(f"a{n:02}" for n in range(10))
    assert response.stdout.splitlines() == [f"boards b: changed: {named}, and others"]


FULL = {
    "project": [{"public_builds": False, "repository_size_limit": 0}],
    "milestones": [{"iid": 1, "title": "One", "events": [make_event(target_type="Milestone")]}],
    "issues": [
        make_issue(
            1,
            weight=0,
            events=[make_event(), make_event("closed", push_event_payload={"ref": "a"})],
            notes=[make_note(f"Hello{SIGNED}", events=[make_event("commented")])],
            issue_assignees=[{"user_id": 1}],
        )
    ],
    "labels": [LABEL | {"template": False, "textColor": "#FFFFFF"}],
    "project_members": [{"access_level": 30, "user": None, "invite_email": "new@example.org"}],
    "protected_branches": [{"name": "main", "push_access_levels": [{"access_level": 0}]}],
    "project_feature": [{"wiki_access_level": 0, "created_at": MOMENT}],
    "ci_pipelines": [{"iid": 1, "stages": [{"statuses": [{"options": {"secrets": {"a": 1}, "user_id": 1}}]}]}],
}


def options_of(all_):
    return all_["ci_pipelines"][0]["stages"][0]["statuses"][0]["options"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda all_: all_["project"][0].pop("public_builds"), "project: changed: public_builds"),
        (lambda all_: all_["project"][0].pop("repository_size_limit"), "project: changed: repository_size_limit"),
        (lambda all_: all_["milestones"][0].pop("events"), "milestones 1: changed: events"),
        (lambda all_: all_["issues"][0].pop("weight"), "issues 1: changed: weight"),
        (lambda all_: all_["issues"][0].pop("events"), "issues 1: changed: events"),
        (lambda all_: all_["issues"][0].pop("issue_assignees"), "issues 1: changed: issue_assignees"),
        (
            lambda all_: all_["issues"][0]["events"][0].update(action="reopened"),
            "issues 1: changed: events[1].action",
        ),
        (
            lambda all_: all_["issues"][0]["notes"][0].update(updated_at="2021-02-15T15:56:01.000Z"),
            "issues 1: changed: notes[0].note, notes[0].updated_at",
        ),
        (
            lambda all_: all_["issues"][0]["notes"][0].update(note="Hello\n\n *By Tess on x (imported from GitLab)*"),
            "issues 1: changed: notes[0].note",
        ),
        (
            lambda all_: all_["issues"][0]["notes"][0].update(note=f"Hello{SIGNED}".replace("Tess", "Mallory")),
            "issues 1: changed: who wrote a note, as its text says",
        ),
        (
            lambda all_: all_["issues"][0]["notes"][0].update(note="Hello", author={"name": "Mallory"}),
            "issues 1: changed: who wrote a note, as its text says",
        ),
        (lambda all_: all_["labels"][0].update(template=True), "labels bug: changed: template"),
        (lambda all_: all_["labels"][0].update(textColor="#333333"), "labels bug: changed: textColor"),
        (lambda all_: all_["project_members"].clear(), "project_members new@example.org: only in the first"),
        (
            lambda all_: all_["protected_branches"][0]["push_access_levels"][0].clear(),
            "protected_branches main: changed: push_access_levels[0].access_level",
        ),
        (
            lambda all_: all_["project_feature"][0].pop("wiki_access_level"),
            "project_feature: changed: wiki_access_level",
        ),
        (lambda all_: all_["project_feature"][0].pop("created_at"), "project_feature: changed: created_at"),
        (
            lambda all_: options_of(all_).pop("secrets"),
            "ci_pipelines 1: changed: stages[0].statuses[0].options.secrets",
        ),
        (
            lambda all_: options_of(all_).update(user_id=2),
            "ci_pipelines 1: changed: stages[0].statuses[0].options.user_id",
        ),
    ],
)
def test_other_changes_are_differences(change, told, write):
    other = copy.deepcopy(FULL)
    change(other)

    response = run(
        "diff",
        *(
            write(f"{i}.tar.gz", make_archive({name: it[name] for name in it if name != "project"}, it["project"][0]))
            for i, it in enumerate((FULL, other))
        ),
    )

    assert (response.exit_code, response.stdout.splitlines()) == (1, [told])


BRANCHES = {"source_branch": "a", "target_branch": "b", "source_project_id": 5, "target_project_id": 5}
REFERRING = {
    "protected_branches": [
        {"name": "main", "push_access_levels": [{"access_level": 40, "user_id": 7, "group_id": 2, "deploy_key_id": 3}]}
    ],
    "protected_tags": [{"name": "v*", "create_access_levels": [{"access_level": 40, "user_id": 7}]}],
    "merge_requests": [make_issue(1, diff_head_sha="a" * 40, **BRANCHES)],
    "issues": [make_issue(1, closed_by_id=7, timelogs=[{"time_spent": 5, "user_id": 7}], notes=[make_note()])],
}


@pytest.mark.parametrize(
    "way",
    [
        "protected_branches main/push_access_levels[0].user_id",
        "protected_branches main/push_access_levels[0].group_id",
        "protected_branches main/push_access_levels[0].deploy_key_id",
        "protected_tags v*/create_access_levels[0].user_id",
        "merge_requests 1/source_project_id",
        "merge_requests 1/author_id",
        "issues 1/author_id",
        "issues 1/closed_by_id",
        "issues 1/timelogs[0].user_id",
        "issues 1/notes[0].author_id",
    ],
)
@pytest.mark.parametrize("gone", [True, False])
def test_the_presence_of_user_references_is_compared(way, gone, write):
    other = copy.deepcopy(REFERRING)
    place, _, attribute = way.partition("/")
    nested, _, name = attribute.rpartition("[0].")
    [row] = other[place.partition(" ")[0]]
    owner = row[nested][0] if nested else row
    if gone:
        del owner[name]
    else:
        owner[name] = None

    response = run("diff", *(write(f"{i}.tar.gz", make_archive(it, {})) for i, it in enumerate((REFERRING, other))))

    assert (response.exit_code, response.stdout) == (1, f"{place}: changed: {attribute}\n")


@pytest.mark.parametrize(
    ("relation", "row", "same"),
    [
        ("issues", make_issue(1, milestone_id=3, assignee_id=7), make_issue(1, milestone_id=None)),
        (
            "merge_requests",
            make_issue(1, **BRANCHES | {"source_project_id": 6}),
            make_issue(1, **BRANCHES) | {"source_project_id": None},
        ),
        ("labels", LABEL | {"group_id": 3}, LABEL),
        ("milestones", {"title": "v1", "iid": 1, "group_id": 3}, {"title": "v1", "iid": 1}),
        ("boards", {"name": "b", "project_id": 5}, {"name": "b"}),
        ("releases", {"tag": "v1", "description_html": "<p>"}, {"tag": "v1"}),
        ("issues", make_issue(1, closed_by_id=7), make_issue(1, closed_by_id=8)),
    ],
)
def test_user_references_changed_by_an_import_are_not_differences(relation, row, same, write):
    archives = [make_archive({relation: [it]}, {}) for it in (row, same)]

    response = run("diff", *(write(f"{i}.tar.gz", archive) for i, archive in enumerate(archives)))

    assert response.output == "The archives say the same.\n"


YESTERDAY = (dt.datetime.now(dt.UTC) - dt.timedelta(days=1)).isoformat()
LATER = "2021-02-16T00:00:00.000Z"


@pytest.mark.parametrize(
    ("one", "other", "code"),
    [
        ([MOMENT], [], 0),  # retention may have taken it
        ([MOMENT, LATER], [LATER], 0),
        ([MOMENT, LATER], [MOMENT], 1),  # it takes the older ones first
        ([YESTERDAY], [], 1),
        ([MOMENT, YESTERDAY], [YESTERDAY], 0),
        ([None], [], 1),
        ([YESTERDAY, MOMENT], [MOMENT, YESTERDAY], 0),
    ],
)
def test_expired_events_are_not_differences(one, other, code, write):
    archives = (
        make_archive({"issues": [make_issue(1, events=[make_event(created_at=moment) for moment in moments])]}, {})
        for moments in (one, other)
    )

    response = run("diff", *(write(f"{i}.tar.gz", archive) for i, archive in enumerate(archives)))

    assert response.exit_code == code


def test_event_actions_are_equal_as_number_and_word(write):
    archives = (make_archive({"issues": [make_issue(1, events=[make_event(action)])]}, {}) for action in ("closed", 3))

    response = run("diff", *(write(f"{i}.tar.gz", archive) for i, archive in enumerate(archives)))

    assert response.exit_code == 0


def test_files_are_compared(write):
    one = make_archive({}, {}, files={"uploads/0123456789abcdef0123456789abcdef/a.txt": b"a"})
    other = make_archive({}, {}, files={"uploads/0123456789abcdef0123456789abcdef/a.txt": b"b"})

    response = run("diff", write("a.tar.gz", one), write("b.tar.gz", other))

    assert response.stdout.splitlines() == ["uploads/0123456789abcdef0123456789abcdef/a.txt: changed"]
