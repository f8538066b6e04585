"""Git repositories that projects have, as their bundles in the storage."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from project_service.core import repositories
from project_service.core.projects import Project
from project_service.core.repositories import Repository
from project_service.kit.database import db
from project_service.kit.storage import storage


def make_bundle(folder: Path, *tags: str, files: Mapping[str, bytes] | None = None) -> bytes:
    """A bundle with one commit of some files, the branch ``main`` and these tags."""

    def git(*arguments: str, said: bytes | None = None) -> str:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        done = subprocess.run(["git", *identity, *arguments], cwd=folder, input=said, check=True, capture_output=True)
        return done.stdout.decode().strip()

    folder.mkdir(exist_ok=True)
    git("init", "--quiet", "--bare", ".")
    for path, content in (files or {}).items():
        number = git("hash-object", "-w", "--stdin", said=content)
        git("update-index", "--add", "--cacheinfo", f"100644,{number},{path}")
    commit = git("commit-tree", git("write-tree"), "-m", "first")
    git("branch", "main", commit)
    git("symbolic-ref", "HEAD", "refs/heads/main")
    for tag in tags:
        git("tag", tag, commit)
    git("bundle", "create", "--quiet", "all.bundle", "HEAD", "--all")
    return (folder / "all.bundle").read_bytes()


def bundle_of(folder: Path, *, without: str = "") -> bytes:
    """A bundle of a repository as it is, also when git would make none of it: objects are odd, or one is left out."""

    def git(*arguments: str, said: bytes | None = None) -> bytes:
        return subprocess.run(["git", *arguments], cwd=folder, input=said, check=True, capture_output=True).stdout

    reached = git("rev-list", "--objects", "--no-object-names", "--all").decode().split()
    objects = "".join(f"{number}\n" for number in reached if number != without).encode()
    refs = git("for-each-ref", "--format=%(objectname) %(refname)")
    return b"# v2 git bundle\n" + refs + b"\n" + git("pack-objects", "--stdout", "--quiet", said=objects)


def keep_repository(project: Project, folder: Path, *tags: str, files: Mapping[str, bytes] | None = None) -> Repository:
    """Give a project a repository with these tags and files."""
    bundle = make_bundle(folder, *tags, files=files)
    name = f"projects/{project.id}/project-{len(tags)}.bundle"
    with storage().write(name) as file:
        file.write(bundle)
    kept = Repository(
        project_id=project.id, kind=repositories.CODE, version=str(len(tags)), storage_name=name, size=len(bundle)
    )
    db.session.add(kept)
    db.session.commit()
    return kept
