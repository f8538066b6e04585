"""What git has to say about the changes of a push: types of objects, ancestry, numbers and titles of commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from project_service.domain.repositories import git
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.refs import ZERO, RefChange

MAX_SECONDS = 600
MAX_TITLE_LENGTH = 70
MAX_TITLE_BYTES = 64 << 10  # of a message, which may be of any size
MAX_SINGLE_CHECKS = 100
COMMIT, TAG = "commit", "tag"


class FactMissing(Exception):
    """A question that can only be answered outside the transaction."""


@dataclass(frozen=True, slots=True)
class CommitFigures:
    """The number of commits of a change, and the title of the newest."""

    count: int = 0
    title: str | None = None


@dataclass
class PushFacts:
    """Answers of git about a repository with the objects of a push; asked once, and not at all when ``sealed``."""

    folder: Path
    types: dict[str, str] = field(default_factory=dict)
    peeled: dict[str, str] = field(default_factory=dict)
    figures: dict[str, CommitFigures] = field(default_factory=dict)
    commits: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by ref, for web hooks
    messages: list[tuple[str, str]] = field(default_factory=list)  # ids and messages of commits that may close issues
    tag_messages: dict[str, str] = field(default_factory=dict)
    sealed: bool = False
    _forward: dict[tuple[str, str], bool] = field(default_factory=dict)

    def is_fast_forward(self, change: RefChange) -> bool:
        """Whether the new commit contains the old one; raises ``FactMissing`` when sealed."""
        key = (change.old, change.new)
        if key not in self._forward:
            if self.sealed:
                raise FactMissing
            done = self._run("merge-base", "--is-ancestor", *key)
            self._forward[key] = done == (0, b"")
        return self._forward[key]

    def read_types(self, changes: Sequence[RefChange]) -> None:
        """Find the types of all new objects, and the targets of annotated tags."""
        ids = sorted({change.new for change in changes if not change.deletes})
        lines = "".join(f"{object_id}\n{object_id}^{{}}\n" for object_id in ids)
        done = git.run(
            "cat-file",
            "--batch-check=%(objectname) %(objecttype)",
            folder=self.folder,
            data=lines.encode(),
            max_seconds=MAX_SECONDS,
        )
        answers = [line.split() for line in done.stdout.decode(errors="replace").splitlines()]
        for object_id, own, inner in zip(ids, answers[::2], answers[1::2], strict=False):
            if len(own) == len(inner) == 2 and own[1] != "missing" and inner[1] != "missing":
                self.types[object_id] = own[1]
                self.types[inner[0]] = inner[1]
                if own[1] == TAG:
                    self.peeled[object_id] = inner[0]
                    self._read_tag_message(object_id)

    def tag_message(self, object_id: str) -> str | None:
        """The message of an annotated tag."""
        return self.tag_messages.get(object_id)

    def _read_tag_message(self, object_id: str) -> None:
        if len(self.tag_messages) < MAX_SINGLE_CHECKS:
            status, out = self._run("cat-file", "tag", object_id)
            if status == 0 and len(out) <= MAX_TITLE_BYTES:
                self.tag_messages[object_id] = (
                    out.decode(errors="replace").replace("\0", "").partition("\n\n")[2].rstrip("\n")
                )

    def missing(self, changes: Sequence[RefChange]) -> set[str]:
        """The names of refs whose new objects are not complete."""
        created = [change for change in changes if not change.deletes]
        if not created or self._is_connected([change.new for change in created]):
            return set()
        if len(created) > MAX_SINGLE_CHECKS:
            return {change.name for change in created}
        return {change.name for change in created if not self._is_connected([change.new])}

    def read_figures(self, change: RefChange, default_tip: str | None, *, is_first_default: bool) -> None:
        """Find the number of commits of a change and the title of the newest (repositories reference, section 3)."""
        if change.deletes:
            self.figures[change.name] = CommitFigures()
            return
        tip = self.peeled.get(change.new, change.new)
        if self.types.get(tip) != COMMIT:
            self.figures[change.name] = CommitFigures()
            return
        if change.is_tag:
            self.figures[change.name] = CommitFigures(1, self._title(tip))
            return
        base = change.old if change.old != ZERO else None if is_first_default else default_tip
        count = self._count(tip, base)
        self.figures[change.name] = CommitFigures(count, self._title(tip) if count else None)

    def _count(self, tip: str, base: str | None) -> int:
        status, out = self._run("rev-list", "--count", tip, *([f"^{base}"] if base else []), "--")
        return int(out) if status == 0 else 0

    def _title(self, commit: str) -> str | None:
        arguments = ("log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%B", commit, "--")
        size = git.size_on_disk(self.folder)
        with git.started(*arguments, folder=self.folder, size=size, max_seconds=MAX_SECONDS) as process:
            out = process.stdout.read(MAX_TITLE_BYTES) if process.stdout is not None else b""
        title = out.decode(errors="replace").replace("\0", "").strip().partition("\n")[0].strip()
        return title if len(title) <= MAX_TITLE_LENGTH else title[: MAX_TITLE_LENGTH - 3] + "..."

    def _is_connected(self, ids: Sequence[str]) -> bool:
        lines = "".join(f"{object_id}\n" for object_id in dict.fromkeys(ids))
        done = git.run(
            "rev-list",
            "--objects",
            "--quiet",
            "--stdin",
            folder=self.folder,
            data=lines.encode(),
            max_seconds=MAX_SECONDS,
        )
        return done.returncode == 0

    def _run(self, *arguments: str) -> tuple[int, bytes]:
        done = git.run(*arguments, folder=self.folder, max_seconds=MAX_SECONDS)
        return done.returncode, done.stdout


def is_branch_without_commit(change: RefChange, types: dict[str, str]) -> bool:
    """Whether a branch would point to something else than a commit."""
    return change.name.startswith(BRANCHES) and not change.deletes and types.get(change.new) != COMMIT
