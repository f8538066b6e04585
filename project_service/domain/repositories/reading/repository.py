"""A repository that is open for reading: revisions, commits, trees and blobs."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, COMMIT_ID, REF, TAGS
from project_service.domain.repositories.models import CODE
from project_service.domain.repositories.reading import budget, processes
from project_service.domain.repositories.reading.object_reader import ObjectReader
from project_service.domain.repositories.reading.objects import (
    TREE_MODE,
    Commit,
    Entry,
    TagObject,
    is_addressable,
    parse_commit,
    parse_entry,
    parse_tag,
)
from project_service.domain.repositories.reading.packed_refs import PackedRefs
from project_service.domain.repositories.views import repository_view

HEAD = "HEAD"
ABBREVIATION = re.compile(r"[0-9a-f]{7,40}")
STEPS = re.compile(r"(?P<base>.*?)(?P<steps>(?:[~^]\d{0,4})*)", re.DOTALL)
MAX_STEPS = 1000
MAX_TAG_DEPTH = 10  # tags of tags
MAX_HEAD_BYTES = 256 << 10  # longer commits and tags are cut
MAX_MEMORY_BYTES = 1 << 20  # larger blobs are streamed
MAX_PATH_DEPTH = 200
COMMIT, TREE, BLOB, TAG = "commit", "tree", "blob", "tag"


class CodeRepository:
    """A bare repository on this machine. ``default_branch`` is what the revision HEAD means.

    All objects are read by git in processes of their own: whatever they are, they cost this process no more than the
    bytes that it wants to have, and git can be killed.
    """

    def __init__(self, folder: Path, default_branch: str | None) -> None:
        self.folder = folder
        self.default_branch = default_branch
        self._objects = ObjectReader(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process that reads objects; a further reading starts another one."""
        self._objects.close()

    @functools.cached_property
    def refs(self) -> PackedRefs:
        """All refs."""
        return PackedRefs(self.folder / "packed-refs")

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
                return parse_commit(object_id, self.start_of(object_id, MAX_HEAD_BYTES))
            if kind != TAG:
                return None
            object_id = parse_tag(self.start_of(object_id, MAX_HEAD_BYTES)).target
        return None

    def tag_object(self, object_id: str) -> TagObject | None:
        """The annotated tag with an id; ``None`` for other objects."""
        return parse_tag(self.start_of(object_id, MAX_HEAD_BYTES)) if self.type_of(object_id) == TAG else None

    def ref(self, name: str) -> str | None:
        """The object id that a full ref name points to."""
        return self.refs.target(name.encode(errors="surrogateescape")) if REF.fullmatch(name) else None

    def type_of(self, object_id: str) -> str | None:
        """The type of an object, ``None`` if there is none with this id."""
        info = self._objects.info(object_id) if COMMIT_ID.fullmatch(object_id) else None
        return None if info is None else info.type

    def size_of(self, object_id: str) -> int:
        """The size of an object in bytes."""
        info = self._objects.info(object_id)
        if info is None:
            raise budget.ReadingFailed("size")
        return info.size

    def entry(self, commit: Commit, path: str) -> Entry | None:
        """What is at a path in a commit; the empty path is the root folder."""
        if not path:
            return Entry(TREE_MODE, b"", commit.tree_id)
        if not is_addressable(path) or "\0" in path or path.count("/") >= MAX_PATH_DEPTH:
            return None
        raw = path.encode(errors="surrogateescape")
        arguments = ("ls-tree", "-z", "--full-tree", commit.id, "--", b":(literal)" + raw)
        line, _, _ = processes.read(self.folder, *arguments).partition(b"\0")
        return parse_entry(line) if line else None

    def content(self, blob_id: str, max_bytes: int) -> bytes | None:
        """The content of a blob; ``None`` if it is larger than allowed."""
        if self.size_of(blob_id) > max_bytes:
            return None
        return self._objects.content(blob_id)

    def start_of(self, object_id: str, max_bytes: int) -> bytes:
        """The beginning of an object, which may be of any size."""
        if self.size_of(object_id) <= max_bytes:
            return self._objects.content(object_id)
        kind = self.type_of(object_id) or BLOB
        with processes.output_of(self.folder, "cat-file", kind, object_id) as output:
            start = output.read(max_bytes)
        budget.current().spend(len(start))
        return start

    def chunks(self, blob_id: str, seconds: float, slots: processes.CallerSlots) -> Iterator[bytes]:
        """The content of a blob of any size, piece by piece."""
        if self.size_of(blob_id) <= MAX_MEMORY_BYTES:
            return iter([self._objects.content(blob_id)])
        return processes.stream(self.folder, "cat-file", BLOB, blob_id, seconds=seconds, slots=slots)

    def _named(self, name: str) -> str | None:
        if COMMIT_ID.fullmatch(name):
            return name
        if name == HEAD:
            return None if self.default_branch is None else self.ref(BRANCHES + self.default_branch)
        if name.startswith((BRANCHES, TAGS)):
            return self.ref(name)
        commit_id = self.ref(TAGS + name) or self.ref(BRANCHES + name)
        if commit_id is None and ABBREVIATION.fullmatch(name):
            abbreviated = self._objects.info(name)
            return None if abbreviated is None else abbreviated.id
        return commit_id


def _walk(repository: CodeRepository, commit: Commit | None, steps: str) -> Commit | None:
    steps_taken = 0
    for kind, digits in re.findall(r"([~^])(\d*)", steps):
        number = int(digits or 1)
        parents = [number] if kind == "^" else [1] * number
        steps_taken += len(parents)
        for parent in parents:
            if commit is None or steps_taken > MAX_STEPS or not 0 < parent <= len(commit.parent_ids):
                return None
            commit = repository.commit_of(commit.parent_ids[parent - 1])
    return commit


@contextmanager
def code_of(project: Project) -> Iterator[CodeRepository | None]:
    """Open the repository of a project for reading; ``None`` if it has none. It is closed when the block ends."""
    with repository_view(project, CODE) as folder:
        if folder is None:
            yield None
            return
        with CodeRepository(folder, project.default_branch) as code:
            yield code
