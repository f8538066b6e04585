"""Files: a directory on this machine, or a bucket that all machines share. Names are paths relative to its root."""

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

CHUNK = 1 << 20
FILE = "file"
HEALTH = "health"
ATTEMPTS = 100  # each takes microseconds
# several machines change one bucket: a list of what was there a while ago is worth nothing
OPTIONS: dict[str, dict[str, Any]] = {FILE: {"auto_mkdir": True}, "s3": {"use_listings_cache": False}}


Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Found:
    """An object of the storage; ``stamp`` is another once its content may be."""

    name: str
    stamp: tuple[str, ...]


@dataclass(frozen=True)
class Storage:
    """Where files are kept; an object appears whole or not at all."""

    protocol: str
    root: str

    @classmethod
    def at(cls, url: str) -> Storage:
        """Open the storage of a ``file://`` or ``s3://`` address."""
        protocol, _, rest = url.partition("://")
        return cls(protocol, (unquote(rest) if protocol == FILE else rest).rstrip("/"))

    @property
    def filesystem(self) -> fsspec.AbstractFileSystem:
        """What reads and writes; a forked process gets one of its own."""
        return _filesystem(self.protocol, os.getpid())

    def path(self, name: str) -> str:
        """The full path of a name; a name that climbs out of the root, or is written in a second way, is refused."""
        if name.startswith("/") or name != posixpath.normpath(name) or name.split("/", maxsplit=1)[0] in (".", ".."):
            raise ValueError(f"{name!r} is not a name in the storage")
        return f"{self.root}/{name}"

    def open(self, name: str) -> IO[bytes]:
        """Open an object to read it."""
        return cast(IO[bytes], self.filesystem.open(self.path(name), "rb"))

    @contextmanager
    def write(self, name: str) -> Iterator[IO[bytes]]:
        """Write an object: it appears, or takes the place of the one before, when the block has ended without error."""
        path = self.path(name)
        writing = _write_beside if self.protocol == FILE else _write_in_parts
        with writing(self.filesystem, path) as file:
            yield file

    def store(self, source: IO[bytes], name: str) -> None:
        """Copy what can be read into an object."""
        with self.write(name) as target:
            shutil.copyfileobj(source, target, CHUNK)

    def fetch(self, name: str, place: Path) -> None:
        """Copy an object into a file, which is the caller's."""
        with self.open(name) as source, place.open("wb") as target:
            shutil.copyfileobj(source, target, CHUNK)

    def keep(self, place: Path, name: str) -> None:
        """Make an object of a file, which must not change any more; nothing is copied on the same disk."""
        if not (self.protocol == FILE and _has_link(str(place), self.path(name))):
            with place.open("rb") as source:
                self.store(source, name)

    def lend(self, name: str, place: Path) -> None:
        """Have an object as a file, which may be read and removed, and not be changed; as ``keep`` copies."""
        if not (self.protocol == FILE and _has_link(self.path(name), str(place))):
            self.fetch(name, place)

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        return bool(self.filesystem.exists(self.path(name)))

    def size(self, name: str) -> int:
        """Bytes of an object."""
        return int(self.filesystem.size(self.path(name)))

    def delete(self, name: str) -> None:
        """Remove an object, and the folders that are empty then; one that is gone already is fine."""
        path = self.path(name)
        with suppress(FileNotFoundError):
            self.filesystem.rm_file(path)
        if self.protocol == FILE:
            self._remove_empty_folders(posixpath.dirname(name))

    def _remove_empty_folders(self, folder: str) -> None:
        while "/" in folder:  # those of the first level are few, and always wanted again
            try:
                os.rmdir(self.path(folder))
            except FileNotFoundError:
                pass  # somebody else has removed it, and perhaps not yet what is above
            except OSError:
                return  # there is something in it
            folder = posixpath.dirname(folder)

    def listing(self) -> Iterator[Found]:
        """Every object that is whole, a folder at a time; one that comes or goes meanwhile may be in it or not."""
        for _folder, _folders, files in self.filesystem.walk(self.root, detail=True, on_error=_raise_unless_gone):
            for path, info in sorted((entry["name"], entry) for entry in files.values()):
                name = path[len(self.root) + 1 :]
                if not posixpath.basename(name).startswith(".") and not name.startswith(f"{HEALTH}/"):
                    yield Found(name, tuple(str(info.get(key)) for key in ("size", "mtime", "LastModified", "ETag")))

    def names(self, folder: str) -> list[str]:
        """What lies below a folder, also what was only half written."""
        try:
            found = self.filesystem.find(self.path(folder))
        except FileNotFoundError:
            return []
        return sorted(path.removeprefix(self.root).lstrip("/") for path in found)

    def modified(self, name: str) -> dt.datetime:
        """When an object was written."""
        moment: dt.datetime = self.filesystem.modified(self.path(name))
        return moment.astimezone(dt.UTC)

    def check(self) -> None:
        """Write, read and remove a small object; raises what the storage says when it does not work."""
        name = f"{HEALTH}/{secrets.token_hex(8)}"
        with self.write(name) as file:
            file.write(b"ok")
        try:
            with self.open(name) as file:
                if file.read() != b"ok":
                    raise OSError("the storage did not give back what was written")
        finally:
            self.delete(name)


def open_storage(settings: Settings) -> Storage:
    """The storage of these settings."""
    return Storage.at(settings.storage_url)


def storage() -> Storage:
    """The storage of this instance."""
    found: Storage = current_app.extensions["storage"]
    return found


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


@functools.cache
def _filesystem(protocol: str, _process: int) -> fsspec.AbstractFileSystem:
    return fsspec.filesystem(protocol, skip_instance_cache=True, **OPTIONS.get(protocol, {}))


def _has_link(place: str, path: str) -> bool:
    """Give a file a second name, in place of what has it; not between two disks, or where there are no links."""
    fresh = _beside(path)
    try:
        _in_folder(path, lambda: os.link(place, fresh))
    except OSError:
        return False  # whoever copies it then is told what is really wrong
    os.replace(fresh, path)
    with suppress(FileNotFoundError):
        os.unlink(fresh)  # it stays where both are names of one file already
    return True


def _in_folder(path: str, make: Callable[[], Made]) -> Made:
    """Make a file beside ``path``; again when another process has just removed the folder as an empty one."""
    for _ in range(ATTEMPTS - 1):
        # the second comes of a folder that was there when it was to be made, and not a moment later
        with suppress(FileNotFoundError, FileExistsError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return make()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return make()


def _beside(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name[:100]}.{secrets.token_hex(8)}"


@contextmanager
def _write_beside(filesystem: fsspec.AbstractFileSystem, path: str) -> Iterator[IO[bytes]]:
    fresh = _beside(path)
    try:
        with _in_folder(path, lambda: filesystem.open(fresh, "wb")) as file:
            yield file
        filesystem.mv(fresh, path)
    except BaseException:
        if filesystem.exists(fresh):
            filesystem.rm_file(fresh)
        raise


@contextmanager
def _write_in_parts(filesystem: fsspec.AbstractFileSystem, path: str) -> Iterator[IO[bytes]]:
    file = filesystem.open(path, "wb", autocommit=False)
    try:
        yield file
        file.close()
    except BaseException:
        file.close()
        file.discard()
        raise
    file.commit()
