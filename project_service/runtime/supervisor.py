"""A process that keeps others running: start in order, start again what dies, stop everything, leave no orphan.

Nothing here knows what the children are: programs, or forks of the supervisor that call a function and share what it
has loaded. Each has a session of its own, so that a stop reaches whatever it has forked. On Linux the kernel kills the
children when the supervisor itself is killed; elsewhere they outlive that, and whoever starts again must end them
first.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from project_service.kit.processes import die_with, set_process_name

FIRST_DELAY = 0.2
LONGEST_DELAY = 5.0
SETTLED_AFTER = 30.0
START_SECONDS = 60.0
STOP_SECONDS = 7.5
LAST_STOP_SECONDS = 0.5

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

log = logging.getLogger(__name__)


class SupervisorError(Exception):
    """The children could not be brought up; the text names the one that failed."""


class ChildFailed(SupervisorError):
    """A child that runs once has ended with another status than 0."""

    def __init__(self, name: str, status: int) -> None:
        super().__init__(f"{name} ended with status {status}")
        self.status = status if status > 0 else 1


@dataclass(frozen=True)
class Child:
    """A program to keep running; with ``call`` a fork that calls it, and ends when it returns.

    ``ready`` tells whether it does its work: the next child is started then, and nothing is announced before all that
    have it say so. One that runs ``once`` has to end well before the next is started. An ``early`` one is started
    before all others: it takes long to get ready, and waits by itself for what it needs. Others rely on a ``needed``
    child: it is stopped once they are gone. ``pass_fds`` are open files it inherits under their number. ``prepare`` is
    called before every start.
    """

    name: str
    argv: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    call: Callable[[], object] | None = None
    ready: Callable[[], bool] | None = None
    needed: bool = False
    early: bool = False
    once: bool = False
    pass_fds: tuple[int, ...] = ()
    prepare: Callable[[], None] | None = None


class Fork:
    """A process that was forked to call a function, as ``subprocess.Popen`` is one for a program."""

    def __init__(self, child: Child) -> None:
        forking = multiprocessing.get_context("fork")
        # daemons of this kind may have no processes of their own
        self._process = forking.Process(target=_become, args=(child, os.getpid()), name=child.name, daemon=False)
        former = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # until it answers them itself
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self) -> None:
        self._process.join()


def _become(child: Child, supervisor: int) -> None:
    signal.set_wakeup_fd(-1)
    for number in (*STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    die_with(supervisor)
    set_process_name(child.name)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    if child.call is not None:
        child.call()


@dataclass
class _Running:
    """What became of a child."""

    child: Child
    process: subprocess.Popen[bytes] | Fork | None = None
    started: float = 0.0
    delay: float = FIRST_DELAY
    start_at: float = 0.0
    sessions: dict[int, float] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Runs children until a signal says stop, and gives them some seconds then. Needs the main thread."""

    def __init__(self, children: Sequence[Child], stop_seconds: float | None = None) -> None:
        self._all = [_Running(child) for child in children]
        self._stop_seconds = stop_seconds
        self._signal: int | None = None
        self._wake_read, self._wake_write = os.pipe()
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)

    def run(self, announce: Callable[[], None] | None = None) -> int:
        """Start all, call ``announce`` when all are ready, and return the exit status once a signal has stopped them.

        Raises ``ChildFailed`` when one that runs once fails, and ``SupervisorError`` when one is not ready within
        ``START_SECONDS``; all are stopped then.
        """
        former = {number: signal.signal(number, self._on_signal) for number in (*STOP_SIGNALS, signal.SIGCHLD)}
        former_wakeup = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        try:
            if self._start() and announce is not None:
                announce()
            while self._signal is None:
                self._tend(1.0)
            log.info("stopping on %s", signal.Signals(self._signal).name)
            return 0
        finally:
            self._stop()
            signal.set_wakeup_fd(former_wakeup)
            for number, handler in former.items():
                signal.signal(number, handler)
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number in STOP_SIGNALS:
            self._signal = number

    def _start(self) -> bool:
        """Bring up all children; False when a signal stopped that."""
        for running in self._all:
            if running.child.early:
                self._launch(running)
        for running in self._all:
            if not running.child.early:
                self._launch(running)
            if not (self._wait_ended(running) if running.child.once else self._wait_ready(running)):
                return False
        return True

    def _wait_ended(self, running: _Running) -> bool:
        while self._signal is None and running.process is not None:
            status = running.process.poll()
            if status:
                raise ChildFailed(running.child.name, status)
            if status == 0:
                return True
            self._tend(0.05)
        return False

    def _wait_ready(self, running: _Running) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while self._signal is None:
            if running.child.ready is None or (running.alive and running.child.ready()):
                return True
            if time.monotonic() > deadline:
                raise SupervisorError(f"{running.child.name} did not start within {START_SECONDS:g} seconds")
            self._tend(0.05)
        return False

    def _launch(self, running: _Running) -> None:
        child = running.child
        running.started = time.monotonic()
        try:
            if child.prepare is not None:
                child.prepare()
            running.process = Fork(child) if child.call else _run(child)
        except OSError as error:
            raise SupervisorError(f"{child.name} cannot be started: {error}") from error
        running.sessions[running.process.pid] = 0.0
        log.info("started %s, pid %d", child.name, running.process.pid)

    def _tend(self, timeout: float) -> None:
        """Wait for a signal, a death or ``timeout`` seconds, and start again what is due."""
        now = time.monotonic()
        due = [
            running.start_at - now
            for running in self._all
            if running.process and not running.alive and not running.child.once
        ]
        if any(len(running.sessions) > 1 for running in self._all):
            due.append(0.2)
        select.select([self._wake_read], [], [], max(0.0, min([timeout, *due])))
        with suppress(BlockingIOError):
            os.read(self._wake_read, 512)
        for running in self._all:
            if running.process is not None and self._signal is None and not running.child.once:
                self._revive(running, running.process, time.monotonic())

    def _revive(self, running: _Running, process: subprocess.Popen[bytes] | Fork, now: float) -> None:
        status = process.poll()
        current = process.pid
        if status is not None and running.start_at < running.started:
            if now - running.started > SETTLED_AFTER:
                running.delay = FIRST_DELAY
            running.start_at = now + running.delay
            log.error("%s ended with status %d, starting it again in %.1f s", running.child.name, status, running.delay)
            running.delay = min(running.delay * 2, LONGEST_DELAY)
            # What it had forked may finish what it does, within the time that a stop would give it.
            _signal_session(current, signal.SIGTERM)
            running.sessions[current] = now + STOP_SECONDS
        for session, deadline in list(running.sessions.items()):
            if deadline and not _members(session):
                del running.sessions[session]
            elif deadline and now > deadline:
                _signal_session(session, signal.SIGKILL)
        if status is not None and now >= running.start_at:
            self._launch(running)

    def _stop(self) -> None:
        """End everything within ``STOP_SECONDS`` + ``LAST_STOP_SECONDS``, those that others need at the end."""
        backwards = list(reversed(self._all))
        _end([running for running in backwards if not running.child.needed], self._stop_seconds or STOP_SECONDS)
        _end([running for running in backwards if running.child.needed], LAST_STOP_SECONDS)


def _run(child: Child) -> subprocess.Popen[bytes]:
    supervisor = os.getpid()
    return subprocess.Popen(  # what to run is the caller's choice
        list(child.argv),
        env=dict(child.env),
        stdin=subprocess.DEVNULL,
        pass_fds=child.pass_fds,
        start_new_session=True,
        preexec_fn=lambda: die_with(supervisor),  # noqa: PLW1509  # a supervisor has one thread
    )


def _end(stopping: list[_Running], seconds: float) -> None:
    """Ask all to end, wait for ``seconds`` at most, then kill whatever is left in their sessions."""
    deadline = time.monotonic() + seconds
    for running in stopping:
        if running.process is not None and running.alive:
            running.process.send_signal(signal.SIGTERM)
    while any(running.alive for running in stopping) and time.monotonic() < deadline:
        time.sleep(0.02)
    for running in stopping:
        if running.alive:
            log.warning("%s did not end within %g s and is killed", running.child.name, seconds)
        for session in running.sessions:
            _signal_session(session, signal.SIGKILL)
        if running.process is not None:
            running.process.wait()


def _signal_session(session: int, number: signal.Signals) -> None:
    """Signal every process of the session; it may be gone already."""
    for pid in _members(session):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _members(session: int) -> list[int]:
    """The processes of a session. Where the kernel does not list them: the leader, if it lives."""
    if not Path("/proc/self/stat").exists():
        try:
            return [session] if os.getsid(session) == session else []
        except ProcessLookupError:
            return []
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_bytes()
            except OSError:
                continue
            # After the program's name, which may hold anything: state, parent, group, session.
            state, _parent, _group, its_session = stat.rpartition(b")")[2].split()[:4]
            if int(its_session) == session and state != b"Z":
                found.append(int(entry))
    return found
