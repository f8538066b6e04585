"""Commits, tags and trees, parsed from the bytes of git objects, which may be of any age and quality."""

from __future__ import annotations

import codecs
import datetime as dt
import re
from dataclasses import dataclass, replace

TREE_MODE, LINK_MODE, COMMIT_MODE = 0o040000, 0o120000, 0o160000
EXECUTABLE = 0o111
SHORT_ID_LENGTH = 8
MAX_ZONE_MINUTES = 24 * 60 - 1
_TIME = re.compile(rb"\s*(-?\d{1,18})\s*([+-]\d{2,4})?")
# names of encodings are the author's: those that take long or are no character sets are left out
_ENCODINGS = re.compile(r"iso8859-\d+|cp\d+|koi8-[rut]|euc_\w+|shift_jis\w*|gb\w+|big5\w*|utf-8|ascii|mac-\w+")


@dataclass(frozen=True, slots=True)
class Person:
    """Who wrote something, and when, in their own time zone."""

    name: str
    email: str
    time: dt.datetime


MAX_MESSAGE_BYTES = 64 << 10  # of a commit or tag, longer ones are cut: a list has a hundred of them
MAX_CUT_MESSAGE_LENGTH = 256  # when messages are long together
MAX_PERSON_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit; ``message`` is as stored, decoded."""

    id: str
    tree_id: str
    parent_ids: list[str]
    author: Person
    committer: Person
    message: str

    @property
    def short_id(self) -> str:
        """The first digits of the id."""
        return self.id[:SHORT_ID_LENGTH]

    @property
    def title(self) -> str:
        """The first line of the message."""
        return self.message.lstrip("\r\n").partition("\n")[0].rstrip()

    @property
    def description(self) -> str:
        """The message after its first line."""
        return self.message.lstrip("\r\n").partition("\n")[2].strip("\r\n")


def cut_message(commit: Commit) -> Commit:
    """The commit with the beginning of its message."""
    return replace(commit, message=commit.message[:MAX_CUT_MESSAGE_LENGTH])


@dataclass(frozen=True, slots=True)
class TagObject:
    """An annotated tag."""

    target: str
    target_type: str
    tagger: Person | None
    message: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder, symbolic link or submodule of a tree; ``path`` is that from the root of the repository."""

    mode: int
    path: bytes
    id: str

    @property
    def type(self) -> str:
        """``tree``, ``blob`` (symbolic links too) or ``commit`` (a submodule)."""
        kind = self.mode & 0o170000
        return "tree" if kind == TREE_MODE else "commit" if kind == COMMIT_MODE else "blob"

    @property
    def is_link(self) -> bool:
        """Whether this is a symbolic link; its content is the target."""
        return self.mode & 0o170000 == LINK_MODE

    @property
    def executable(self) -> bool:
        """Whether this is an executable file."""
        return self.type == "blob" and not self.is_link and bool(self.mode & EXECUTABLE)

    @property
    def name(self) -> str:
        """The last part of the path, as text."""
        return text_of(self.path.rpartition(b"/")[2])

    @property
    def is_utf8(self) -> bool:
        """Whether the path is UTF-8."""
        return text_of(self.path).encode() == self.path

    @property
    def shown_path(self) -> str:
        """The path as text; bytes that are no UTF-8 are replaced."""
        return text_of(self.path)

    @property
    def address(self) -> str | None:
        """The path as written in URLs of pages; ``None`` if it is no UTF-8 or has line breaks or dot segments."""
        try:
            text = self.path.decode()
        except UnicodeDecodeError:
            return None
        return text if is_addressable(text) and "\n" not in text else None


def is_addressable(path: str) -> bool:
    """Whether a path can be part of a URL: clients remove dot segments."""
    return bool(path) and not any(part in ("", ".", "..") for part in path.split("/"))


def text_of(content: bytes, encoding: str | None = None) -> str:
    """Decode text of unknown origin; it never fails, and the result has no surrogates and no NUL."""
    for name in (encoding, "utf-8"):
        try:
            if name and _ENCODINGS.fullmatch(codecs.lookup(name).name):
                return content.decode(name).replace("\0", "")
        except (LookupError, UnicodeDecodeError, ValueError):
            continue
    return content.decode(errors="replace").replace("\0", "")


def parse_commit(object_id: str, content: bytes) -> Commit:
    """Parse a commit; what is missing in an irregular one is empty."""
    headers, message = _headers(content)
    encoding = headers.get(b"encoding", [b""])[0].decode("latin-1").strip()
    return Commit(
        id=object_id,
        tree_id=headers.get(b"tree", [b""])[0].decode("latin-1"),
        parent_ids=[parent.decode("latin-1") for parent in headers.get(b"parent", [])],
        author=_person(headers.get(b"author", [b""])[0], encoding),
        committer=_person(headers.get(b"committer", [b""])[0], encoding),
        message=text_of(message[:MAX_MESSAGE_BYTES], encoding),
    )


def parse_tag(content: bytes) -> TagObject:
    """Parse an annotated tag."""
    headers, message = _headers(content)
    tagger = headers.get(b"tagger")
    message = message.partition(b"-----BEGIN PGP SIGNATURE-----")[0]
    return TagObject(
        target=headers.get(b"object", [b""])[0].decode("latin-1"),
        target_type=headers.get(b"type", [b""])[0].decode("latin-1"),
        tagger=_person(tagger[0], "") if tagger else None,
        message=text_of(message[:MAX_MESSAGE_BYTES]),
    )


def parse_entry(line: bytes) -> Entry:
    """Parse a line of ``git ls-tree -z``."""
    head, _, path = line.partition(b"\t")
    mode, _, object_id = head.split(b" ")
    return Entry(int(mode, 8), path, object_id.decode())


def _headers(content: bytes) -> tuple[dict[bytes, list[bytes]], bytes]:
    head, _, message = content.partition(b"\n\n")
    headers: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name:  # continuations, of signatures, begin with a space
            headers.setdefault(name, []).append(value)
    return headers, message


def _person(line: bytes, encoding: str) -> Person:
    line = line[:MAX_PERSON_BYTES]
    name, opened, rest = line.partition(b"<")
    email, closed, rest = rest.partition(b">")
    if not opened or not closed:
        return Person(text_of(line, encoding), "", _moment(0, 0))
    time = _TIME.match(rest)
    seconds, zone = time.groups() if time else (b"0", None)
    return Person(
        text_of(name.strip(), encoding), text_of(email, encoding), _moment(int(seconds), _minutes(zone or b""))
    )


def _minutes(zone: bytes) -> int:
    if not zone:
        return 0
    hours, minutes = divmod(int(zone[1:]), 100)
    return (-1 if zone.startswith(b"-") else 1) * min(hours * 60 + minutes, MAX_ZONE_MINUTES)


def _moment(seconds: int, minutes: int) -> dt.datetime:
    zone = dt.timezone(dt.timedelta(minutes=minutes))
    try:
        return dt.datetime.fromtimestamp(seconds, zone)
    except (OverflowError, ValueError, OSError):
        return dt.datetime.fromtimestamp(0, zone)
