"""Git repositories that projects have, as their bundles in the storage."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from project_service.domain.projects import Project
from project_service.domain.repositories import bundles, models, restoring
from project_service.domain.repositories.models import Repository
from project_service.domain.repositories.views import repository_view
from project_service.kit.db.session import db


def make_bundle(
    folder: Path, *tags: str, files: Mapping[str, bytes] | None = None, object_format: str = "sha1"
) -> bytes:
    """A bundle with one commit of some files, the branch ``main`` and these tags."""
    folder.mkdir(exist_ok=True)
    _git(folder, "init", "--quiet", "--bare", f"--object-format={object_format}", ".")
    for path, content in (files or {}).items():
        number = _git(folder, "hash-object", "-w", "--stdin", said=content)
        _git(folder, "update-index", "--add", "--cacheinfo", f"100644,{number.decode().strip()},{path}")
    tree = _git(folder, "write-tree").decode().strip()
    commit = _git(folder, "commit-tree", tree, "-m", "first").decode().strip()
    _git(folder, "branch", "main", commit)
    _git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    for tag in tags:
        _git(folder, "tag", tag, commit)
    _git(folder, "bundle", "create", "--quiet", "all.bundle", "HEAD", "--all")
    return (folder / "all.bundle").read_bytes()


def bundle_of(folder: Path, *, without: str = "") -> bytes:
    """A bundle of a repository as it is, also when git would make none of it: objects are odd, or one is left out."""
    reached = _git(folder, "rev-list", "--objects", "--no-object-names", "--all").decode().split()
    objects = "".join(f"{number}\n" for number in reached if number != without).encode()
    refs = _git(folder, "for-each-ref", "--format=%(objectname) %(refname)")
    return b"# v2 git bundle\n" + refs + b"\n" + _git(folder, "pack-objects", "--stdout", "--quiet", said=objects)


def _git(folder: Path, *words: str, said: bytes | None = None) -> bytes:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, input=said, check=True, capture_output=True)
    return done.stdout


def keep_repository(project: Project, folder: Path, *tags: str, files: Mapping[str, bytes] | None = None) -> Repository:
    """Give a project a repository with these tags and files, and its default branch, as an import does."""
    return keep_bundle(project, make_bundle(folder, *tags, files=files))


def keep_bundle(project: Project, content: bytes) -> Repository:
    """Give a project the repository of a bundle, whose default branch is main."""
    with tempfile.TemporaryDirectory() as name:
        bundle, bare = Path(name) / "all.bundle", Path(name) / "bare.git"
        bundle.write_bytes(content)
        bundles.unbundle(bundle, bare)
        restoring.add_repository(project.id, models.CODE, restoring.store_content(project.id, bare, bundle))
    db.session.get_one(Project, project.id).default_branch = "main"
    db.session.commit()
    kept = models.repository_of(project)
    assert kept is not None
    return kept


@contextmanager
def repository_folder(project: Project, kind: str = models.CODE) -> Iterator[Path]:
    """The bare repository of a project that has one."""
    with repository_view(project, kind) as folder:
        assert folder is not None
        yield folder


# five commits: two branches, a merge, a renamed file, a symbolic link that becomes a file, a submodule, odd names
HISTORY = r"""
export GIT_AUTHOR_DATE='2021-02-03T04:05:06+01:00' GIT_COMMITTER_DATE='2021-02-03T04:05:06+01:00'
git init --quiet --initial-branch=main .
printf '# Shop\n\n![logo](img/logo.png) [guide](docs/guide.md) <script>alert(1)</script>\n' >README.md
mkdir -p docs img 'a b'
printf 'def f(x):\n    return x + 1\n' >app.py
echo guide >docs/guide.md
printf '\211PNG\r\n\032\n\000' >img/logo.png
echo '<html><script>alert(1)</script>' >page.html
echo '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>' >x.svg
echo odd >'a b/c?d#e%.txt'
ln -s ../../etc/passwd link
git add --all
git commit --quiet -m 'First commit

Its body'
git tag v1.0
export GIT_AUTHOR_DATE='2021-02-04T04:05:06+01:00' GIT_COMMITTER_DATE='2021-02-04T04:05:06+01:00'
printf 'bad\377' >"$(printf 'bad\377.txt')"
git add --all
git commit --quiet -m 'Second: ünï'
git tag -a v1.1 -m 'Release 1.1'
git checkout --quiet -b feature/x v1.0
echo more >>app.py
git mv docs/guide.md docs/manual.md
chmod +x app.py
git commit --quiet -a -m 'Feature change'
git checkout --quiet main
export GIT_AUTHOR_DATE='2021-02-05T04:05:06+01:00' GIT_COMMITTER_DATE='2021-02-05T04:05:06+01:00'
git merge --quiet --no-ff feature/x -m 'Merge feature'
rm link
echo file >link
git add link
git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),sub"
export GIT_AUTHOR_DATE='2021-02-06T04:05:06+01:00' GIT_COMMITTER_DATE='2021-02-06T04:05:06+01:00'
git commit --quiet -m 'Change a type and add a submodule'
git checkout --quiet -b 'other'
export GIT_AUTHOR_DATE='2021-02-07T04:05:06+01:00' GIT_COMMITTER_DATE='2021-02-07T04:05:06+01:00'
git commit --quiet --allow-empty -m 'Not merged'
git checkout --quiet main
git bundle create --quiet all.bundle HEAD --all
"""


def make_history(folder: Path) -> bytes:
    """A bundle of ``HISTORY``; equal calls have equal commits."""
    folder.mkdir(exist_ok=True)
    person = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in IDENTITY.items()}
    environment = person | {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["/bin/sh", "-ec", HISTORY], cwd=folder, env=environment, check=True, capture_output=True)
    return (folder / "all.bundle").read_bytes()


IDENTITY = {"NAME": "Ada", "EMAIL": "ada@example.org"}
