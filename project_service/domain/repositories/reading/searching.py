"""Search in the files of a commit: names and contents, literally and in any case (``git grep``)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader

from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.budget import ReadingFailed, ReadingTooLarge
from project_service.domain.repositories.reading.objects import Commit, text_of
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.domain.repositories.reading.trees import MAX_ENTRIES, MAX_FOLDER_BYTES

MAX_MATCHES = 1000  # of names and contents together
MAX_NAME_BYTES = 1024  # of the beginning of a file that is found by its name
MAX_GROUP_BYTES = 16 << 10
CONTEXT_LINES = 2
PARTS = 3  # of a line: path, number, text
FILTER = re.compile(r"(?<!\S)(-?)(filename|path|extension):(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CodeMatch:
    """Lines of a file with a text; of a file that is found by its name, the beginning, and ``blob_id``."""

    path: str
    data: str
    first_line: int
    blob_id: str | None = None


@dataclass(frozen=True, slots=True)
class PathFilter:
    """A condition for paths: ``kind`` is ``filename``, ``path`` or ``extension``; ``*`` stands for any characters."""

    kind: str
    pattern: str
    excludes: bool

    def admits(self, path: str) -> bool:
        """Whether a path fulfils it."""
        lower, pattern = path.lower(), self.pattern.lower()
        name = lower.rpartition("/")[2]
        if self.kind == "extension":
            matches = fnmatch.fnmatchcase(name.rpartition(".")[2] if "." in name else "", pattern.removeprefix("."))
        elif self.kind == "filename":
            matches = fnmatch.fnmatchcase(name, f"*{pattern}*")
        else:
            matches = fnmatch.fnmatchcase(lower, f"*{pattern}*")
        return matches != self.excludes


@dataclass(frozen=True, slots=True)
class CodeQuery:
    """What is searched for: a text, which may be empty beside filters."""

    term: str
    filters: tuple[PathFilter, ...] = field(default=())

    @classmethod
    def of(cls, text: str) -> CodeQuery:
        """Parse a query: ``extension:py -path:tests/* some text``."""
        filters = tuple(PathFilter(kind.lower(), pattern, bool(minus)) for minus, kind, pattern in FILTER.findall(text))
        return cls(" ".join(FILTER.sub(" ", text).split()).replace("\0", ""), filters)

    def admits(self, path: str) -> bool:
        """Whether a path fulfils all filters."""
        return all(path_filter.admits(path) for path_filter in self.filters)


def search(repository: CodeRepository, commit: Commit, query: CodeQuery, most: int = MAX_MATCHES) -> list[CodeMatch]:
    """Return the first matches, at most ``most``: by name, then by content, each in the order of their paths.

    Matches by name have no ``data`` yet, see ``with_beginning``.

    Raises:
        ReadingTooLarge: git needs more time or memory than allowed.

    """
    matches = [CodeMatch(path, "", 1, blob_id) for path, blob_id in _named(repository, commit, query)][:most]
    return matches + _containing(repository, commit, query, most - len(matches))


def with_beginning(repository: CodeRepository, match: CodeMatch) -> CodeMatch:
    """Return a match with the beginning of its file, if it was found by its name."""
    if match.blob_id is None:
        return match
    start = repository.start_of(match.blob_id, MAX_NAME_BYTES)[:MAX_NAME_BYTES]
    return CodeMatch(match.path, "" if b"\0" in start else text_of(start), 1, match.blob_id)


def _named(repository: CodeRepository, commit: Commit, query: CodeQuery) -> Iterator[tuple[str, str]]:
    """Generate path and id of the files whose path has the text."""
    arguments = ("ls-tree", "-r", "-z", "--full-tree", commit.id)
    output = processes.read(repository.folder, *arguments, max_bytes=MAX_FOLDER_BYTES)
    if output.count(b"\0") > MAX_ENTRIES:
        raise ReadingTooLarge("entries")
    term = query.term.lower()
    for line in output.split(b"\0")[:-1]:
        head, _, raw = line.partition(b"\t")
        _, kind, blob_id = head.split(b" ")
        path = text_of(raw)
        if kind == b"blob" and term in path.lower() and query.admits(path):
            yield path, blob_id.decode()


def _containing(repository: CodeRepository, commit: Commit, query: CodeQuery, most: int) -> list[CodeMatch]:
    """The groups of lines that have the text; git is stopped after the last one that is wanted."""
    matches: list[CodeMatch] = []
    if not query.term or most <= 0:
        return matches
    options = ("--ignore-case", "--fixed-strings", "--line-number", "--null", f"--context={CONTEXT_LINES}", "-I")
    arguments = ("grep", *options, "--threads=1", "-e", query.term, commit.id, "--")
    try:
        with processes.output_of(repository.folder, *arguments) as output:
            for group in _groups(output):
                match = _match(commit, group)
                if match is not None and query.admits(match.path):
                    matches.append(match)
                if len(matches) == most:
                    break
    except ReadingTooLarge:
        raise
    except ReadingFailed:  # git ends with an error when nothing has the text
        return matches
    return matches


def _groups(output: BufferedReader) -> Iterator[list[bytes]]:
    """Generate the groups of matching lines with what is around them."""
    group: list[bytes] = []
    size = 0
    while line := output.readline(MAX_GROUP_BYTES):
        if line == b"--\n":
            yield group
            group, size = [], 0
        elif size < MAX_GROUP_BYTES:
            group.append(line)
            size += len(line)
    if group:
        yield group


def _match(commit: Commit, group: Iterable[bytes]) -> CodeMatch | None:
    prefix = commit.id.encode() + b":"
    lines = [line.removeprefix(prefix).split(b"\0", 2) for line in group if line.startswith(prefix)]
    parsed = [(line[0], line[1], line[2]) for line in lines if len(line) == PARTS and line[1].isdigit()]
    if not parsed:
        return None
    path, first = parsed[0][0], int(parsed[0][1])
    # adjacent files are separated like groups of lines; a long line may be cut into pieces, which have no path
    data = b"".join(text for other, _, text in parsed if other == path)
    return CodeMatch(text_of(path), text_of(data[:MAX_GROUP_BYTES]), first)
