"""Objects of a repository, read by one git process that answers many questions."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import NamedTuple

from project_service.domain.repositories.reading import budget, processes
from project_service.domain.repositories.reading.budget import ReadingFailed

MAX_LINE_BYTES = 8 << 10


class ObjectInfo(NamedTuple):
    """The id of an object, its type (``commit``, ``tree``, ``blob`` or ``tag``) and its size in bytes."""

    id: str
    type: str
    size: int


class ObjectReader:
    """Types, sizes and contents of objects, from a ``git cat-file`` process that is started when it is needed.

    A separate process, not a library: it can be killed at the deadline, and its memory is limited, whatever the objects
    of a repository make of it. The process ends with ``close``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._process: processes.GitProcess | None = None

    def close(self) -> None:
        """End the process; the next question starts another one."""
        self._process = None
        self._stack.close()

    def info(self, name: str) -> ObjectInfo | None:
        """What the object with an id, or an unambiguous beginning of one, is; ``None`` if there is none."""
        return self._parsed(self._ask(f"info {name}"))

    def content(self, object_id: str) -> bytes:
        """The content of an object that exists; callers know that its size is acceptable."""
        info = self._parsed(self._ask(f"contents {object_id}"))
        if info is None:
            raise ReadingFailed("cat-file")
        budget.current().spend(info.size)
        content = self._process.output.read(info.size + 1) if self._process is not None else b""
        if len(content) <= info.size:
            raise self._failure()
        return content[:-1]

    def _ask(self, question: str) -> bytes:
        if self._process is None:
            seconds = budget.current().seconds(budget.REQUEST_SECONDS)
            arguments = ("cat-file", "--batch-command")
            process = processes.started(self._folder, arguments, seconds, stdin=subprocess.PIPE)
            self._process = self._stack.enter_context(process)
        self._process.ask(question.encode())
        return self._process.output.readline(MAX_LINE_BYTES)

    def _parsed(self, line: bytes) -> ObjectInfo | None:
        if not line.endswith(b"\n"):
            raise self._failure()
        parts = line.decode(errors="replace").split()
        if len(parts) != 3:  # missing or ambiguous
            return None
        return ObjectInfo(parts[0], parts[1], int(parts[2]))

    def _failure(self) -> ReadingFailed:
        """End the process, and return why it did not answer."""
        try:
            if self._process is not None:
                self._process.check_end()
        except ReadingFailed as error:
            return error
        finally:
            self.close()
        return ReadingFailed("cat-file")
