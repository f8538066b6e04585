"""Verification and rotation of the key that secrets are encrypted with.

The database has a text that was encrypted with the key of the instance (``KeyProof``). A process whose key does not
decrypt it refuses its first request or job, so that it writes nothing that the other processes could not decrypt.
"""

from __future__ import annotations

from sqlalchemy import Column, Table, Text, column, select, table, update
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit.db.base import Base, Key, Model
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.security import key_ring
from project_service.kit.security.key_ring import Encrypted
from project_service.settings import Settings

BATCH = 200
SAMPLE = 20
PROOF = "encrypted with the key of this instance"


class KeyProof(Model):
    """A text that only the right key decrypts: one row, written by the first ``db upgrade``."""

    __tablename__ = "key_proofs"

    proof: Mapped[str] = mapped_column(Encrypted)


def encrypted_columns() -> list[tuple[Table, Column[str]]]:
    """All encrypted columns, found through the models."""
    return [
        (table, column)
        for table in Base.metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, key_ring.Encrypted)
    ]


def prove_key() -> None:
    """Raise ``SecretKeyMissing`` unless the configured keys decrypt the proof of this database."""
    with unit_of_work(write=False):
        db.session.scalars(select(KeyProof.proof)).all()


def leave_proof() -> None:
    """Store the proof, unless there is one; ``SecretKeyMissing`` if stored secrets have another key."""
    try_secrets()
    with unit_of_work():
        if db.session.scalar(select(KeyProof.id).limit(1)) is None:
            db.session.add(KeyProof(proof=PROOF))


def try_secrets() -> int:
    """Decrypt some values of each encrypted column; return their number. ``SecretKeyMissing`` names the column."""
    count = 0
    for stored, encrypted in encrypted_columns():
        raw = table(stored.name, column(encrypted.name, Text))
        with unit_of_work(write=False):
            sample = select(raw.c[encrypted.name]).where(raw.c[encrypted.name].is_not(None)).limit(SAMPLE)
            values = list(db.session.scalars(sample))
        for value in values:
            try:
                key_ring.keyring().decrypt(value)
            except key_ring.SecretKeyMissing as error:
                raise key_ring.SecretKeyMissing(f"{stored.name}.{encrypted.name}: {error}") from error
        count += len(values)
    return count


def rotate(settings: Settings) -> int:
    """Generate a key and encrypt all secrets with it, in batches; return their number.

    Running processes read the changed key file. Old keys decrypt until ``forget``, since such a process may still write
    with one. An interrupted rotation can be run again. Keys of the environment are not generated: the operator sets
    ``PROJECT_SERVICE_SECRET_KEY=new,old``.
    """
    with key_ring.changing_keys(settings):
        try_secrets()
        if not settings.secret_key:
            key_ring.add_key(settings)
        return _renew_all(key_ring.init(settings))


def forget(settings: Settings) -> int:
    """Encrypt all secrets with the newest key, and remove the others; return the number of secrets."""
    with key_ring.changing_keys(settings):
        count = _renew_all(key_ring.init(settings))
        if not settings.secret_key:
            key_ring.drop_old_keys(settings)
            key_ring.init(settings)
    return count


def _renew_all(keyring: key_ring.KeyRing) -> int:
    return sum(_rotate_column(keyring, table, column.name) for table, column in encrypted_columns())


def _rotate_column(keyring: key_ring.KeyRing, encrypted: Table, name: str) -> int:
    raw = table(encrypted.name, column("id", Key), column(name, Text))
    last, count = 0, 0
    while True:
        with unit_of_work():
            batch = select(raw.c.id, raw.c[name]).where(raw.c.id > last, raw.c[name].is_not(None))
            rows = list(db.session.execute(batch.order_by(raw.c.id).limit(BATCH).with_for_update()))
            for row_id, stored in rows:
                db.session.execute(update(raw).where(raw.c.id == row_id).values({name: keyring.renew(stored)}))
        if not rows:
            return count
        last, count = rows[-1][0], count + len(rows)
