"""Differences between commits, file by file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.budget import ReadingTooLarge
from project_service.domain.repositories.reading.history import EMPTY_TREE, CommitStats
from project_service.domain.repositories.reading.objects import Commit, text_of
from project_service.domain.repositories.reading.repository import CodeRepository

MAX_FILES = 1000  # of one difference; more are left out
MAX_LIST_BYTES = 4 << 20
MAX_PATCHES_BYTES = 16 << 20  # of one answer
MAX_PATCH_BYTES = 200 << 10  # of one file; a longer one is left out
MAX_LINES = 50_000  # of one answer
MAX_SHOWN_LINES = 5_000  # of one file on a page
PATHS_PER_PROCESS = 100
ABSENT = "0" * 40
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)
_HUNK = re.compile(rb"^@@ ", re.MULTILINE)
_BINARY = re.compile(rb"^Binary files .*", re.MULTILINE)
_HUNK_HEADER = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(slots=True)
class DiffLine:
    """A line of a patch with its numbers in both files; ``kind`` is ``hunk``, ``add``, ``del`` or ``same``."""

    kind: str
    old: int | None
    new: int | None
    text: str


@dataclass(slots=True)
class FileDiff:
    """What a difference does to one file; ``patch`` begins at the first hunk."""

    old_path: str
    new_path: str
    old_mode: int
    new_mode: int
    old_id: str
    new_id: str
    status: str
    raw_paths: tuple[bytes, ...] = ()
    additions: int = 0
    deletions: int = 0
    binary: bool = False
    patch: str = ""
    too_large: bool = False

    @property
    def new_file(self) -> bool:
        """Whether the file is new."""
        return self.status == "A"

    @property
    def deleted_file(self) -> bool:
        """Whether the file was deleted."""
        return self.status == "D"

    @property
    def renamed_file(self) -> bool:
        """Whether the file has another path."""
        return self.status == "R"

    @property
    def is_shown(self) -> bool:
        """Whether a page shows the patch: it is not longer than ``MAX_SHOWN_LINES``."""
        return not self.too_large and self.patch.count("\n") <= MAX_SHOWN_LINES

    @property
    def lines(self) -> list[DiffLine]:
        """The lines of the patch."""
        return list(_lines(self.patch))


@dataclass(slots=True)
class TreeDifference:
    """The files of a difference without their patches.

    ``complete`` is false if there are more than ``MAX_FILES``, or git reached its deadline (``expired``).
    """

    old: str
    new: str
    files: list[FileDiff] = field(default_factory=list)
    complete: bool = True
    expired: bool = False

    @property
    def stats(self) -> CommitStats:
        """The sums of all files."""
        return CommitStats(sum(file.additions for file in self.files), sum(file.deletions for file in self.files))


def of_commit(repository: CodeRepository, commit: Commit, *, numbers: bool = False) -> TreeDifference:
    """What a commit changed, against its first parent; the first commit of a history against nothing."""
    return between(repository, commit.parent_ids[0] if commit.parent_ids else EMPTY_TREE, commit.id, numbers=numbers)


def between(
    repository: CodeRepository, old: str, new: str, *, numbers: bool = False, seconds: float = processes.READ_SECONDS
) -> TreeDifference:
    """The files that differ between two commits or trees; ``numbers`` counts the changed lines of each."""
    difference = TreeDifference(old, new)
    options = ["--raw", "--numstat"] if numbers else ["--raw"]
    arguments = ["diff-tree", "-r", "--find-renames", "-z", *options, "--end-of-options", old, new, "--"]
    content = b""
    try:
        with processes.output_of(repository.folder, *arguments, seconds=seconds) as output:
            content = output.read(MAX_LIST_BYTES)
            if output.read(1):
                difference.complete = False
    except ReadingTooLarge:
        difference.complete, difference.expired = False, True
    _parse_list(content.split(b"\0")[:-1], difference)
    if len(difference.files) > MAX_FILES:
        del difference.files[MAX_FILES:]
        difference.complete = False
    return difference


def add_patches(repository: CodeRepository, difference: TreeDifference, files: Sequence[FileDiff]) -> None:
    """Set the patches of some files of a difference; those that are too long get ``too_large``."""
    lines_left, bytes_left = MAX_LINES, MAX_PATCHES_BYTES
    for start in range(0, len(files), PATHS_PER_PROCESS):
        some = files[start : start + PATHS_PER_PROCESS]
        patches = _patches(repository, difference, some, bytes_left)
        for file in some:
            patch = patches.get(file.raw_paths[-1])
            if patch is None or len(patch) > MAX_PATCH_BYTES or patch.count(b"\n") > lines_left:
                file.too_large = True
                continue
            lines_left -= patch.count(b"\n")
            bytes_left -= len(patch)
            file.patch = text_of(patch)


def _parse_list(pieces: list[bytes], found: TreeDifference) -> None:
    position, by_path = 0, {}
    while position < len(pieces) and pieces[position].startswith(b":"):
        head = pieces[position][1:].split(b" ")
        old_mode, new_mode, old_id, new_id, status = (part.decode() for part in head)
        count = 2 if status[0] in "RC" else 1
        paths = tuple(pieces[position + 1 : position + 1 + count])
        position += 1 + count
        if len(paths) < count:
            return
        file = FileDiff(
            text_of(paths[0]), text_of(paths[-1]), int(old_mode, 8), int(new_mode, 8), old_id, new_id, status[0], paths
        )
        by_path[paths[-1]] = file
        found.files.append(file)
    while position < len(pieces):
        additions, deletions, path = pieces[position].split(b"\t", 2)
        if not path:  # a renamed file: both paths follow
            position += 2
            path = pieces[position] if position < len(pieces) else b""
        position += 1
        if (named := by_path.get(path)) is not None:
            named.binary = additions == b"-"
            named.additions, named.deletions = (
                int(number) if number.isdigit() else 0 for number in (additions, deletions)
            )


def _patches(
    repository: CodeRepository, difference: TreeDifference, files: Sequence[FileDiff], max_bytes: int
) -> dict[bytes, bytes]:
    """The patches of files by path, as far as git writes them before the limits."""
    paths = dict.fromkeys(path for file in files for path in file.raw_paths if _is_inside(path))
    if not paths:
        return {}
    arguments = ["diff-tree", "-r", "--find-renames", "-z", "--raw", "--patch", "--full-index", "--no-color"]
    arguments += ["--no-ext-diff", "--no-textconv", "--end-of-options", difference.old, difference.new, "--"]
    content = b""
    try:
        with processes.output_of(repository.folder, *arguments, *(b":(literal)" + path for path in paths)) as output:
            content = output.read(max_bytes)
            complete = not output.read(1)
    except ReadingTooLarge:
        complete = False
    raw, listed_all, text = content.partition(b"\0\0")
    if not listed_all:  # git was ended before the first patch
        return {}
    listed = TreeDifference(difference.old, difference.new)
    _parse_list(raw.split(b"\0"), listed)
    starts = [match.start() for match in _SECTION.finditer(text)]
    ends = [*starts[1:], len(text)]
    sections = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if not complete:
        sections = sections[:-1]
    patches: dict[bytes, bytes] = {}
    for file in listed.files:
        # git writes a change of the type of a file as a deletion and a creation
        own, sections = (sections[:2], sections[2:]) if file.status == "T" else (sections[:1], sections[1:])
        if own:
            patches[file.raw_paths[-1]] = b"".join(_body(section) for section in own)
    return patches


def _is_inside(path: bytes) -> bool:
    """Whether git accepts a path of a tree as an argument: not one with dot segments."""
    return not {b"", b".", b".."} & set(path.split(b"/"))


def _body(section: bytes) -> bytes:
    """A patch from its first hunk on; of a binary file the line that says so."""
    hunk = _HUNK.search(section)
    if hunk is not None:
        return section[hunk.start() :]
    binary = _BINARY.search(section)
    return binary[0] + b"\n" if binary else b""


def _lines(patch: str) -> Iterator[DiffLine]:
    old = new = 0
    for line in patch.split("\n")[:-1] if patch.endswith("\n") else patch.split("\n"):
        header = _HUNK_HEADER.match(line)
        if header is not None:
            old, new = int(header[1]), int(header[2])
            yield DiffLine("hunk", None, None, line)
        elif line.startswith("+"):
            yield DiffLine("add", None, new, line[1:])
            new += 1
        elif line.startswith("-"):
            yield DiffLine("del", old, None, line[1:])
            old += 1
        elif line.startswith(" "):
            yield DiffLine("same", old, new, line[1:])
            old, new = old + 1, new + 1
        else:
            yield DiffLine("hunk", None, None, line)
