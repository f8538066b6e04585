"""File storage through fsspec: a directory, or a bucket that all machines share. Names are relative to its root."""

from __future__ import annotations

import datetime as dt
import functools
import os
import posixpath
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar, cast
from urllib.parse import unquote

import fsspec
from flask import current_app

from project_service.settings import Settings

CHUNK_BYTES = 1 << 20
FILE = "file"
HEALTH_FOLDER = "health"
MAX_ATTEMPTS = 100  # each takes microseconds
# several machines write to one bucket: a cached listing would be out of date
OPTIONS: dict[str, dict[str, Any]] = {FILE: {"auto_mkdir": True}, "s3": {"use_listings_cache": False}}

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of the storage; ``stamp`` changes when its content changes."""

    name: str
    stamp: tuple[str, ...]


@dataclass(frozen=True)
class Storage:
    """A file storage; objects are written atomically."""

    protocol: str
    root: str

    @classmethod
    def at(cls, url: str) -> Storage:
        """Return the storage of a ``file://`` or ``s3://`` URL."""
        protocol, _, rest = url.partition("://")
        return cls(protocol, (unquote(rest) if protocol == FILE else rest).rstrip("/"))

    @property
    def filesystem(self) -> fsspec.AbstractFileSystem:
        """The fsspec file system, one for each process."""
        return _filesystem(self.protocol, os.getpid())

    def path(self, name: str) -> str:
        """Return the full path of a name; refuse names that leave the root or are not normalized."""
        if name.startswith("/") or name != posixpath.normpath(name) or name.split("/", maxsplit=1)[0] in (".", ".."):
            raise ValueError(f"{name!r} is not a name in the storage")
        return f"{self.root}/{name}"

    def open(self, name: str) -> IO[bytes]:
        """Open an object for reading."""
        return cast(IO[bytes], self.filesystem.open(self.path(name), "rb"))

    @contextmanager
    def write(self, name: str) -> Iterator[IO[bytes]]:
        """Write an object; it appears, or replaces the former one, when the block ends without an error."""
        path = self.path(name)
        write = _write_and_rename if self.protocol == FILE else _write_multipart
        with write(self.filesystem, path) as file:
            yield file

    def store(self, source: IO[bytes], name: str) -> None:
        """Copy a stream into an object."""
        with self.write(name) as target:
            shutil.copyfileobj(source, target, CHUNK_BYTES)

    def download(self, name: str, path: Path) -> None:
        """Copy an object into a file."""
        with self.open(name) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target, CHUNK_BYTES)

    def store_file(self, path: Path, name: str) -> None:
        """Store a file, which must not change any more, as an object; on the same disk by a hard link."""
        if not (self.protocol == FILE and _hard_link(str(path), self.path(name))):
            with path.open("rb") as source:
                self.store(source, name)

    def provide_file(self, name: str, path: Path) -> None:
        """Provide an object as a file, which must not be changed; on the same disk by a hard link."""
        if not (self.protocol == FILE and _hard_link(self.path(name), str(path))):
            self.download(name, path)

    def exists(self, name: str) -> bool:
        """Whether an object exists."""
        return bool(self.filesystem.exists(self.path(name)))

    def size(self, name: str) -> int:
        """Return the size of an object in bytes."""
        return int(self.filesystem.size(self.path(name)))

    def delete(self, name: str) -> None:
        """Delete an object and the folders that are empty afterwards; a missing object is ignored."""
        path = self.path(name)
        with suppress(FileNotFoundError):
            self.filesystem.rm_file(path)
        if self.protocol == FILE:
            self._remove_empty_folders(posixpath.dirname(name))

    def _remove_empty_folders(self, folder: str) -> None:
        while "/" in folder:  # those of the first level are few and needed again
            try:
                os.rmdir(self.path(folder))
            except FileNotFoundError:
                pass  # another process has removed it, perhaps without its parents
            except OSError:
                return  # not empty
            folder = posixpath.dirname(folder)

    def listing(self) -> Iterator[StoredObject]:
        """Iterate over all complete objects, folder by folder; concurrent changes may be included or not."""
        for _folder, _folders, files in self.filesystem.walk(self.root, detail=True, on_error=_raise_unless_gone):
            for path, info in sorted((entry["name"], entry) for entry in files.values()):
                name = path[len(self.root) + 1 :]
                if not posixpath.basename(name).startswith(".") and not name.startswith(f"{HEALTH_FOLDER}/"):
                    yield StoredObject(
                        name, tuple(str(info.get(key)) for key in ("size", "mtime", "LastModified", "ETag"))
                    )

    def names(self, folder: str) -> list[str]:
        """Return the names below a folder, those of incomplete objects included."""
        try:
            paths = self.filesystem.find(self.path(folder))
        except FileNotFoundError:
            return []
        return sorted(path.removeprefix(self.root).lstrip("/") for path in paths)

    def modified(self, name: str) -> dt.datetime:
        """Return when an object was written."""
        moment: dt.datetime = self.filesystem.modified(self.path(name))
        return moment.astimezone(dt.UTC)

    def check(self) -> None:
        """Write, read and delete a small object; raise the error of the storage if that fails."""
        name = f"{HEALTH_FOLDER}/{secrets.token_hex(8)}"
        with self.write(name) as file:
            file.write(b"ok")
        try:
            with self.open(name) as file:
                if file.read() != b"ok":
                    raise OSError("the storage returned other data than was written")
        finally:
            self.delete(name)


def open_storage(settings: Settings) -> Storage:
    """Return the storage of these settings."""
    return Storage.at(settings.storage_url)


def storage() -> Storage:
    """Return the storage of the application."""
    extension: Storage = current_app.extensions["storage"]
    return extension


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


@functools.cache
def _filesystem(protocol: str, _process: int) -> fsspec.AbstractFileSystem:
    return fsspec.filesystem(protocol, skip_instance_cache=True, **OPTIONS.get(protocol, {}))


def _hard_link(source: str, path: str) -> bool:
    """Link a file to a path, replacing what is there; false across disks or without support for hard links."""
    temporary = _temporary_path(path)
    try:
        _in_folder(path, lambda: os.link(source, temporary))
    except OSError:
        return False  # copying instead works, or raises the actual error
    os.replace(temporary, path)
    with suppress(FileNotFoundError):
        os.unlink(temporary)  # it still exists if both were links to one file already
    _flush_folder(path)
    return True


def _flush_folder(path: str) -> None:
    """Write the name of a file to the disk: what was stored survives a loss of power."""
    with suppress(FileNotFoundError):
        descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _in_folder(path: str, create: Callable[[], Result]) -> Result:
    """Create a file in the folder of ``path``; try again if another process has just removed the empty folder."""
    for _ in range(MAX_ATTEMPTS - 1):
        # FileExistsError: the folder existed when makedirs tried to create it and was gone at its check
        with suppress(FileNotFoundError, FileExistsError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return create()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return create()


def _temporary_path(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name[:100]}.{secrets.token_hex(8)}"


@contextmanager
def _write_and_rename(filesystem: fsspec.AbstractFileSystem, path: str) -> Iterator[IO[bytes]]:
    temporary = _temporary_path(path)
    try:
        with _in_folder(path, lambda: filesystem.open(temporary, "wb")) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        filesystem.mv(temporary, path)
        _flush_folder(path)
    except BaseException:
        if filesystem.exists(temporary):
            filesystem.rm_file(temporary)
        raise


@contextmanager
def _write_multipart(filesystem: fsspec.AbstractFileSystem, path: str) -> Iterator[IO[bytes]]:
    file = filesystem.open(path, "wb", autocommit=False)
    try:
        yield file
        file.close()
    except BaseException:
        file.close()
        file.discard()
        raise
    file.commit()
