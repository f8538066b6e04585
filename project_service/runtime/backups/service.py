"""Making a back-up while the service goes on, and restoring one into an empty instance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alembic.script import ScriptDirectory
from alembic.util import CommandError

from project_service.areas.instance.version import OWN
from project_service.kit import clock
from project_service.kit.db import migrating
from project_service.kit.db.base import MIGRATIONS
from project_service.kit.db.session import db, snapshot, unit_of_work
from project_service.kit.security import key_ring
from project_service.kit.security.encryption import PROOF, KeyProof
from project_service.kit.storage import CHUNK, Storage, storage
from project_service.runtime.backups import archive, tables
from project_service.runtime.backups.archive import BackupError
from project_service.settings import Settings

FORMAT = 1
TABLES = "tables"


@dataclass(frozen=True, slots=True)
class Summary:
    """What a back-up holds: rows by table, files by the tree they belong to."""

    rows: dict[str, int]
    files: dict[str, int]

    def __str__(self) -> str:
        """For the operator."""
        files = ", ".join(f"{count} files in {name}" for name, count in self.files.items())
        return f"{sum(self.rows.values())} rows in {len(self.rows)} tables, {files}"


def back_up(settings: Settings, path: Path) -> Summary:
    """Write everything that cannot be made anew, as of one moment. The keys of secrets are not in it.

    Files are copied before that moment and, what has come or changed since, after it: whatever a row of that moment
    refers to was there in one of the two.
    """
    trees = _trees()
    known: set[bytes] = set()
    with archive.writing(path) as writer, snapshot() as connection:
        for name, tree in trees.items():
            _copy(writer, name, tree, known)
        revision = tables.revision(connection)  # the first statement: this is the moment
        if revision is None:
            raise BackupError("the database has no tables: there is nothing to back up")
        rows = {source.name: _dump(writer, connection, source) for source in tables.tables(connection)}
        counters = tables.counters(connection)
        connection.rollback()  # what follows may take long, and a snapshot keeps old rows alive
        files = {name: _copy(writer, name, tree, known) for name, tree in trees.items()}
        writer.end(
            {
                "format": FORMAT,
                "made_at": clock.isoformat(clock.now()),
                "version": OWN,
                "revision": revision,
                "proof": key_ring.keyring().encrypt(PROOF),
                "counters": counters,
                "rows": rows,
                "files": files,
            }
        )
    return Summary(rows, files)


def restore(settings: Settings, path: Path) -> Summary:
    """Fill an empty instance. All is examined before anything is written; the rows appear at the end, all at once.

    Raises ``BackupError``: a damaged file, another key, a newer release, an instance that is not empty.
    """
    manifest = archive.verified(path)
    _check(manifest, settings)
    trees = _trees()
    _check_empty(trees)
    migrating.upgrade(manifest["revision"])
    with _undone_on_failure(trees):
        for name, _size, content in archive.members(path):
            tree = trees.get(name.partition("/")[0])
            if tree is not None:
                with tree.write(name.partition("/")[2]) as file:
                    while piece := content.read(CHUNK):
                        file.write(piece)
        _load(path, manifest)
    migrating.upgrade()
    return Summary(manifest["rows"], manifest["files"])


def _trees() -> dict[str, Storage]:
    # bare repositories are made of bundles, which are in the storage
    return {"storage": storage()}


def _copy(writer: archive.Writer, name: str, tree: Storage, known: set[bytes]) -> int:
    """Add the files of a tree that are new; how many there are."""
    count = 0
    for found in tree.listing():
        count += 1
        seen = hashlib.blake2b(repr((name, found)).encode(), digest_size=16).digest()
        if seen not in known and _copy_file(writer, f"{name}/{found.name}", tree, found.name):
            known.add(seen)
    return count


def _copy_file(writer: archive.Writer, member: str, tree: Storage, name: str) -> bool:
    """Add one file; whether it was still there."""
    try:
        file = tree.open(name)
    except FileNotFoundError:
        return False
    with file:
        size = file.seek(0, 2)
        file.seek(0)
        writer.add(member, file, size)
    return True


def _dump(writer: archive.Writer, connection: Any, source: Any) -> int:
    total = 0
    for number, (count, chunk) in enumerate(tables.dump(connection, source)):
        writer.add_bytes(f"{TABLES}/{source.name}/{number:06d}.jsonl", chunk)
        total += count
    return total


def _load(path: Path, manifest: dict[str, Any]) -> None:
    with unit_of_work():
        connection = db.session.connection()
        targets = {target.name: target for target in tables.tables(connection)}
        judge = tables.constraints_wait(connection)
        for target in targets.values():
            connection.execute(target.delete())  # what an upgrade put there is in the back-up as well
        for name, _size, content in archive.members(path):
            kind, _, rest = name.partition("/")
            if kind == TABLES:
                tables.load(connection, targets[rest.partition("/")[0]], content.read())
        tables.set_counters(connection, manifest["counters"])
        judge()


def _check(manifest: dict[str, Any], settings: Settings) -> None:
    if manifest["format"] != FORMAT:
        raise BackupError(f"the back-up has the form {manifest['format']}, this release reads {FORMAT}")
    try:
        ScriptDirectory(str(MIGRATIONS)).get_revision(manifest["revision"])
    except CommandError as error:
        raise BackupError(
            f"the back-up was made by release {manifest['version']}, which is newer: install that one first"
        ) from error
    try:
        key_ring.keyring().decrypt(manifest["proof"])
    except key_ring.SecretKeyMissing as error:
        raise BackupError(
            "the secrets in the back-up were encrypted with another key: put the key file of that instance in place of "
            f"{settings.data_dir / key_ring.KEY_FILE}, or set PROJECT_SERVICE_SECRET_KEY to its key, and restore again"
        ) from error


def _check_empty(trees: dict[str, Storage]) -> None:
    with snapshot() as connection:
        found_tables = [source for source in tables.tables(connection) if source.name != KeyProof.__tablename__]
        full = [source.name for source in found_tables if not tables.is_empty(connection, source)]
    if full:
        raise BackupError(f"the database is not empty (there are {full[0]}): restore into an empty one")
    for tree in trees.values():
        found = next(tree.listing(), None)
        if found is not None:
            raise BackupError(f"{tree.root} is not empty (there is {found.name}): restore into an empty one")


@contextmanager
def _undone_on_failure(trees: dict[str, Storage]) -> Iterator[None]:
    """Take the files back when the rows cannot be written, so that it can be tried again."""
    try:
        yield
    except BaseException:
        for tree in trees.values():
            for found in list(tree.listing()):
                tree.delete(found.name)
        raise
