"""Sample archives of real servers give the rows that their notes describe (archive format reference, section 9)."""

from __future__ import annotations

import itertools

import pytest

from project_service.domain.projects import Project
from project_service.domain.repositories import git
from project_service.kit.db.session import db
from project_service.transfers.archive import diff
from tests.support.archives import REAL, rows, unpack
from tests.support.git_repositories import repository_folder
from tests.support.sample_data import make_user

pytestmark = pytest.mark.skipif(not REAL.exists(), reason="the real archives are not here; ARCHIVES_DIR says where")

EXPECTED = {  # feed, issues opened and closed, merge requests, labels, milestones, failed relations, visibility
    "project_export": (25, 4, 6, 9, 0, 5, [], "private"),
    "lightweight_project_export": (5, 1, 0, 1, 1, 1, [], "private"),
    "corrupted_project_export": (3, 1, 0, 0, 1, 1, ["merge_requests"], "private"),
    "sample": (356, 29, 1, 30, 30, 3, [], "public"),
    "made_light": (1, 1, 0, 0, 2, 1, [], "internal"),
    "made_group": (1, 2, 1, 0, 2, 2, [], "internal"),
    "made_with_invalid_issues_and_milestones": (1, 0, 0, 0, 0, 1, ["issues", "issues", "milestones"], "internal"),
    "made_symlinks_in_valid_tree": (1, 1, 0, 0, 2, 1, [], "internal"),
}
REFS = {"project_export": (27, 2), "lightweight_project_export": (2, 0), "sample": (31, 0)}


@pytest.fixture
def root(app, client_of):
    """An administrator with an email address of the archives."""
    user = make_user("root", email="admin@example.com", admin=True)
    return client_of(user, "api")


@pytest.fixture
def imported(root, run_jobs):
    """Imports one of the archives; returns the id of the project."""

    def run(name):
        with (REAL / f"{name}.tar.gz").open("rb") as file:
            response = root.post("/projects/import", data={"path": name, "file": (file, f"{name}.tar.gz")})
        assert (response.status_code, response.json["import_status"]) == (201, "scheduled")
        run_jobs()
        return response.json["id"]

    return run


def total(client, path):
    return int(client.get(path).headers["X-Total"])


def export(client, project_id, run_jobs):
    assert client.post(f"/projects/{project_id}/export").status_code == 202
    run_jobs()
    return unpack(client.get(f"/projects/{project_id}/export/download").data)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_archive_gives_the_described_rows(name, imported, root, run_jobs):
    number = imported(name)

    state = root.get(f"/projects/{number}/import").json
    files = export(root, number, run_jobs)
    assert (state["import_status"], state["import_error"]) == ("finished", None)
    assert (
        total(root, f"/projects/{number}/events"),
        total(root, f"/projects/{number}/issues?state=opened"),
        total(root, f"/projects/{number}/issues?state=closed"),
        len(rows(files, "merge_requests")),
        len(rows(files, "labels")),
        total(root, f"/projects/{number}/milestones"),
        sorted(failed["relation_name"] for failed in state["failed_relations"]),
        root.get(f"/projects/{number}").json["visibility"],
    ) == EXPECTED[name]


def test_an_archive_without_a_version_fails(imported, root):
    number = imported("symlink_export")

    state = root.get(f"/projects/{number}/import").json
    assert state["import_status"] == "failed"
    assert state["import_error"].startswith("Error importing repository  into root/symlink_export - ")
    assert total(root, f"/projects/{number}/events") == 1


@pytest.mark.parametrize("name", REFS)
def test_all_branches_and_tags_are_imported(name, imported):
    project = db.session.get(Project, imported(name))

    with repository_folder(project) as folder:
        refs = git.git("for-each-ref", "--format=%(refname)", folder=folder).decode().split()
    branches, tags = [[ref for ref in refs if ref.startswith(f"refs/{kind}/")] for kind in ("heads", "tags")]
    assert ((len(branches), len(tags)), project.default_branch) == (REFS[name], "master")


@pytest.mark.parametrize("name", ["project_export", "sample", "lightweight_project_export"])
def test_an_export_can_be_imported_and_is_equal(name, imported, root, run_jobs):
    first = export(root, imported(name), run_jobs)
    with (REAL / f"{name}.tar.gz").open("rb") as file:
        original = unpack(file.read())

    for bundle in ("project.bundle", "project.wiki.bundle"):
        assert first.get(bundle) == original.get(bundle)
    for relation in ("issues", "merge_requests", "milestones", "labels", "protected_branches"):
        stored = original.get(f"tree/project/{relation}.ndjson")
        if stored is not None:
            assert len(rows(first, relation)) == len(rows(original, relation))


@pytest.mark.parametrize("person", ["root", "sam"])
@pytest.mark.parametrize("name", EXPECTED)
def test_nothing_is_lost_between_two_transfers(name, person, root, as_, people, run_jobs, tmp_path):
    client = root if person == "root" else as_("sam")
    places = [REAL / f"{name}.tar.gz", tmp_path / "second.tar.gz", tmp_path / "third.tar.gz"]
    for number, (source, target) in enumerate(itertools.pairwise(places)):
        with source.open("rb") as file:
            response = client.post("/projects/import", data={"path": f"p{number}", "file": (file, "a.tar.gz")})
        run_jobs()
        client.post(f"/projects/{response.json['id']}/export")
        run_jobs()
        target.write_bytes(client.get(f"/projects/{response.json['id']}/export/download").data)

    assert diff.compare(*places[1:]) == []


def test_users_are_mapped_by_email_or_become_the_importer(imported, root, run_jobs, as_, people):
    known = imported("lightweight_project_export")
    with (REAL / "lightweight_project_export.tar.gz").open("rb") as file:
        response = as_("sam").post("/projects/import", data={"path": "light", "file": (file, "light.tar.gz")})
    run_jobs()

    [note] = root.get(f"/projects/{known}/issues/1/notes").json
    [other] = as_("sam").get(f"/projects/{response.json['id']}/issues/1/notes").json
    assert (note["author"]["username"], note["body"].count("*By")) == ("root", 1)
    assert (other["author"]["username"], other["body"]) == (
        "sam",
        note["body"] + "\n\n *By Administrator on 2019-11-25T19:42:44 (imported from GitLab)*",
    )
