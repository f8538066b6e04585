"""Backup of a running instance, and restore into an empty one."""

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
from project_service.kit.db import migrations
from project_service.kit.db.base import MIGRATIONS
from project_service.kit.db.revisions import current_revision
from project_service.kit.db.session import db, snapshot, unit_of_work
from project_service.kit.security import key_ring
from project_service.kit.security.encryption import PROOF, KeyProof
from project_service.kit.storage import CHUNK_BYTES, Storage, storage
from project_service.runtime.backups import archive, tables
from project_service.runtime.backups.archive import BackupError
from project_service.settings import Settings

FORMAT_VERSION = 1
TABLES = "tables"


@dataclass(frozen=True, slots=True)
class Summary:
    """Contents of a backup: rows by table, files by storage tree."""

    rows: dict[str, int]
    files: dict[str, int]

    def __str__(self) -> str:
        """Return the summary for the operator."""
        files = ", ".join(f"{count} files in {name}" for name, count in self.files.items())
        return f"{sum(self.rows.values())} rows in {len(self.rows)} tables, {files}"


def back_up(settings: Settings, path: Path) -> Summary:
    """Write a backup: a snapshot of the database, and the files. The encryption keys are not included.

    Files are copied before the snapshot, and those added or changed since, again after it: each file that a row of the
    snapshot refers to existed at one of the two times.
    """
    trees = _trees()
    stored_digests: set[bytes] = set()
    with archive.writing(path) as writer, snapshot() as connection:
        for name, tree in trees.items():
            _copy(writer, name, tree, stored_digests)
        revision = current_revision(connection)  # the first statement: the snapshot is taken here
        if revision is None:
            raise BackupError("the database has no tables: there is nothing to back up")
        rows = {source.name: _dump(writer, connection, source) for source in tables.tables(connection)}
        counters = tables.counters(connection)
        connection.rollback()  # ends the snapshot, which prevents vacuuming, before copying files
        files = {name: _copy(writer, name, tree, stored_digests) for name, tree in trees.items()}
        writer.end(
            {
                "format": FORMAT_VERSION,
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
    """Restore a backup into an empty instance. It is verified first; the rows are committed at the end, all at once.

    Raises:
        BackupError: the file is damaged, from a newer release or encrypted with another key, or the instance not empty.

    """
    manifest = archive.verified(path)
    _check(manifest, settings)
    trees = _trees()
    _check_empty(trees)
    migrations.upgrade(manifest["revision"])
    with _deleted_on_failure(trees):
        for name, _size, content in archive.members(path):
            tree = trees.get(name.partition("/")[0])
            if tree is not None:
                with tree.write(name.partition("/")[2]) as file:
                    while chunk := content.read(CHUNK_BYTES):
                        file.write(chunk)
        _load(path, manifest)
    migrations.upgrade()
    return Summary(manifest["rows"], manifest["files"])


def _trees() -> dict[str, Storage]:
    # local repositories are recreated from packs, which are in the storage
    return {"storage": storage()}


def _copy(writer: archive.BackupWriter, name: str, tree: Storage, known: set[bytes]) -> int:
    """Add the files of a storage that are not known yet; return the number of all."""
    count = 0
    for entry in tree.listing():
        count += 1
        digest = hashlib.blake2b(repr((name, entry)).encode(), digest_size=16).digest()
        if digest not in known and _copy_file(writer, f"{name}/{entry.name}", tree, entry.name):
            known.add(digest)
    return count


def _copy_file(writer: archive.BackupWriter, member: str, tree: Storage, name: str) -> bool:
    """Add one file; return whether it still existed."""
    try:
        file = tree.open(name)
    except FileNotFoundError:
        return False
    with file:
        size = file.seek(0, 2)
        file.seek(0)
        writer.add(member, file, size)
    return True


def _dump(writer: archive.BackupWriter, connection: Any, source: Any) -> int:
    total = 0
    for number, (count, chunk) in enumerate(tables.dump(connection, source)):
        writer.add_bytes(f"{TABLES}/{source.name}/{number:06d}.jsonl", chunk)
        total += count
    return total


def _load(path: Path, manifest: dict[str, Any]) -> None:
    with unit_of_work():
        connection = db.session.connection()
        targets = {target.name: target for target in tables.tables(connection)}
        check_constraints = tables.defer_constraints(connection)
        for target in targets.values():
            connection.execute(target.delete())  # rows that migrations insert are in the backup as well
        for name, _size, content in archive.members(path):
            kind, _, rest = name.partition("/")
            if kind == TABLES:
                tables.load(connection, targets[rest.partition("/")[0]], content.read())
        tables.set_counters(connection, manifest["counters"])
        check_constraints()


def _check(manifest: dict[str, Any], settings: Settings) -> None:
    if manifest["format"] != FORMAT_VERSION:
        raise BackupError(f"the backup has format {manifest['format']}, this release reads {FORMAT_VERSION}")
    try:
        ScriptDirectory(str(MIGRATIONS)).get_revision(manifest["revision"])
    except CommandError as error:
        raise BackupError(
            f"the backup was written by release {manifest['version']}, which is newer: install that one first"
        ) from error
    try:
        key_ring.keyring().decrypt(manifest["proof"])
    except key_ring.SecretKeyMissing as error:
        raise BackupError(
            "the secrets in the backup were encrypted with another key: put the key file of that instance in place of "
            f"{settings.data_dir / key_ring.KEY_FILE}, or set PROJECT_SERVICE_SECRET_KEY to its key, and restore again"
        ) from error


def _check_empty(trees: dict[str, Storage]) -> None:
    with snapshot() as connection:
        found_tables = [source for source in tables.tables(connection) if source.name != KeyProof.__tablename__]
        full = [source.name for source in found_tables if not tables.is_empty(connection, source)]
    if full:
        raise BackupError(f"the database is not empty (there are {full[0]}): restore into an empty one")
    for tree in trees.values():
        first = next(tree.listing(), None)
        if first is not None:
            raise BackupError(f"{tree.root} is not empty (there is {first.name}): restore into an empty one")


@contextmanager
def _deleted_on_failure(trees: dict[str, Storage]) -> Iterator[None]:
    """Delete the restored files if the rows cannot be written, so that the restore can be repeated."""
    try:
        yield
    except BaseException:
        for tree in trees.values():
            for file in list(tree.listing()):
                tree.delete(file.name)
        raise
