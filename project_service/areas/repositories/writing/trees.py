"""The tree of a new commit: actions on the files of a commit, checked one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from project_service.domain.repositories import git
from project_service.domain.repositories.reading.objects import Commit, is_addressable
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.kit.http.errors import BadRequest

FILE_MODE, EXECUTABLE_MODE = 0o100644, 0o100755
EXISTS = "A file with this name already exists"
MISSING = "A file with this name doesn't exist"
IS_FOLDER = "A directory with this name already exists"
TRAVERSAL = "Path cannot include directory traversal"


@dataclass(frozen=True, slots=True)
class FileState:
    """The mode and the blob of a file."""

    mode: int
    blob: str


class ChangedTree:
    """The files of a commit with the changes of actions; ``folder`` is a repository that takes new objects."""

    def __init__(self, code: CodeRepository, start: Commit | None, folder: Path) -> None:
        self._code, self._start, self._folder = code, start, folder
        self._changes: dict[str, FileState | None] = {}

    def apply(self, action: Mapping[str, Any]) -> None:
        """Apply one action, whose parameters were checked; raise ``BadRequest`` if it does not fit the tree."""
        path, kind = checked_path(action["file_path"]), action["action"]
        if kind == "create":
            self._refuse_existing(path)
            self._put(path, FILE_MODE, action)
        elif kind == "update":
            self._put(path, self._existing(path).mode, action)
        elif kind == "chmod":
            self._put(path, FILE_MODE, action, blob=self._existing(path).blob)
        elif kind == "delete":
            self._existing(path)
            self._changes[path] = None
        else:
            self._move(checked_path(action["previous_path"]), path, action)

    def write(self) -> str:
        """Write the tree; return its id."""
        if self._start is not None:
            _write(self._folder, b"", "read-tree", self._start.tree_id)
        lines = [
            f"{state.mode:o} {state.blob}\t{path}\0" if state else f"0 {'0' * 40}\t{path}\0"
            for path, state in self._changes.items()
        ]
        _write(self._folder, "".join(lines).encode(errors="surrogateescape"), "update-index", "-z", "--index-info")
        return _write(self._folder, b"", "write-tree")

    def _move(self, source: str, path: str, action: Mapping[str, Any]) -> None:
        moved = self._existing(source)
        self._refuse_existing(path)
        self._changes[source] = None
        blob = moved.blob if action.get("content") is None else None
        self._put(path, moved.mode, action, blob=blob)

    def _put(self, path: str, mode: int, action: Mapping[str, Any], *, blob: str | None = None) -> None:
        if action.get("execute_filemode") is not None:
            mode = EXECUTABLE_MODE if action["execute_filemode"] else FILE_MODE
        if blob is None:
            blob = _write(self._folder, action.get("bytes") or b"", "hash-object", "-w", "--stdin")
        self._changes[path] = FileState(mode, blob)

    def _existing(self, path: str) -> FileState:
        state = self._state(path)
        if state is None:
            raise BadRequest(MISSING)
        return state

    def _state(self, path: str) -> FileState | None:
        if path in self._changes:
            return self._changes[path]
        entry = None if self._start is None else self._code.entry(self._start, path)
        return FileState(entry.mode, entry.id) if entry is not None and entry.type == "blob" else None

    def _refuse_existing(self, path: str) -> None:
        if self._state(path) is not None:
            raise BadRequest(EXISTS)
        is_new_folder = any(state and other.startswith(f"{path}/") for other, state in self._changes.items())
        entry = None if self._start is None or path in self._changes else self._code.entry(self._start, path)
        if is_new_folder or entry is not None:
            raise BadRequest(IS_FOLDER)
        parts = path.split("/")
        for end in range(1, len(parts)):
            if self._state("/".join(parts[:end])) is not None:
                raise BadRequest(EXISTS)


def checked_path(path: str) -> str:
    """The path of a file as git stores it; raise ``BadRequest`` for one that leads elsewhere."""
    path = path.lstrip("/")
    if not path:
        raise BadRequest("You must provide a file path")
    if any(part in (".", "..") for part in path.split("/")):
        raise BadRequest(TRAVERSAL)
    if not is_addressable(path) or any(part.lower() == ".git" for part in path.split("/")) or "\0" in path:
        raise BadRequest(f"invalid path: '{path}'")
    return path


def _write(folder: Path, data: bytes, *arguments: str) -> str:
    done = git.run(*arguments, folder=folder, data=data)
    if done.returncode:
        raise BadRequest("Unknown error performing git operation")
    return done.stdout.decode().strip()
