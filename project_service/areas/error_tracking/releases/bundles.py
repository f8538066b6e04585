"""Artifact bundles: ZIP archives of minified files and source maps (source maps reference, sections 9 and 13)."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from project_service.areas.error_tracking.releases.models import MINIFIED, SOURCE, SOURCE_MAP
from project_service.kit import exact_json
from project_service.kit.zip_directories import LongDirectory, check_directory

MAGIC = b"SYSB"
VERSIONS = (1, 2)
MAX_FILES = 10_000
MAX_DIRECTORY_BYTES = 8 << 20
MAX_MANIFEST_BYTES = 16 << 20
MAX_FILE_BYTES = 64 << 20
MAX_UNPACKED_BYTES = 256 << 20
MAX_URL_LENGTH = 2048
MAX_HEADERS = 20
CHUNK_BYTES = 256 << 10
EDGE_BYTES = 4096
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
TYPES = (MINIFIED, SOURCE_MAP, SOURCE)
NO_DEBUG_ID = "0" * 32
UUID = re.compile(
    r"([0-9a-fA-F]{8})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{12})(?:-[0-9a-fA-F]{1,8})?"
)
DEBUG_ID_COMMENT = re.compile(rb"//[#@] debugId=([0-9a-fA-F-]{32,45})")
DEBUG_ID_KEY = re.compile(rb'"debug(?:_id|Id)"\s{0,9}:\s{0,9}"([0-9a-fA-F-]{32,45})"')
SOURCE_MAP_COMMENT = re.compile(rb"//[#@] sourceMappingURL=(\S{1,2000})")


class BadArtifactBundle(Exception):
    """A bundle cannot be used; the text is shown to the uploader."""


@dataclass(frozen=True, slots=True)
class BundledFile:
    """A file that the manifest names."""

    name: str
    type: str
    url: str
    debug_id: str | None
    source_map_url: str | None


@dataclass(frozen=True, slots=True)
class FileEdges:
    """The first and the last bytes of a file, which may name its debug id and its source map."""

    first: bytes
    last: bytes


class Bundle:
    """An open bundle: ``release``, ``dist`` and the files that the manifest names and that are there."""

    def __init__(self, file: IO[bytes]) -> None:
        self._archive = _open(file)
        self._left = MAX_UNPACKED_BYTES
        manifest = self._manifest()
        self.release = _text(manifest.get("release"))
        self.dist = _text(manifest.get("dist"))
        names = {info.filename for info in self._archive.infolist()}
        entries = manifest.get("files")
        listed = entries.items() if isinstance(entries, dict) else ()
        self.files = [
            file_entry for name, raw in listed if name in names and (file_entry := _file(name, raw)) is not None
        ]

    def chunks(self, name: str) -> Iterator[bytes]:
        """Read a file in pieces; how much is counted, whatever the directory of the archive says.

        Raises:
            BadArtifactBundle: the file or the archive is too large, or damaged.

        """
        size = 0
        try:
            with self._archive.open(name) as source:
                while piece := source.read(CHUNK_BYTES):
                    size += len(piece)
                    self._left -= len(piece)
                    if size > MAX_FILE_BYTES:
                        raise BadArtifactBundle(f"{name[:200]} is larger than {MAX_FILE_BYTES} bytes")
                    if self._left < 0:
                        raise BadArtifactBundle(f"the archive expands to more than {MAX_UNPACKED_BYTES} bytes")
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise BadArtifactBundle(f"{name[:200]} cannot be unpacked") from error

    def _manifest(self) -> dict[str, Any]:
        try:
            info = self._archive.getinfo("manifest.json")
            if info.file_size > MAX_MANIFEST_BYTES:
                raise BadArtifactBundle("failed to open release manifest")
            manifest = exact_json.loads(b"".join(self.chunks("manifest.json")))
        except (KeyError, ValueError) as error:
            raise BadArtifactBundle("failed to open release manifest") from error
        if not isinstance(manifest, dict):
            raise BadArtifactBundle("failed to open release manifest")
        return manifest


def debug_id_of(raw: Any) -> str | None:
    """Return a debug id as 32 hexadecimal digits; ``None`` for everything else."""
    match = UUID.fullmatch(raw.strip()) if isinstance(raw, str) and len(raw) <= 60 else None
    debug_id = None if match is None else "".join(match.groups()).lower()
    return None if debug_id == NO_DEBUG_ID else debug_id


def debug_id_in(kind: str, edges: FileEdges) -> str | None:
    """Return the debug id that a file itself names: a script in its last comment, a map in a key."""
    pattern = DEBUG_ID_KEY if kind == SOURCE_MAP else DEBUG_ID_COMMENT
    debug_ids = pattern.findall(edges.last) or pattern.findall(edges.first)
    return debug_id_of(debug_ids[-1].decode("ascii")) if debug_ids else None


def source_map_url_in(edges: FileEdges) -> str | None:
    """Return the address of the source map that the last comment of a script names."""
    addresses = SOURCE_MAP_COMMENT.findall(edges.last)
    return addresses[-1].decode("utf-8", "replace") if addresses and not addresses[-1].startswith(b"data:") else None


def _open(file: IO[bytes]) -> zipfile.ZipFile:
    head = file.read(8)
    if head[:4] == MAGIC and struct.unpack("<I", head[4:8].ljust(4, b"\0"))[0] not in VERSIONS:
        raise BadArtifactBundle("failed to open release manifest")
    too_long = f"too many files (limit {MAX_FILES})"
    try:
        check_directory(file, max_files=MAX_FILES + 1, max_bytes=MAX_DIRECTORY_BYTES)
        archive = zipfile.ZipFile(file)
    except LongDirectory as error:
        raise BadArtifactBundle(too_long) from error
    except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError) as error:
        raise BadArtifactBundle("failed to open release manifest") from error
    entries = archive.infolist()
    if len(entries) > MAX_FILES + 1:  # the end of the archive may say less
        raise BadArtifactBundle(too_long)
    if len({entry.filename for entry in entries}) < len(entries):
        raise BadArtifactBundle("the archive has several files of one name")
    if any(entry.compress_type not in METHODS or entry.flag_bits & ENCRYPTED for entry in entries):
        raise BadArtifactBundle("the archive uses an unsupported compression or encryption")
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise BadArtifactBundle(f"the archive expands to more than {MAX_UNPACKED_BYTES} bytes")
    return archive


def _file(name: str, raw: Any) -> BundledFile | None:
    if not isinstance(raw, dict):
        return None
    url = _text(raw.get("url"))
    kind = raw.get("type") if raw.get("type") in TYPES else SOURCE if url and "type" not in raw else None
    if kind is None:
        return None
    headers = raw.get("headers")
    pairs = list(headers.items())[:MAX_HEADERS] if isinstance(headers, dict) else []
    lower = {str(key).lower(): value for key, value in pairs}
    return BundledFile(
        name,
        str(kind),
        (url or name.removeprefix("files/"))[:MAX_URL_LENGTH],
        debug_id_of(lower.get("debug-id")),
        _text(lower.get("sourcemap")) or _text(lower.get("x-sourcemap")),
    )


def _text(raw: Any) -> str | None:
    return raw[:MAX_URL_LENGTH] if isinstance(raw, str) and raw else None
