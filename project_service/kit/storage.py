"""Files: a directory on this machine, or a bucket that all machines share. Names are paths relative to its root."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import IO, Any, cast

import fsspec
from flask import current_app

from project_service.settings import Settings

CHUNK = 1 << 20


@dataclass(frozen=True)
class Storage:
    """Where files are kept; an object appears whole or not at all."""

    filesystem: fsspec.AbstractFileSystem
    root: str

    @classmethod
    def at(cls, url: str) -> Storage:
        """Open the storage of a ``file://`` or ``s3://`` address."""
        scheme, _, rest = url.partition("://")
        options: dict[str, Any] = {"auto_mkdir": True} if scheme == "file" else {}
        return cls(fsspec.filesystem(scheme, **options), rest.rstrip("/"))

    def path(self, name: str) -> str:
        """The full path of a name; a name that climbs out of the root is refused."""
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"{name!r} is not a name in the storage")
        return f"{self.root}/{name}"

    def open(self, name: str, mode: str = "rb") -> IO[bytes]:
        """Open an object; one that is written appears when it is closed."""
        return cast(IO[bytes], self.filesystem.open(self.path(name), mode))

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        return bool(self.filesystem.exists(self.path(name)))

    def size(self, name: str) -> int:
        """Bytes of an object."""
        return int(self.filesystem.size(self.path(name)))

    def delete(self, name: str) -> None:
        """Remove an object; one that is gone already is fine."""
        try:
            self.filesystem.rm_file(self.path(name))
        except FileNotFoundError:
            return

    def check(self) -> None:
        """Write, read and remove a small object; raises what the storage says when it does not work."""
        name = f"health/{secrets.token_hex(8)}"
        with self.open(name, "wb") as file:
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
