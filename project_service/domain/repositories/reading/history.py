"""Histories of commits: lists, counts, last commits of paths, statistics and contributors."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader

from project_service.domain.repositories.bundles import BRANCHES, TAGS
from project_service.domain.repositories.reading import budget, processes
from project_service.domain.repositories.reading.budget import ReadingFailed, ReadingTooLarge
from project_service.domain.repositories.reading.objects import Commit, Entry, cut_message, text_of
from project_service.domain.repositories.reading.repository import CodeRepository

EMPTY_TREE = hashlib.sha1(b"tree 0\0", usedforsecurity=False).hexdigest()  # git knows it without a repository
LAST_COMMITS_SECONDS = 0.3
CHUNK_BYTES = 8 << 10
MAX_CONTAINING_REFS = 100
MAX_SEARCH_LENGTH = 255  # characters of a name or of a text in messages
MAX_MESSAGES_LENGTH = 8 << 20  # of the commits of a list
_ADDITIONS, _DELETIONS = re.compile(rb"(?<!\d)(\d{1,18}) insertion"), re.compile(rb"(?<!\d)(\d{1,18}) deletion")


@dataclass(frozen=True, slots=True)
class CommitStats:
    """The numbers of changed lines."""

    additions: int
    deletions: int

    @property
    def total(self) -> int:
        """Additions and deletions."""
        return self.additions + self.deletions


@dataclass(frozen=True, slots=True)
class Contributor:
    """An author and the number of their commits, merges left out."""

    name: str
    email: str
    commits: int


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Which commits of a history: ``revisions`` are ids, those with ``^`` before them excluded.

    ``author`` and ``message`` are searched in any case and not as regular expressions, some of which take git hours and
    gigabytes; ``path`` is that of a file or folder.
    """

    revisions: Sequence[str] = ()
    path: str = ""
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    author: str = ""
    message: str = ""
    everything: bool = False
    first_parent: bool = False
    topological: bool = False

    def arguments(self) -> list[str]:
        """The arguments of ``git rev-list``."""
        arguments = []
        if self.since is not None:
            arguments.append(f"--since={int(self.since.timestamp())}")
        if self.until is not None:
            arguments.append(f"--until={int(self.until.timestamp())}")
        if self.author:
            arguments.append(f"--author={self.author}")
        if self.message:
            arguments.append(f"--grep={self.message}")
        if self.author or self.message:
            arguments += ["--fixed-strings", "--regexp-ignore-case"]
        arguments += ["--first-parent"] if self.first_parent else []
        arguments += ["--topo-order"] if self.topological else []
        arguments += [f"--glob={BRANCHES}", f"--glob={TAGS}"] if self.everything else []
        return [
            *arguments,
            "--end-of-options",
            *self.revisions,
            "--",
            *([f":(literal){self.path}"] if self.path else []),
        ]


def commit_ids(repository: CodeRepository, wanted: HistoryFilter, offset: int, limit: int) -> list[str]:
    """The ids of the commits of a part of a history, newest first; git stops after the last one."""
    if not wanted.revisions and not wanted.everything:
        return []
    output = processes.read(
        repository.folder, "rev-list", f"--skip={offset}", f"--max-count={limit}", *wanted.arguments()
    )
    return output.decode().split()


def commits(repository: CodeRepository, wanted: HistoryFilter, offset: int, limit: int) -> list[Commit]:
    """The commits of a part of a history, newest first."""
    return load(repository, commit_ids(repository, wanted, offset, limit))


def commits_in_time(
    repository: CodeRepository,
    wanted: HistoryFilter,
    offset: int,
    limit: int,
    seconds: float = processes.READ_SECONDS,
) -> tuple[list[Commit], bool]:
    """The commits of a part of a history that git finds before the deadline, and whether these are all of them."""
    arguments = ["rev-list", f"--skip={offset}", f"--max-count={limit}", *wanted.arguments()]
    content = b""
    try:
        with processes.output_of(repository.folder, *arguments, seconds=seconds) as output:
            content = output.read()
        ids, complete = content.decode().split(), True
    except ReadingTooLarge:
        ids, complete = content.decode().split("\n")[:-1], False
    commits: list[Commit] = []
    try:
        commits.extend(_loaded(repository, ids))
    except ReadingTooLarge:
        complete = False
    return commits, complete


def load(repository: CodeRepository, ids: Iterable[str]) -> list[Commit]:
    """The commits with these ids; those that do not exist are left out."""
    return list(_loaded(repository, ids))


def _loaded(repository: CodeRepository, ids: Iterable[str]) -> Iterator[Commit]:
    """Generate commits; those after ``MAX_MESSAGES_LENGTH`` have the beginnings of their messages."""
    length = 0
    for commit_id in ids:
        commit = repository.commit_of(commit_id)
        if commit is not None:
            length += len(commit.message)
            yield commit if length <= MAX_MESSAGES_LENGTH else cut_message(commit)


def count(repository: CodeRepository, wanted: HistoryFilter) -> int:
    """The number of commits of a history."""
    if not wanted.revisions and not wanted.everything:
        return 0
    return int(processes.read(repository.folder, "rev-list", "--count", *wanted.arguments()))


def last_commit(repository: CodeRepository, commit: Commit, path: str) -> Commit:
    """The newest commit of a history that changed a path; the beginning of the history if git finds none."""
    if not path:
        return commit
    wanted = HistoryFilter(revisions=[commit.id], path=path)
    return next(iter(commits(repository, wanted, 0, 1)), commit)


def stats(repository: CodeRepository, found: Sequence[Commit]) -> dict[str, CommitStats]:
    """The numbers of lines that commits changed, against their first parents, by id."""
    if not found:
        return {}
    output = processes.read(
        repository.folder,
        "log",
        "--no-walk=unsorted",
        "--root",
        "--shortstat",
        "--diff-merges=first-parent",
        "--find-renames",
        "--format=%x00%H",
        "--end-of-options",
        *(commit.id for commit in found),
        "--",
    )
    return {part[:40].decode(): _stats(part[40:]) for part in output.split(b"\0")[1:]}


def _stats(text: bytes) -> CommitStats:
    additions, deletions = (match and int(match[1]) for match in (_ADDITIONS.search(text), _DELETIONS.search(text)))
    return CommitStats(additions or 0, deletions or 0)


def last_commits(
    repository: CodeRepository, commit: Commit, folder: bytes, entries: Collection[Entry]
) -> dict[bytes, Commit]:
    """The newest commit that changed each entry of a folder, by path, as far as a short walk finds them."""
    wanted = {entry.path for entry in entries}
    depth = folder.count(b"/") + 2 if folder else 1
    arguments: list[str | bytes] = [
        "log",
        "--format=%x00%x00%H",
        "--name-only",
        "--no-renames",
        "--diff-merges=first-parent",
        "-z",
        "--end-of-options",
        commit.id,
        "--",
        *([b":(literal)" + folder] if folder else []),
    ]
    last_ids: dict[bytes, str] = {}
    try:
        with processes.output_of(repository.folder, *arguments, seconds=LAST_COMMITS_SECONDS) as output:
            _collect(output, wanted, depth, last_ids)
    except ReadingFailed:
        pass
    by_id = {commit.id: commit for commit in load(repository, set(last_ids.values()))}
    return {path: by_id[commit_id] for path, commit_id in last_ids.items() if commit_id in by_id}


def _collect(output: BufferedReader, wanted: set[bytes], depth: int, found: dict[bytes, str]) -> None:
    """Read the paths of commits, newest first, until all wanted ones are found or the output ends."""
    commit_id, previous, rest = "", b"", b""
    while len(found) < len(wanted) and (chunk := output.read1(CHUNK_BYTES)):
        *pieces, rest = (rest + chunk).split(b"\0")
        for piece in pieces:
            if piece and not previous:  # paths are never empty
                commit_id = piece.decode()
            elif piece:
                path = b"/".join(piece.removeprefix(b"\n").split(b"/")[:depth])
                if path in wanted:
                    found.setdefault(path, commit_id)
            previous = piece


def containing(
    repository: CodeRepository, commit: Commit, kind: str, seconds: float = processes.READ_SECONDS
) -> list[str]:
    """The names of the branches or tags (``kind`` is their prefix) whose history has a commit, at most some."""
    output = processes.read(
        repository.folder,
        "for-each-ref",
        f"--count={MAX_CONTAINING_REFS}",
        "--format=%(refname)",
        f"--contains={commit.id}",
        kind,
        seconds=seconds,
    )
    return [text_of(line.removeprefix(kind.encode())) for line in output.splitlines()]


def ahead_behind(repository: CodeRepository, commit_id: str, base_id: str, seconds: float) -> tuple[int, int]:
    """How many commits a history has that the other one lacks, and how many it lacks."""
    arguments = ("rev-list", "--count", "--left-right", "--end-of-options", f"{commit_id}...{base_id}", "--")
    output = processes.read(repository.folder, *arguments, seconds=seconds)
    ahead, behind = output.split()
    return int(ahead), int(behind)


def merge_base(repository: CodeRepository, ids: Sequence[str]) -> Commit | None:
    """The best common ancestor of commits; ``None`` if there is none."""
    try:
        output = processes.read(repository.folder, "merge-base", "--octopus", "--end-of-options", *ids)
    except ReadingTooLarge:
        raise
    except ReadingFailed:
        return None
    return repository.commit_of(output.decode().split()[0])


def contributors(repository: CodeRepository, commit: Commit) -> list[Contributor]:
    """The authors of a history and the numbers of their commits without merges, in the order of their names."""
    output = processes.read(
        repository.folder,
        "shortlog",
        "--summary",
        "--email",
        "--no-merges",
        commit.id,
        "--",
        seconds=budget.REQUEST_SECONDS,
    )
    return [_contributor(line) for line in output.splitlines()]


def _contributor(line: bytes) -> Contributor:
    number, _, person = line.partition(b"\t")
    name, _, email = person.rpartition(b" <")
    return Contributor(text_of(name), text_of(email.rstrip(b">")), int(number))
