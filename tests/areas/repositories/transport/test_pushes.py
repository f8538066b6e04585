"""Clones and pushes of real git: rules with their texts, events, first push (repositories reference, 2 and 3)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select

from project_service.areas.repositories.transport import git_access, receiving
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.repositories import models, refs
from project_service.domain.repositories.models import RepositoryPack, RepositoryRef
from project_service.domain.repositories.protected_refs import ProtectedBranch
from project_service.kit.db.session import db, unit_of_work
from tests.support.git_repositories import keep_bundle, make_bundle
from tests.support.sample_data import DEV, MAX, OLIVE, RITA, reload

SHOP = "acme/shop"
pytestmark = pytest.mark.both_databases


@pytest.fixture
def maintainer(git_of, people, project):
    """A maintainer who has pushed a first commit."""
    client = git_of(people[MAX])
    client.commit("First", readme="hello\n")
    client.push(SHOP, "main")
    return client


def refs_of(project):
    with unit_of_work(write=False):
        found = models.repository_of(project)
        rows = select(RepositoryRef.name, RepositoryRef.target).where(RepositoryRef.repository_id == found.id)
        return dict(db.session.execute(rows).all())


def pushes(as_maintainer, project):
    events = as_maintainer.get(f"/projects/{project.id}/events?action=pushed").json
    return [(event["action_name"], event["push_data"]) for event in events]


def test_a_first_push_can_be_cloned_and_sets_and_protects_the_default_branch(maintainer, git_of, people, project):
    reader = git_of(people[RITA])

    for version in ("0", "1", "2"):
        reader.run("-c", f"protocol.version={version}", "clone", "--quiet", reader.url(SHOP), f"v{version}")
        assert (reader.folder / f"v{version}" / "readme").read_text() == "hello\n"

    assert reload(project).default_branch == "main"
    [row] = db.session.scalars(select(ProtectedBranch)).all()
    assert (row.name, row.push_access_level, row.allow_force_push) == ("main", 40, False)
    assert refs_of(project) == {"refs/heads/main": maintainer.output("rev-parse", "main")}


def test_a_developer_may_push_branches_but_not_the_protected_one(maintainer, git_of, people, project):
    developer = git_of(people[DEV])
    developer.run("pull", "--quiet", developer.url(SHOP), "main")
    developer.commit("Second", more="x\n")

    refused = developer.push(SHOP, "HEAD:main", "HEAD:topic", check=False)

    assert "remote: GitLab: You are not allowed to push code to protected branches on this project." in refused.stderr
    assert refused.stderr.count("(pre-receive hook declined)") == 2
    assert set(refs_of(project)) == {"refs/heads/main"}
    with unit_of_work(write=False):
        assert len(db.session.scalars(select(RepositoryPack.id)).all()) == 1
    developer.push(SHOP, "HEAD:topic")
    assert set(refs_of(project)) == {"refs/heads/main", "refs/heads/topic"}


def test_protected_tags_are_created_by_allowed_roles_and_cannot_be_changed(
    maintainer, git_of, people, as_maintainer, project
):
    as_maintainer.post(f"/projects/{project.id}/protected_tags", json={"name": "v*", "create_access_level": 40})
    developer = git_of(people[DEV])
    developer.run("pull", "--quiet", developer.url(SHOP), "main")
    for client in (developer, maintainer):
        client.run("tag", "-a", "-m", "one", "v1")

    refused = developer.push(SHOP, "v1", check=False)
    assert "remote: GitLab: You are not allowed to create this tag as it is protected." in refused.stderr
    maintainer.push(SHOP, "v1")
    maintainer.run("tag", "-f", "v1", "HEAD")
    assert "Protected tags cannot be updated." in maintainer.push(SHOP, "-f", "v1", check=False).stderr
    assert "using the web interface" in maintainer.push(SHOP, ":v1", check=False).stderr
    assert "refs/tags/v1" in refs_of(project)


def test_the_default_branch_cannot_be_forced_or_deleted(maintainer, git_of, people):
    owner = git_of(people[OLIVE])
    owner.commit("Other root", other="x\n")

    forced, deleted = owner.push(SHOP, "-f", "main", check=False), owner.push(SHOP, ":main", check=False)

    assert "You are not allowed to force push code to a protected branch on this project." in forced.stderr
    assert "The default branch of a project cannot be deleted." in deleted.stderr


def test_wildcards_protected_by_the_api_apply_to_the_next_push(maintainer, git_of, people, as_maintainer, project):
    protected = f"/projects/{project.id}/protected_branches"
    as_maintainer.post(protected, json={"name": "release/*", "push_access_level": 30, "allow_force_push": True})
    as_maintainer.post(protected, json={"name": "frozen*", "push_access_level": 0})
    developer = git_of(people[DEV])
    developer.commit("Other root", other="x\n")

    developer.push(SHOP, "main:release/1")
    developer.commit("Second")
    developer.push(SHOP, "main:release/1")
    developer.run("commit", "--quiet", "--amend", "--allow-empty", "-m", "Amended")
    developer.push(SHOP, "-f", "main:release/1")
    as_maintainer.patch(f"{protected}/release%2F*", json={"allow_force_push": False})
    developer.run("commit", "--quiet", "--amend", "--allow-empty", "-m", "Again")
    forced = developer.push(SHOP, "-f", "main:release/1", check=False)
    deleted = developer.push(SHOP, ":release/1", check=False)
    created = maintainer.push(SHOP, "main:frozen-1", check=False)

    assert "You are not allowed to force push code to a protected branch on this project." in forced.stderr
    assert "Only a project maintainer or owner can delete a protected branch." in deleted.stderr
    assert "You are not allowed to create protected branches on this project." in created.stderr
    as_maintainer.delete(f"{protected}/release%2F*")
    developer.push(SHOP, ":release/1")
    assert set(refs_of(project)) == {"refs/heads/main"}


def test_the_second_of_two_concurrent_pushes_to_a_branch_fails(maintainer, project):
    maintainer.push(SHOP, "main:topic")
    first = maintainer.output("rev-parse", "main")
    maintainer.commit("Second")
    maintainer.push(SHOP, "main:topic")

    late = maintainer.push(SHOP, f"--force-with-lease=topic:{first}", "main:topic", "main:a/b", "main:a", check=False)

    assert "main -> a (failed to update ref)" in late.stderr
    assert "refs/heads/a/b" in refs_of(project)


def test_a_push_records_events(maintainer, as_maintainer, project):
    first = maintainer.output("rev-parse", "main")
    second = maintainer.commit("  A title of more than seventy characters, which is too long for the activity feed  ")
    maintainer.run("tag", "light")
    maintainer.push(SHOP, "main", "light")
    maintainer.push(SHOP, ":light")

    assert [
        (name, data["commit_count"], data["commit_from"], data["commit_to"], data["ref"], data["ref_type"])
        for name, data in pushes(as_maintainer, project)
    ] == [
        ("deleted", 0, second, None, "light", "tag"),
        ("pushed new", 1, None, second, "light", "tag"),
        ("pushed to", 1, first, second, "main", "branch"),
        ("pushed new", 1, None, first, "main", "branch"),
    ]
    titles = [data["commit_title"] for _, data in pushes(as_maintainer, project)]
    assert titles == [None, *["A title of more than seventy characters, which is too long for the ..."] * 2, "First"]


def test_a_push_of_many_refs_records_one_event(maintainer, as_maintainer, project):
    maintainer.push(SHOP, *(f"main:b{number}" for number in range(4)))

    name, data = pushes(as_maintainer, project)[0]
    assert (name, data["ref_count"], data["ref"], data["commit_count"]) == ("pushed new", 4, None, 0)


def test_other_ref_names_are_refused_or_hidden(maintainer, project):
    assert "deny updating a hidden ref" in maintainer.push(SHOP, "main:refs/keep-around/x", check=False).stderr
    sha = maintainer.output("rev-parse", "main")
    assert "SHA-1 or SHA-256 branch name" in maintainer.push(SHOP, f"main:refs/heads/{sha}", check=False).stderr
    maintainer.push(SHOP, "main:refs/notes/semantic-release")
    assert set(refs_of(project)) == {"refs/heads/main", "refs/notes/semantic-release"}


def test_refs_with_the_name_of_a_namespace_are_refused(maintainer, project):
    names = ["refs/tags", "refs/heads", "refs/merge-requests", "refs/HEAD", "refs/stash"]

    refused = maintainer.push(SHOP, *(f"main:{name}" for name in names), "main:refs/tags/v1", check=False)

    assert [name for name in names if f"main -> {name} (funny refname)" not in refused.stderr] == []
    assert set(refs_of(project)) == {"refs/heads/main", "refs/tags/v1"}


def test_concurrent_pushes_of_refs_one_below_the_other_create_one_of_them(maintainer, project):
    with ThreadPoolExecutor(4) as executor:
        names = ["x", "x/y", "x/y/z", "x/y/z/0"]
        pushed = list(executor.map(lambda name: maintainer.push(SHOP, f"main:{name}", check=False), names))

    assert sorted(process.returncode for process in pushed) == [0, 1, 1, 1]
    assert len(refs_of(project)) == 2


def test_a_ref_is_created_only_when_all_refs_below_it_are_deleted(maintainer, project, monkeypatch):
    monkeypatch.setattr(refs, "BATCH", 2)
    maintainer.push(SHOP, *(f"main:v/{number}" for number in range(4)))

    late = maintainer.push(SHOP, *(f":v/{number}" for number in range(3)), "main:v", check=False)

    assert "main -> v (failed to update ref)" in late.stderr
    maintainer.push(SHOP, ":v/3", "main:v")


def test_a_folder_with_too_many_entries_is_refused(maintainer, project, app, monkeypatch):
    monkeypatch.setitem(app.config, "SETTINGS", replace(app.config["SETTINGS"], max_folder_entries=3))
    maintainer.commit("As many as allowed", a="1", b="2")
    maintainer.push(SHOP, "main")
    maintainer.commit("One more", c="3")

    refused = maintainer.push(SHOP, "main", check=False)

    assert "remote: GitLab: A folder of this push has more than 3 entries." in refused.stderr
    maintainer.run("rm", "--quiet", "a")
    maintainer.run("commit", "--quiet", "--amend", "-m", "Less")
    maintainer.push(SHOP, "main")


def test_a_push_continues_an_imported_bundle(git_of, people, project, tmp_path):
    keep_bundle(project, make_bundle(tmp_path / "bundle", "v1"))
    client = git_of(people[MAX])
    client.run("pull", "--quiet", client.url(SHOP), "main")
    client.commit("Second", more="x\n")

    client.push(SHOP, "main")

    again = git_of(people[RITA])
    for _ in range(2):
        again.run("-C", str(again.folder), "fetch", "--quiet", again.url(SHOP), "main")
        assert again.output("rev-parse", "FETCH_HEAD") == client.output("rev-parse", "main")
    assert set(refs_of(project)) == {"refs/heads/main", "refs/tags/v1"}


def test_a_push_to_a_former_path_reaches_the_project(maintainer, as_maintainer, project):
    as_maintainer.put(f"/projects/{project.id}", json={"path": "store"})
    maintainer.commit("Second")

    pushed = maintainer.push(SHOP, "main")

    assert "remote: Project 'acme/shop' was moved to 'acme/store'." in pushed.stderr
    assert maintainer.output("ls-remote", maintainer.url("acme/store"), "main").startswith(
        maintainer.output("rev-parse", "main")
    )


@pytest.mark.parametrize("body", [b"", b"zzzz", b"0003", b"0010nonsense", b"0000", b"00ff", b"\xff" * 100])
def test_malformed_pushes_are_refused(app, people, project, maintainer, body):
    token = maintainer.credentials[4:-1]
    response = app.test_client().post(
        f"/{SHOP}.git/git-receive-pack",
        data=body,
        content_type="application/x-git-receive-pack-request",
        headers={"Authorization": f"Bearer {token}"},
    )

    assert response.status_code == (200 if body == b"0000" else 400)


def test_a_token_that_is_revoked_during_a_push_changes_nothing(maintainer, people, project, monkeypatch):
    before, prepare = refs_of(project), receiving.pushing.prepare

    def revoke_first(push, facts):
        with unit_of_work():
            db.session.get(PersonalAccessToken, push.caller.token_id).revoked = True
        return prepare(push, facts)

    maintainer.commit("Second", more="x\n")
    monkeypatch.setattr(receiving.pushing, "prepare", revoke_first)
    pushed = maintainer.push(SHOP, "HEAD:topic", check=False)

    assert (pushed.returncode, refs_of(project)) == (1, before)
    assert git_access.NO_PUSH in pushed.stderr
