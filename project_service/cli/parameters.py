"""Parameters and files that several commands read the same way."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

import click

from project_service.domain.accounts.users import User, user_by
from project_service.domain.namespaces import Group, namespace_by
from project_service.domain.projects import Project, project_by
from project_service.kit.http.fields import Date

Row = TypeVar("Row")
STANDARD_STREAM = Path("-")
# a file that is read: a regular file, a named pipe, or standard input
READABLE_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
WRITABLE_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


def project_named(id_or_path: str) -> Project:
    """The project of an argument; an error that names what there is not."""
    return _existing(project_by(id_or_path), f"there is no project {id_or_path}")


def user_named(id_or_username: str) -> User:
    """The user of an argument or option."""
    return _existing(user_by(id_or_username), f"there is no user {id_or_username}")


def group_named(id_or_path: str) -> Group:
    """The group of an argument."""
    namespace = namespace_by(id_or_path)
    return _existing(namespace if isinstance(namespace, Group) else None, f"there is no group {id_or_path}")


def _existing(row: Row | None, text: str) -> Row:
    if row is None:
        raise click.ClickException(text)
    return row


def parse_day(text: str | None, option: str) -> dt.date | None:
    """The date of an option; a usage error when the text is not one."""
    try:
        return Date().read(text) if text else None
    except ValueError as error:
        raise click.BadParameter("not a date", param_hint=option) from error


@contextmanager
def seekable_stream(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A stream that can be read more than once: a pipe is copied to a temporary file."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        try:
            shutil.copyfileobj(file, copy)
        except OSError as error:
            raise click.ClickException(f"the report cannot be read ({error})") from error
        yield copy


@contextmanager
def regular_file(file: Path) -> Iterator[Path]:
    """The path of a file that can be read more than once: a pipe is copied to a temporary file."""
    if file != STANDARD_STREAM and file.is_file():
        yield file
        return
    with tempfile.NamedTemporaryFile() as copy:
        with click.open_file(str(file), "rb") as source:
            shutil.copyfileobj(source, copy)
            copy.flush()
        yield Path(copy.name)


@contextmanager
def writable_target(file: Path) -> Iterator[Path | IO[bytes]]:
    """Where to write an archive, checked before it is made.

    A path for a regular file or a new one; an open stream for standard output, pipes and devices, which can be opened
    only once.
    """
    if file == STANDARD_STREAM:
        yield sys.stdout.buffer
        return
    is_new = not os.path.lexists(file)
    try:
        opened = open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise click.BadParameter(f"cannot be written ({error.strerror})", param_hint="'FILE'") from error
    if not file.is_file():
        try:
            yield opened
        finally:
            with suppress(OSError):  # the writer flushes and reports its errors; closing raises the same one again
                opened.close()
        return
    opened.close()
    if is_new:
        file.unlink()  # created again when there is something to write
    yield file
