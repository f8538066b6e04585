"""Who changed each line of a file last."""

from __future__ import annotations

from dataclasses import dataclass

from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.budget import ReadingFailed, ReadingTooLarge
from project_service.domain.repositories.reading.objects import Commit, cut_message, text_of
from project_service.domain.repositories.reading.repository import CodeRepository

MAX_FILE_BYTES = 1 << 20
BLAME_SECONDS = 10.0
MAX_GROUPS = 20_000
MAX_MESSAGES_LENGTH = 8 << 20  # of all groups together; each group repeats the message of its commit


@dataclass(slots=True)
class BlameGroup:
    """Lines in a row whose last change is the same commit; ``first`` is the number of the first line."""

    commit: Commit
    first: int
    lines: list[str]


def blame(
    repository: CodeRepository, commit: Commit, path: str, lines: tuple[int, int] | None = None
) -> list[BlameGroup]:
    """Blame a file, or a range of its lines; the messages of commits are cut if they are long together.

    Raises:
        ReadingTooLarge: git takes too long, or there are more than ``MAX_GROUPS``.

    """
    limits = ["-L", f"{lines[0]},{lines[1]}"] if lines else []
    output = processes.read(
        repository.folder, "blame", "--porcelain", *limits, commit.id, "--", path, seconds=BLAME_SECONDS
    )
    groups: list[BlameGroup] = []
    commits: dict[str, Commit] = {}
    commit_id, number = "", 0
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            _add(repository, groups, commits, commit_id, number, text_of(line[1:]))
        elif len(parts := line.split(b" ")) in (3, 4) and len(parts[0]) == 40 and parts[1].isdigit():
            commit_id, number = parts[0].decode(), int(parts[2])
        if len(groups) > MAX_GROUPS:
            raise ReadingTooLarge("blame")
    if sum(len(group.commit.message) for group in groups) > MAX_MESSAGES_LENGTH:
        cut = {commit.id: cut_message(commit) for commit in commits.values()}
        groups = [BlameGroup(cut[group.commit.id], group.first, group.lines) for group in groups]
    return groups


def _add(
    repository: CodeRepository,
    groups: list[BlameGroup],
    known: dict[str, Commit],
    commit_id: str,
    number: int,
    text: str,
) -> None:
    if not groups or groups[-1].commit.id != commit_id:
        if commit_id not in known:
            commit = repository.commit_of(commit_id)
            if commit is None:
                raise ReadingFailed("blame")
            known[commit_id] = commit
        groups.append(BlameGroup(known[commit_id], number, []))
    groups[-1].lines.append(text)
