"""Tries a harness on inputs that coverage leads to: ``python -m tests.fuzzing archives FOLDER -max_total_time=600``.

All that follows the name are the arguments of libFuzzer: folders of inputs (new ones are written into the first) and
options. ``mutating`` looks after the form of inputs; what is covered is counted in the readers and in ``tarfile``.
"""

from __future__ import annotations

import random
import sys

import atheris
from zlib_ng import gzip_ng

with atheris.instrument_imports(
    include=["project_service.transfers", "project_service.areas.vulnerabilities", "tarfile"]
):
    from project_service.transfers.archive import extraction
    from tests.fuzzing import harnesses, mutating


def mutate(raw: bytes, most: int, seed: int) -> bytes:
    """One input out of another, of ``most`` bytes."""

    def change(some: bytes) -> bytes:
        return bytes(atheris.Mutate(some, len(some) + 64))

    return MUTATE(raw, random.Random(seed), change)[:most]


def try_once(raw: bytes) -> None:
    """One input; libFuzzer wants nothing back."""
    HARNESS(raw)


# the same decoder without its thread, which costs a hundred times what a small archive does
extraction._gunzip = lambda archive: gzip_ng.open(archive, "rb")
NAME = sys.argv.pop(1)
HARNESS, MUTATE = harnesses.HARNESSES[NAME], mutating.MUTATORS[NAME]
atheris.Setup(sys.argv, try_once, custom_mutator=mutate)
atheris.Fuzz()
