"""The key that secrets are encrypted with: whether it is the right one, and how it is changed.

The database keeps a text that was encrypted with the instance's key. A process with another key, or with one it has
just made because the file had gone, finds out with its first request or before its first job, and writes nothing that
the others could not read.
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
    """A text that only the right key reads; there is one row, once the first upgrade has written it."""

    __tablename__ = "key_proofs"

    proof: Mapped[str] = mapped_column(Encrypted)


def encrypted_columns() -> list[tuple[Table, Column[str]]]:
    """Every column that is ciphertext at rest, read from the models, so that none is forgotten."""
    return [
        (found, one)
        for found in Base.metadata.sorted_tables
        for one in found.columns
        if isinstance(one.type, key_ring.Encrypted)
    ]


def prove_key() -> None:
    """Raise ``SecretKeyMissing`` unless the keys at hand are those of this database."""
    with unit_of_work(write=False):
        db.session.scalars(select(KeyProof.proof)).all()


def leave_proof() -> None:
    """Have the database know its key from now on; ``SecretKeyMissing`` when what it holds was written with another."""
    try_secrets()
    with unit_of_work():
        if db.session.scalar(select(KeyProof.id).limit(1)) is None:
            db.session.add(KeyProof(proof=PROOF))


def try_secrets() -> int:
    """Decrypt some values of every encrypted column; how many. ``SecretKeyMissing`` names the column it cannot read."""
    count = 0
    for stored, encrypted in encrypted_columns():
        raw = table(stored.name, column(encrypted.name, Text))
        with unit_of_work(write=False):
            some = select(raw.c[encrypted.name]).where(raw.c[encrypted.name].is_not(None)).limit(SAMPLE)
            values = list(db.session.scalars(some))
        for value in values:
            try:
                key_ring.keyring().decrypt(value)
            except key_ring.SecretKeyMissing as error:
                raise key_ring.SecretKeyMissing(f"{stored.name}.{encrypted.name}: {error}") from error
        count += len(values)
    return count


def rotate(settings: Settings) -> int:
    """Make a new key and encrypt everything with it, in small units; the number of secrets.

    Processes at work take the new key up by themselves. The old keys stay to read with until ``forget``, so that what
    such a process wrote with the old key meanwhile is not lost; stopped half-way, it can be run again. With keys from
    the environment the operator puts the new one in front: ``PROJECT_SERVICE_SECRET_KEY=new,old``.
    """
    with key_ring.changing_keys(settings):
        try_secrets()
        if not settings.secret_key:
            key_ring.add_key(settings)
        return _renew_all(key_ring.init(settings))


def forget(settings: Settings) -> int:
    """Encrypt once more what is left, and forget all keys but the newest; the number of secrets."""
    with key_ring.changing_keys(settings):
        count = _renew_all(key_ring.init(settings))
        if not settings.secret_key:
            key_ring.drop_old_keys(settings)
            key_ring.init(settings)
    return count


def _renew_all(keyring: key_ring.KeyRing) -> int:
    return sum(_rotate_column(keyring, found, one.name) for found, one in encrypted_columns())


def _rotate_column(keyring: key_ring.KeyRing, encrypted: Table, name: str) -> int:
    raw = table(encrypted.name, column("id", Key), column(name, Text))
    last, count = 0, 0
    while True:
        with unit_of_work():
            some = select(raw.c.id, raw.c[name]).where(raw.c.id > last, raw.c[name].is_not(None))
            rows = list(db.session.execute(some.order_by(raw.c.id).limit(BATCH).with_for_update()))
            for row_id, stored in rows:
                db.session.execute(update(raw).where(raw.c.id == row_id).values({name: keyring.renew(stored)}))
        if not rows:
            return count
        last, count = rows[-1][0], count + len(rows)
