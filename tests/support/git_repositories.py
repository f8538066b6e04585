"""Git repositories that projects have, as their bundles in the storage."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from project_service.domain.projects import Project
from project_service.domain.repositories import models
from project_service.domain.repositories.models import Repository
from project_service.kit.db.session import db
from project_service.kit.storage import storage


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
    bundle = make_bundle(folder, *tags, files=files)
    name = f"projects/{project.id}/project-{len(tags)}.bundle"
    with storage().write(name) as file:
        file.write(bundle)
    kept = Repository(
        project_id=project.id, kind=models.CODE, version=str(len(tags)), storage_name=name, size=len(bundle)
    )
    db.session.add(kept)
    db.session.get_one(Project, project.id).default_branch = "main"
    db.session.commit()
    return kept
