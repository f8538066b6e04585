"""What an unpacked archive holds, and why an archive is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from project_service.transfers.archive import layout

MAX_RELATIONS = 1000
MAX_NAME_LENGTH, MAX_NAME_PARTS = 4096, 100  # of a path; file systems have lower limits
MAX_LEFT_OUT = 100  # files whose names are recorded
NOT_GZIP = "The file is not in gzip format"
BROKEN = "The archive is damaged or incomplete"
TOO_BIG = "Decompressed archive size validation failed."
NO_VERSION = "No such file or directory @ rb_sysopen - [FILTERED] (VERSION missing)"
EMPTY_VERSION = "end of file reached"
NO_TREE = "invalid import format"
BAD_JSON = "Incorrect JSON format"
HARD_LINK = "File shares hard link"
BEHIND_A_LINK = "The archive has a member in a directory that is a symbolic link"
CLIMBS = "The archive has a member outside of its own directory"
TOO_MANY = "The archive has too many members"


class BadArchive(Exception):
    """An archive that cannot be imported; the text is shown to users and has no path of this server."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that exports contain again: its path in the archive, and where it is now."""

    path: str
    place: Path
    size: int


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """A row that was not parsed, with the reason."""

    text: str


@dataclass(slots=True)
class Unpacked:
    """The content of an archive, as files of this server."""

    folder: Path
    texts: dict[str, str] = field(default_factory=dict)
    relations: dict[str, Path] = field(default_factory=dict)
    project: Path | None = None
    legacy: Path | None = None
    bundles: dict[str, Path] = field(default_factory=dict)
    lfs_types: Path | None = None
    carried: dict[str, StoredFile] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)  # names of symbolic links, which are not created
    links_length: int = 0  # characters of all these names
    left_out: dict[str, None] = field(default_factory=dict)  # names of files that cannot be stored
    too_large: dict[str, dict[int, UnreadRow]] = field(default_factory=dict)  # rows that are not parsed, by line

    def check(self) -> None:
        """Raise ``BadArchive`` if the version is another or the tree is missing.

        Archive format reference, section 2; import reference, section 7.
        """
        version = self.texts.get("VERSION")
        if version is None:
            raise BadArchive(NO_VERSION)
        if not version.strip():
            raise BadArchive(EMPTY_VERSION)
        if not layout.VERSION.fullmatch(version.strip()):
            raise BadArchive("Incorrect VERSION format")
        if layout.segments_of(version) != layout.segments_of(layout.FORMAT):
            raise BadArchive(f"Import version mismatch: Required {layout.FORMAT} but was {version.strip()[:100]}")
        if self.project is None and self.legacy is None:
            raise BadArchive(NO_TREE)
