"""Reading tar headers with limits, for archives that may be hostile (archive format reference, section 7)."""

from __future__ import annotations

import tarfile
from typing import Any

from project_service.transfers.archive.contents import BROKEN, BadArchive

MAX_HEADER_BYTES = 1 << 20  # of all headers before one member: long names, extended headers
EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
EVALUATED_KEYWORDS = (b"path", b"linkpath", b"size")  # of extended headers
MAX_LENGTH_DIGITS = 20
MAGIC = slice(257, 265)  # of a header
HEADER_CONTINUES = 482  # the byte of a header that says whether the map of a sparse file continues
SPARSE_MAP_CONTINUES = 504  # the byte of a block of the map of a sparse file
ENDS: Any = (tarfile.EOFHeaderError, tarfile.EmptyHeaderError)  # type: ignore[attr-defined]  # not in typeshed


class LimitedTarFile(tarfile.TarFile):
    """A tar file that counts the bytes of headers before the current member."""

    members: list[tarfile.TarInfo]
    header_bytes = 0
    has_pending_header = False  # a header whose member is still to come


class LimitedTarInfo(tarfile.TarInfo):
    """A member whose headers are read with limits.

    ``tarfile`` by itself treats an invalid header as the end of the archive, keeps all extended headers and maps of
    sparse files in memory, and needs minutes for a header of many digits.
    """

    has_more_sparse_map = False  # in blocks behind the header

    @classmethod
    def fromtarfile(cls, tar: Any) -> Any:
        """Read the next member; the archive ends with a block of zeros or with the file."""
        try:
            return super().fromtarfile(tar)
        except tarfile.HeaderError as error:
            if isinstance(error, ENDS) and not tar.has_pending_header:
                raise
            raise BadArchive(BROKEN) from error

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Any:
        """Parse a header; GNU headers may have timestamps where others have the prefix of a long name."""
        header = super().frombuf(buf, encoding, errors)
        header.has_more_sparse_map = header.type == tarfile.GNUTYPE_SPARSE and buf[HEADER_CONTINUES] != 0
        if buf[MAGIC] == tarfile.GNU_MAGIC:
            name = buf[: tarfile.LENGTH_NAME].partition(b"\0")[0].decode(encoding, errors)
            header.name = name.rstrip("/") if header.isdir() else name
        return header

    def _proc_member(self, tar: Any) -> Any:
        """Process a header: the hook of ``tarfile`` for subclasses."""
        is_header = self.type in EXTENDED or self.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        tar.header_bytes = tar.header_bytes + tarfile.BLOCKSIZE + self.size if is_header else 0
        tar.has_pending_header = is_header and self.type != tarfile.XGLTYPE
        if self.size < 0 or tar.header_bytes > MAX_HEADER_BYTES:
            raise BadArchive(BROKEN)
        if self.type in EXTENDED:
            return self._read_extended_header(tar)
        if self.type == tarfile.GNUTYPE_SPARSE:
            self._skip_sparse_map(tar)
        return super()._proc_member(tar)  # type: ignore[misc]  # the hook of tarfile for subclasses

    def _read_extended_header(self, tar: Any) -> Any:
        """Apply an extended header to the next member, or to all that follow; return the next member."""
        values, is_sparse = _parse_extended_header(tar.fileobj.read(_padded(self.size))[: self.size])
        if self.type == tarfile.XGLTYPE:
            tar.pax_headers.update(values)
            return self.fromtarfile(tar)
        member = self.fromtarfile(tar)
        if is_sparse:
            member.sparse = b""
        if "path" in values:
            member.name = values["path"].rstrip("/")
        if "linkpath" in values:
            member.linkname = values["linkpath"]
        if "size" in values:
            member.size = _parse_size(values["size"])
            has_content = member.isreg() or member.type not in tarfile.SUPPORTED_TYPES
            tar.offset = member.offset_data + (_padded(member.size) if has_content else 0)
        return member

    def _skip_sparse_map(self, tar: Any) -> None:
        """Skip the rest of the map of a sparse file; the member is then processed as any other."""
        continues = self.has_more_sparse_map
        while continues:
            continues = bool(tar.fileobj.read(tarfile.BLOCKSIZE)[SPARSE_MAP_CONTINUES])
        self.type, self.sparse = tarfile.REGTYPE, b""


def _padded(size: int) -> int:
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _parse_size(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # treated as by tarfile
        return 0


def _parse_extended_header(header: bytes) -> tuple[dict[str, str], bool]:
    """Return the evaluated keywords of an extended header, and whether the member is a sparse file.

    Its records are ``LENGTH KEYWORD=VALUE`` and a line end (POSIX, pax).
    """
    values: dict[str, str] = {}
    is_sparse, start = False, 0
    while start < len(header) and header[start]:  # it may be padded
        length, _, _ = header[start : start + MAX_LENGTH_DIGITS].partition(b" ")
        end = start + (int(length) if length.isdigit() else 0)
        keyword, equals, value = header[start + len(length) + 1 : end].partition(b"=")
        if end > len(header) or not equals or not value.endswith(b"\n"):
            raise BadArchive(BROKEN)
        if keyword in EVALUATED_KEYWORDS:
            values[keyword.decode()] = value[:-1].decode(errors="surrogateescape")
        is_sparse = is_sparse or keyword.startswith(b"GNU.sparse.")
        start = end
    return values, is_sparse
