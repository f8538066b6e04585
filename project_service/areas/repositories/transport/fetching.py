"""Fetching: ``git upload-pack`` on a local repository, its output streamed to the client."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from project_service.areas.repositories.transport.pkt_lines import encode_line
from project_service.areas.repositories.transport.request_bodies import CHUNK_BYTES
from project_service.domain.repositories import git

MAX_TRANSFER_SECONDS = 6 * 3600
MAX_REQUEST_BYTES = 10 << 20
INVALID = encode_line("ERR upload-pack: the request is not valid")
VERSION = re.compile(r"version=\d")
# refs that are neither listed nor pushed
HIDDEN = ("refs/keep-around", "refs/remotes", "refs/tmp")
CONFIG = (
    "uploadpack.allowFilter=true",
    "uploadpack.allowAnySHA1InWant=true",
    "uploadpack.keepAlive=5",
    *(f"transfer.hideRefs={prefix}" for prefix in HIDDEN),
)


class RequestTooLarge(Exception):
    """The request of a fetch is larger than any client sends."""


def protocol_variables(header: str | None) -> dict[str, str]:
    """Return the environment variable with the protocol version that the client requested."""
    version = VERSION.fullmatch(header or "")
    return {"GIT_PROTOCOL": version[0]} if version else {}


def advertise(folder: Path, protocol: dict[str, str]) -> bytes:
    """Return what ``git upload-pack`` says first: refs, or the capabilities of version 2."""
    arguments = ("upload-pack", "--stateless-rpc", "--advertise-refs", str(folder))
    with git.started(*arguments, folder=None, config=CONFIG, variables=protocol, max_seconds=60) as process:
        out, _ = process.communicate()
    return out


@contextmanager
def upload_pack(folder: Path, body: IO[bytes], protocol: dict[str, str]) -> Iterator[Iterator[bytes]]:
    """Run ``git upload-pack`` with the whole request; provide an iterator of its output. It ends with the block.

    Raises:
        RequestTooLarge: the request has more than ``MAX_REQUEST_BYTES``.

    """
    with tempfile.TemporaryFile() as file:  # git writes while it reads: with a pipe both sides could wait
        _copy_request(body, file)
        with git.started(
            *("upload-pack", "--stateless-rpc", str(folder)),
            folder=None,
            size=git.size_on_disk(folder),
            stdin=file,
            config=CONFIG,
            variables=protocol,
            max_seconds=MAX_TRANSFER_SECONDS,
        ) as process:
            yield _output_of(process)


def _copy_request(body: IO[bytes], file: IO[bytes]) -> None:
    received = 0
    while data := body.read(CHUNK_BYTES):
        received += len(data)
        if received > MAX_REQUEST_BYTES:
            raise RequestTooLarge
        file.write(data)
    file.seek(0)


def _output_of(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    is_empty = True
    while process.stdout is not None and (data := os.read(process.stdout.fileno(), CHUNK_BYTES)):
        is_empty = False
        yield data
    if is_empty and process.wait():  # git says only to its own machine what is wrong
        yield INVALID
