"""Receiving a push: its commands, its pack in a folder of its own, and the report to the client.

The body is read to its end before the response begins; then a thread checks and applies the push, while the client
gets empty packets that keep the connection open.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import structlog
from flask import Flask, current_app

from project_service.areas.repositories.transport import pushing
from project_service.areas.repositories.transport.pkt_lines import (
    FLUSH,
    PACK_DATA,
    PROGRESS,
    BadLine,
    encode_band,
    encode_line,
    read_lines,
)
from project_service.areas.repositories.transport.push_facts import PushFacts
from project_service.areas.repositories.transport.push_rules import PushRefused
from project_service.areas.repositories.transport.pushed_trees import has_wide_tree
from project_service.areas.repositories.transport.pushing import NOT_PUSHED, RequestedPush
from project_service.areas.repositories.transport.request_bodies import CHUNK_BYTES
from project_service.domain.repositories import git, packs
from project_service.domain.repositories.eviction import incoming_folder
from project_service.domain.repositories.local_folders import in_use
from project_service.domain.repositories.refs import SHA, ZERO, RefChange
from project_service.domain.repositories.views import decode_name, encode_name, write_bare_repository

CAPABILITIES = (
    "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta push-options "
    "object-format=sha1 agent=project-service"
)
MAX_COMMAND_BYTES = 32 << 20
MAX_OPTION_BYTES = 1 << 20
MAX_REFS = 10_000
MAX_PACK_SECONDS = 6 * 3600
MAX_DRAINED_BYTES = 1 << 30
MAX_ERROR_BYTES = 4096
KEEP_ALIVE_SECONDS = 5.0
KEEP_ALIVE = encode_line(bytes([PACK_DATA]))
DECLINED = "pre-receive hook declined"
UNPACKER = "unpacker error"
WIDE_TREE = "A folder of this push has more than {} entries. Divide it into several folders."
# messages about objects that old programs wrote are no errors
STRICT = "--strict=badTimezone=ignore,missingSpaceBeforeDate=ignore,zeroPaddedFilemode=ignore"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PushCommands:
    """What a client asks for: changes of refs, and how it wants to be answered."""

    changes: tuple[RefChange, ...]
    capabilities: frozenset[str]

    @property
    def has_pack(self) -> bool:
        """Whether a pack follows: unless refs are only deleted."""
        return any(not change.deletes for change in self.changes)


def advertisement(folder: Path) -> bytes:
    """Return the refs that can be pushed, and the capabilities."""
    done = git.run("show-ref", folder=folder)
    lines = [line for line in done.stdout.splitlines() if not line[41:].startswith(tuple(map(str.encode, NOT_PUSHED)))]
    lines = lines or [f"{ZERO} capabilities^{{}}".encode()]
    first = encode_line(lines[0] + b"\0" + CAPABILITIES.encode() + b"\n")
    return first + b"".join(encode_line(line + b"\n") for line in lines[1:]) + FLUSH


def read_commands(body: IO[bytes]) -> PushCommands | None:
    """Read the commands of a push; ``None`` for the probe that git sends before a large push.

    Raises:
        BadLine: the body is not what git sends.

    """
    changes: dict[str, RefChange] = {}
    capabilities: frozenset[str] = frozenset()
    for line in read_lines(body, MAX_COMMAND_BYTES):
        raw, nul, rest = line.rstrip(b"\n").partition(b"\0")
        if nul and not capabilities:
            capabilities = frozenset(rest.decode(errors="replace").split())
        if raw.startswith(b"shallow "):
            continue
        change = _parse_command(raw)
        if change.name in changes:
            raise BadLine("a ref is named twice")
        if len(changes) <= MAX_REFS:  # one more than allowed, so that the push is refused
            changes[change.name] = change
    if not changes:
        return None
    if "push-options" in capabilities:
        for _ in read_lines(body, MAX_OPTION_BYTES):
            pass
    return PushCommands(tuple(changes.values()), capabilities)


def _parse_command(raw: bytes) -> RefChange:
    old, _, rest = raw.partition(b" ")
    new, _, name = rest.partition(b" ")
    try:
        ids = old.decode("ascii"), new.decode("ascii")
    except UnicodeDecodeError as error:
        raise BadLine("a command has no object ids") from error
    if not all(SHA.fullmatch(object_id) for object_id in ids) or not name.startswith(b"refs/") or b"\\" in name:
        raise BadLine("a command is not valid")
    return RefChange(decode_name(name), ids[0].lower(), ids[1].lower())


@contextmanager
def quarantine(view: Path) -> Iterator[Path]:
    """Provide a bare repository for new objects, with the refs and the objects of a view."""
    folder = incoming_folder() / f"push-{secrets.token_hex(8)}.git"
    head = (view / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")
    try:
        borrowed = view / "objects/info/alternates"
        objects = Path(borrowed.read_text().strip()) if borrowed.exists() else view / "objects"
        write_bare_repository(folder, head, (view / "packed-refs").read_bytes(), objects)
        with in_use(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _feed(process: subprocess.Popen[bytes], body: IO[bytes]) -> None:
    is_open, drained = True, 0
    while process.stdin is not None and (data := body.read(CHUNK_BYTES)):
        if is_open:
            try:
                process.stdin.write(data)
            except BrokenPipeError:  # git refuses the pack: the client listens when it has sent it all
                is_open = False
        else:
            drained += len(data)
            if drained > MAX_DRAINED_BYTES:
                break
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


def run_index_pack(folder: Path, body: IO[bytes], max_bytes: int, size: int) -> str:
    """Read the rest of a body as a pack into a repository; return the error of git, empty if there is none."""
    limit = [f"--max-input-size={max_bytes}"] if max_bytes else []
    with tempfile.TemporaryFile() as errors:
        with git.started(
            *("index-pack", "--stdin", "--fix-thin", STRICT, *limit),
            folder=folder,
            size=size,
            stdin=subprocess.PIPE,
            stderr=errors,
            max_seconds=MAX_PACK_SECONDS,
        ) as process:
            _feed(process, body)
            if process.stdout is not None:
                process.stdout.read()  # the name of the pack; ends with the process
            process.wait()
        errors.seek(0)
        text = errors.read(MAX_ERROR_BYTES).decode(errors="replace").strip()
    return (text or "index-pack failed") if process.returncode else ""


class PushReport:
    """The answer to a push in the way that the client understands."""

    def __init__(self, commands: PushCommands) -> None:
        self._commands = commands
        self._with_bands = "side-band-64k" in commands.capabilities
        self._with_status = not commands.capabilities.isdisjoint({"report-status", "report-status-v2"})

    def keep_alive(self) -> bytes:
        """A packet without content."""
        return KEEP_ALIVE if self._with_bands else b""

    def refused(self, text: str) -> bytes:
        """A push that breaks a rule: no ref was changed."""
        message = "".join(f"GitLab: {line}\n" for line in text.splitlines()[:1])
        message += "".join(f"{line}\n" for line in text.splitlines()[1:])
        return self.finished(dict.fromkeys(self._names(), DECLINED), message)

    def not_unpacked(self, text: str) -> bytes:
        """A pack that git cannot use."""
        failures = dict.fromkeys(self._names(), UNPACKER)
        return self.finished(failures, f"{text}\n", unpack="index-pack abnormal exit")

    def finished(self, failures: dict[str, str], message: str = "", unpack: str = "ok") -> bytes:
        """The outcome for each ref."""
        lines = [encode_line(f"unpack {unpack}\n")]
        for name in self._names():
            raw, failure = encode_name(name), failures.get(name)
            lines.append(encode_line(b"ok %s\n" % raw if failure is None else b"ng %s %s\n" % (raw, failure.encode())))
        report = b"".join(lines) + FLUSH if self._with_status else b""
        if not self._with_bands:
            return report
        text = encode_band(PROGRESS, message.encode()) if message else b""
        return text + encode_band(PACK_DATA, report) + FLUSH

    def _names(self) -> list[str]:
        return [change.name for change in self._commands.changes]


def apply_received(push: RequestedPush, folder: Path, report: PushReport, notice: str) -> bytes:
    """Check and apply a push whose objects are in a quarantine folder; return the answer."""
    stored: list[packs.StoredPack] = []
    done: dict[str, str] | None = None
    try:
        if len(push.changes) > MAX_REFS:
            raise PushRefused(f"You cannot push more than {MAX_REFS} refs at once.")
        max_entries = current_app.config["SETTINGS"].max_folder_entries
        if max_entries and has_wide_tree(folder, max_entries):
            raise PushRefused(WIDE_TREE.format(max_entries))
        facts = PushFacts(folder)
        failures = pushing.prepare(push, facts)
        if any(not change.deletes and change.name not in failures for change in push.changes):
            stored = packs.store_packs(push.project_id, folder)
        done = pushing.apply(push, facts, stored, failures)
        used = any(not change.deletes and change.name not in done for change in push.changes)
        if not used:
            packs.remove_stored(stored)
        return report.finished(done, notice)
    except PushRefused as refused:
        packs.remove_stored(stored)
        return report.refused(refused.text)
    except Exception as error:
        log.error("a push failed", exc_info=error)
        return report.finished(dict.fromkeys((change.name for change in push.changes), "internal server error"))


def answer(app: Flask, push: RequestedPush, folder: Path, report: PushReport, notice: str) -> Iterator[bytes]:
    """Apply a push in a thread; generate packets that keep the connection open, then the report."""

    def work() -> bytes:
        with app.app_context():
            return apply_received(push, folder, report, notice)

    with ThreadPoolExecutor(1, "push") as executor:
        future = executor.submit(work)
        while True:
            try:
                yield future.result(KEEP_ALIVE_SECONDS)
                return
            except NotDone:
                yield report.keep_alive()
