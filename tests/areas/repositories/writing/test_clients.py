"""Files and commits that python-gitlab writes, and that git clones."""

from __future__ import annotations

import subprocess

import gitlab

from tests.support.sample_data import MAX, make_token


def test_git_clones_what_a_client_wrote(address, git_of, project, people, tmp_path):
    url = f"http://{address}"
    path, client = project.full_path, gitlab.Gitlab(url, private_token=make_token(people[MAX], "api"))
    remote = client.projects.get(project.id)
    about = {"branch": "main", "commit_message": "Add it"}

    file = remote.files.create(about | {"file_path": "a b.txt", "content": "first"})
    file.content = "second"
    file.save(branch="main", commit_message="Change it")
    remote.commits.create(about | {"actions": [{"action": "create", "file_path": "d/e", "content": "1"}]})
    git = git_of(people[MAX])
    git.run("clone", "--quiet", git.url(path), str(tmp_path / "copy"))

    copy = tmp_path / "copy"
    assert ((copy / "a b.txt").read_text(), (copy / "d/e").read_text()) == ("second", "1")
    assert subprocess.run(["git", "fsck", "--strict"], cwd=copy, capture_output=True, check=False).returncode == 0
