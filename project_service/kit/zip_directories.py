"""The directory of a ZIP archive, looked at before ``zipfile`` reads all of it into memory."""

from __future__ import annotations

import io
import struct
from typing import IO

END = struct.Struct("<4s4H2LH")  # of the archive: mark, numbers of disks and entries, size and place of the directory
END_MARK = b"PK\5\6"
ZIP64_MARK = b"PK\6\7"
ZIP64_LOCATOR_BYTES = 20  # right before the end
END_BYTES = END.size + (1 << 16)  # with the comment


class NoDirectory(ValueError):
    """The file is no ZIP archive."""


class LongDirectory(ValueError):
    """The archive has more files, or a longer directory, than is read."""


def check_directory(file: IO[bytes], *, max_files: int, max_bytes: int) -> None:
    """Raise ``NoDirectory`` or ``LongDirectory`` by what the end of a file says; the file is read from its begin then.

    An archive in the format ZIP64, which is for more than 65,535 files or 4 GiB, is too long.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - END_BYTES))
    end = file.read()
    file.seek(0)
    position = end.rfind(END_MARK)
    record = end[position : position + END.size]
    if position < 0 or len(record) < END.size:
        raise NoDirectory
    count, directory_bytes = END.unpack(record)[4:6]
    locator = end[max(0, position - ZIP64_LOCATOR_BYTES) : position]
    if locator.startswith(ZIP64_MARK) or count > max_files or directory_bytes > max_bytes:
        raise LongDirectory
