"""Helpers shared by the tests of archives."""

from __future__ import annotations

import gzip
import io
import tarfile

MIB = 1 << 20


GOOD = {"VERSION": b"0.2.4", "tree/project.json": b"{}"}


BROKEN = "The archive is damaged or incomplete"


SECRET = "a" * 32


def member(name, kind=tarfile.REGTYPE, target="", **fields):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def tape(*parts, form=tarfile.GNU_FORMAT):
    """A tar of members, each alone or with its content."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as tar:
        for part in parts:
            info, content = part if isinstance(part, tuple) else (part, b"")
            info.size = len(content) or info.size
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


def good_with(*parts):
    """An archive that would be fine without these members."""
    files = [(member(f"./{name}"), content) for name, content in GOOD.items()]
    return gzip.compress(tape(*files, *parts), 1)


def error_of(state):
    assert state["import_status"] == "failed", state
    return state["import_error"].partition(" - ")[2]
