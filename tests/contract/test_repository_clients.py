"""Clients of repositories: python-gitlab, and nightly gitbeaker and semantic-release."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile

import gitlab
import pytest

from tests.contract.service import AUTHOR, TOKEN, git
from tests.support import npm

GITBEAKER = "43.8.0"
SEMANTIC_RELEASE = ("semantic-release@24.2.9", "@semantic-release/gitlab@13.2.9")
PLUGINS = ("commit-analyzer", "release-notes-generator", "gitlab")
# every call prints its name, a failure also its message
SCRIPT = """
const {Gitlab} = require("@gitbeaker/rest");
const [host, token, id] = process.argv.slice(2);
const api = new Gitlab({host, token});
const {Branches, Tags, ProtectedBranches, Commits, Repositories, RepositoryFiles, ProjectReleases, ReleaseLinks} = api;
(async () => {
  const sha = (await Commits.all(id))[0].id;
  const blob = (await Repositories.allRepositoryTrees(id)).find((entry) => entry.type === "blob").id;
  const calls = {
    "Branches.all": () => Branches.all(id),
    "Branches.create": () => Branches.create(id, "topic/x", "main"),
    "Branches.show": () => Branches.show(id, "topic/x"),
    "Branches.remove": () => Branches.remove(id, "topic/x"),
    "Tags.create": () => Tags.create(id, "v2", "main", {message: "Two"}),
    "Tags.all": () => Tags.all(id),
    "Tags.show": () => Tags.show(id, "v2"),
    "ProtectedBranches.create": () => ProtectedBranches.create(id, "stable/*", {pushAccessLevel: 40}),
    "ProtectedBranches.all": () => ProtectedBranches.all(id),
    "ProtectedBranches.edit": () => ProtectedBranches.edit(id, "stable/*", {allowForcePush: true}),
    "ProtectedBranches.remove": () => ProtectedBranches.remove(id, "stable/*"),
    "Commits.show": () => Commits.show(id, sha),
    "Commits.showDiff": () => Commits.showDiff(id, sha),
    "Commits.allReferences": () => Commits.allReferences(id, sha),
    "Commits.allMergeRequests": () => Commits.allMergeRequests(id, sha),
    "Commits.allStatuses": () => Commits.allStatuses(id, sha),
    "Repositories.compare": () => Repositories.compare(id, "v2", "main"),
    "Repositories.allContributors": () => Repositories.allContributors(id),
    "Repositories.mergeBase": () => Repositories.mergeBase(id, ["v2", "main"]),
    "Repositories.showArchive": () => Repositories.showArchive(id, {fileType: "zip"}),
    "Repositories.showBlob": () => Repositories.showBlob(id, blob),
    "Repositories.showBlobRaw": () => Repositories.showBlobRaw(id, blob),
    "RepositoryFiles.show": () => RepositoryFiles.show(id, "README.md", "main"),
    "RepositoryFiles.showRaw": () => RepositoryFiles.showRaw(id, "README.md", "main"),
    "RepositoryFiles.allFileBlames": () => RepositoryFiles.allFileBlames(id, "README.md", "main"),
    "ProjectReleases.create": () => ProjectReleases.create(id, {tagName: "v2", description: "Notes"}),
    "ProjectReleases.all": () => ProjectReleases.all(id),
    "ProjectReleases.show": () => ProjectReleases.show(id, "v2"),
    "ProjectReleases.edit": () => ProjectReleases.edit(id, "v2", {description: "Better"}),
    "ProjectReleases.showLatest": () => ProjectReleases.showLatest(id),
    "ReleaseLinks.create": () => ReleaseLinks.create(id, "v2", "docs", "https://docs.example.org/"),
    "ReleaseLinks.all": () => ReleaseLinks.all(id, "v2"),
    "ProjectReleases.remove": () => ProjectReleases.remove(id, "v2"),
    "Tags.remove": () => Tags.remove(id, "v2"),
  };
  for (const [name, call] of Object.entries(calls)) {
    await call().catch((error) => console.log(name, error.cause?.description || error.message));
  }
  console.log("done", Object.keys(calls).length);
})();
"""


@pytest.fixture
def pushed(service, project, tmp_path):
    """A clone of the project with the branch main and the tag v1, both pushed."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "docs").mkdir()
    (folder / "docs" / "guide.txt").write_text("one\ntwo\n")
    (folder / "README.md").write_text("# Shop\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "feat: the shop opens")
    git(folder, "tag", "v1")
    address = f"{service.url.replace('://', f'://gitlab-ci-token:{TOKEN}@')}/{project.path_with_namespace}.git"
    git(folder, "remote", "add", "origin", address)
    git(folder, "push", "--quiet", "origin", "main", "v1")
    return folder


def test_a_repository_is_read_with_python_gitlab(gl, project, pushed):
    project = gl.projects.get(project.id)
    sha = git(pushed, "rev-parse", "HEAD").stdout.strip()

    [commit] = project.commits.list(get_all=True)
    assert (commit.id, project.commits.get("main").stats["additions"]) == (sha, 3)
    assert [change["new_path"] for change in commit.diff()] == ["README.md", "docs/guide.txt"]
    assert {ref["name"] for ref in commit.refs()} == {"main", "v1"}
    assert commit.merge_requests() == []
    tree = project.repository_tree(recursive=True, get_all=True)
    assert [entry["path"] for entry in tree] == ["docs", "README.md", "docs/guide.txt"]
    blob = next(entry["id"] for entry in tree if entry["path"] == "docs/guide.txt")
    assert (project.repository_blob(blob)["size"], project.repository_raw_blob(blob)) == (8, b"one\ntwo\n")
    file = project.files.get("docs/guide.txt", ref="main")
    assert (file.decode(), project.files.raw("docs/guide.txt", ref="main")) == (b"one\ntwo\n", b"one\ntwo\n")
    assert project.files.head("docs/guide.txt", ref="main")["X-Gitlab-Size"] == "8"
    assert [part["lines"] for part in project.files.blame("docs/guide.txt", ref="main")] == [["one", "two"]]
    with tarfile.open(fileobj=io.BytesIO(project.repository_archive(sha="v1"))) as archive:
        assert [name.partition("/")[2] for name in archive.getnames()] == ["", "README.md", "docs", "docs/guide.txt"]
    assert project.repository_compare("v1", "main")["compare_same_ref"] is True
    assert project.repository_merge_base(["v1", "main"])["id"] == sha
    assert [one["commits"] for one in project.repository_contributors()] == [1]
    assert [branch.name for branch in project.branches.list()] == ["main"]


def test_branches_follow_the_rules_that_protect_them(project, pushed):
    project.protectedbranches.create({"name": "release/*", "push_access_level": 30, "allow_force_push": True})
    made = project.branches.create({"branch": "release/1", "ref": "v1"})

    assert (made.protected, made.developers_can_push, made.developers_can_merge, made.can_push) == (
        True,
        True,
        False,
        True,
    )
    main = project.branches.get("main")
    assert (main.default, main.protected, main.developers_can_push) == (True, True, False)
    git(pushed, "commit", "--quiet", "--amend", "-m", "feat: another beginning")
    assert git(pushed, "push", "origin", "HEAD:release/1", check=False).returncode == 1
    git(pushed, "push", "--force", "origin", "HEAD:release/1")
    refused = git(pushed, "push", "--force", "origin", "HEAD:main", check=False)
    assert "You are not allowed to force push code to a protected branch on this project." in refused.stderr
    project.protectedbranches.delete("main")
    git(pushed, "push", "--force", "origin", "HEAD:main")
    assert git(pushed, "push", "origin", ":release/1", check=False).returncode == 1
    made.delete()
    with pytest.raises(gitlab.exceptions.GitlabDeleteError) as refused:
        project.branches.delete("main")
    assert refused.value.error_message == "The default branch of a project cannot be deleted."
    assert [branch.name for branch in project.branches.list(get_all=True)] == ["main"]


def test_releases_are_created_with_python_gitlab(project, pushed):
    made = project.releases.create({"tag_name": "v2", "ref": "main", "name": "Two", "description": "Notes"})
    link = made.links.create({"name": "binary", "url": "https://files.example.org/shop", "link_type": "package"})
    link.name = "program"
    link.save()
    made.description = "Better"
    made.save()

    assert project.tags.get("v2").release == {"tag_name": "v2", "description": "Better"}
    assert [one["name"] for one in project.releases.get("v2").assets["links"]] == ["program"]
    with pytest.raises(gitlab.exceptions.GitlabCreateError) as twice:
        project.releases.create({"tag_name": "v2"})
    assert (twice.value.response_code, twice.value.error_message) == (409, "Release already exists")
    project.releases.delete("v2")
    project.releases.create({"tag_name": "v1"})
    project.tags.delete("v1")
    assert (project.releases.list(), [tag.name for tag in project.tags.list()]) == ([], ["v2"])


@pytest.mark.nightly
def test_gitbeaker_reads_and_changes_a_repository(service, project, pushed, tmp_path):
    (tmp_path / "app.js").write_text(SCRIPT)
    modules = npm.installed(f"gitbeaker-{GITBEAKER}", f"@gitbeaker/rest@{GITBEAKER}")
    command = ["node", tmp_path / "app.js", service.url, TOKEN, str(project.id)]

    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=os.environ | {"NODE_PATH": str(modules)}
    )

    assert (done.stdout, done.stderr) == ("done 34\n", "")


@pytest.mark.nightly
def test_semantic_release_creates_releases(service, project, pushed):
    modules = npm.installed("semantic-release-24", *SEMANTIC_RELEASE)
    git(pushed, "tag", "--delete", "v1")
    git(pushed, "push", "--quiet", "origin", ":v1")
    release = {"branches": ["main"], "plugins": [f"@semantic-release/{name}" for name in PLUGINS]}
    (pushed / "package.json").write_text(json.dumps({"name": "shop", "version": "0.0.0", "release": release}))
    (pushed / "node_modules").symlink_to(modules)
    removed = ("CI", "GITLAB", "GITHUB", "GIT_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(removed)} | AUTHOR
    environment |= {"GL_URL": service.url, "GL_TOKEN": TOKEN}

    def run():
        command = [modules / ".bin" / "semantic-release", "--no-ci"]
        return subprocess.run(command, cwd=pushed, env=environment, check=False, capture_output=True, text=True)

    first = run()
    git(pushed, "commit", "--quiet", "--allow-empty", "-m", "fix: the till closes")
    git(pushed, "push", "--quiet", "origin", "main")
    second = run()

    assert (first.returncode, second.returncode) == (0, 0), first.stdout[-3000:] + second.stdout[-3000:]
    notes = {one.tag_name: one.description for one in project.releases.list()}
    assert notes.keys() == {"v1.0.0", "v1.0.1"}
    assert "the shop opens" in notes["v1.0.0"]
    assert "the till closes" in notes["v1.0.1"]
