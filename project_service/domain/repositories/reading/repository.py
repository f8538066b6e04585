"""A repository that is open for reading: revisions, commits, trees and blobs."""

from __future__ import annotations

import functools
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, COMMIT_ID, REF, TAGS
from project_service.domain.repositories.git import opened
from project_service.domain.repositories.models import CODE
from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.objects import (
    TREE_MODE,
    Commit,
    Entry,
    TagObject,
    parse_commit,
    parse_tag,
    parse_tree,
)
from project_service.domain.repositories.views import repository_view

if TYPE_CHECKING:
    import pygit2

HEAD = "HEAD"
ABBREVIATION = re.compile(r"[0-9a-f]{7,40}")
STEPS = re.compile(r"(?P<base>.*?)(?P<steps>(?:[~^]\d{0,4})*)", re.DOTALL)
MAX_STEPS = 1000
MAX_TAG_DEPTH = 10  # tags of tags
MAX_HEAD_BYTES = 256 << 10  # longer commits and tags are cut
MAX_TREE_BYTES = 16 << 20
MAX_ENTRIES = 200_000  # of a list
MAX_MEMORY_BYTES = 1 << 20  # larger blobs are read from a process
MAX_PATH_DEPTH = 200
COMMIT, TREE, BLOB, TAG = "commit", "tree", "blob", "tag"
_TYPES = {1: COMMIT, 2: TREE, 3: BLOB, 4: TAG}


class CodeRepository:
    """A bare repository on this machine. ``default_branch`` is what the revision HEAD means."""

    def __init__(self, folder: Path, default_branch: str | None) -> None:
        self.folder = folder
        self.default_branch = default_branch

    @functools.cached_property
    def git(self) -> pygit2.Repository:
        """The repository, opened by pygit2."""
        return opened(self.folder)

    def resolve(self, revision: str) -> Commit | None:
        """The commit of a revision: an id, abbreviated or not, a tag, a branch, a full ref, HEAD; with ``~2`` or ``^``.

        A tag precedes a branch of the same name, as in git.
        """
        match = STEPS.fullmatch(revision)
        if match is None:
            return None
        object_id = self._named(match["base"])
        commit = None if object_id is None else self.commit_of(object_id)
        return _walk(self, commit, match["steps"])

    def commit_of(self, object_id: str) -> Commit | None:
        """The commit with an id, or the one that a tag with this id points to."""
        for _ in range(MAX_TAG_DEPTH):
            kind = self.type_of(object_id)
            if kind == COMMIT:
                return parse_commit(object_id, self._head_of(object_id, COMMIT))
            if kind != TAG:
                return None
            object_id = parse_tag(self._head_of(object_id, TAG)).target
        return None

    def tag_object(self, object_id: str) -> TagObject | None:
        """The annotated tag with an id; ``None`` for other objects."""
        return parse_tag(self._head_of(object_id, TAG)) if self.type_of(object_id) == TAG else None

    def ref(self, name: str) -> str | None:
        """The object id that a full ref name points to."""
        if not REF.fullmatch(name):
            return None
        found = self.git.references.get(name)
        return None if found is None else str(found.resolve().target)

    def type_of(self, object_id: str) -> str | None:
        """The type of an object, ``None`` if there is none with this id."""
        if not COMMIT_ID.fullmatch(object_id):
            return None
        try:
            return _TYPES.get(int(self.git.odb.read_header(object_id)[0]))
        except KeyError:
            return None

    def size_of(self, object_id: str) -> int:
        """The size of an object in bytes."""
        return int(self.git.odb.read_header(object_id)[1])

    def tree(self, tree_id: str, folder: bytes = b"") -> Iterator[Entry]:
        """Generate the entries of a tree in the order of git; ``folder`` is its path."""
        if self.type_of(tree_id) != TREE:
            return
        if self.size_of(tree_id) > MAX_TREE_BYTES:
            raise processes.ReadingTooLarge("tree")
        yield from parse_tree(self.git.odb.read(tree_id)[1], folder + b"/" if folder else b"")

    def entry(self, commit: Commit, path: str) -> Entry | None:
        """What is at a path in a commit; the empty path is the root folder."""
        found = Entry(TREE_MODE, b"", commit.tree_id)
        parts = path.encode(errors="surrogateescape").split(b"/") if path else []
        if len(parts) > MAX_PATH_DEPTH:
            return None
        for part in parts:
            if found.type != TREE:
                return None
            inside = self.tree(found.id, found.path)
            match = next((entry for entry in inside if entry.path.rpartition(b"/")[2] == part), None)
            if match is None:
                return None
            found = match
        return found

    def content(self, blob_id: str, max_bytes: int) -> bytes | None:
        """The content of a blob; ``None`` if it is larger than allowed."""
        if self.size_of(blob_id) > max_bytes:
            return None
        content: bytes = self.git.odb.read(blob_id)[1]
        return content

    def chunks(self, blob_id: str, seconds: float, slots: processes.Slots) -> Generator[bytes]:
        """The content of a blob of any size, piece by piece."""
        if self.size_of(blob_id) <= MAX_MEMORY_BYTES:
            yield self.git.odb.read(blob_id)[1]
            return
        arguments = ("cat-file", BLOB, blob_id)
        with processes.output_of(self.folder, *arguments, seconds=seconds, slots=slots) as output:
            while chunk := output.read(processes.CHUNK_BYTES):
                yield chunk

    def _head_of(self, object_id: str, kind: str) -> bytes:
        """The beginning of a commit or tag, which may be of any size."""
        if self.size_of(object_id) <= MAX_HEAD_BYTES:
            content: bytes = self.git.odb.read(object_id)[1]
            return content
        with processes.output_of(self.folder, "cat-file", kind, object_id) as output:
            return output.read(MAX_HEAD_BYTES)

    def _named(self, name: str) -> str | None:
        if COMMIT_ID.fullmatch(name):
            return name
        if name == HEAD:
            return None if self.default_branch is None else self.ref(BRANCHES + self.default_branch)
        if name.startswith((BRANCHES, TAGS)):
            return self.ref(name)
        found = self.ref(TAGS + name) or self.ref(BRANCHES + name)
        if found is None and ABBREVIATION.fullmatch(name):
            try:
                return str(self.git.expand_id(name))
            except (KeyError, ValueError):  # there is none, or there are several
                return None
        return found


def _walk(repository: CodeRepository, commit: Commit | None, steps: str) -> Commit | None:
    taken = 0
    for kind, digits in re.findall(r"([~^])(\d*)", steps):
        number = int(digits or 1)
        parents = [number] if kind == "^" else [1] * number
        taken += len(parents)
        for parent in parents:
            if commit is None or taken > MAX_STEPS or not 0 < parent <= len(commit.parent_ids):
                return None
            commit = repository.commit_of(commit.parent_ids[parent - 1])
    return commit


@contextmanager
def code_of(project: Project) -> Iterator[CodeRepository | None]:
    """Open the repository of a project for reading; ``None`` if it has none. It is closed when the block ends."""
    with repository_view(project, CODE) as folder:
        yield None if folder is None else CodeRepository(folder, project.default_branch)
