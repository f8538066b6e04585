"""Process supervisor: start children in order, restart those that die, stop all of them, leave no orphans.

A child is a program, or a fork of the supervisor that calls a function and shares its loaded memory. Each has a session
of its own, so that a stop reaches the processes it has forked. On Linux the kernel kills the children when the
supervisor is killed; on other systems they survive and must be ended by hand before the next start.
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

from project_service.kit.logs import LIFECYCLE
from project_service.kit.processes import die_with, set_process_name

MIN_RESTART_SECONDS = 0.2
MAX_RESTART_SECONDS = 5.0
STABLE_SECONDS = 30.0  # a child that has run so long is restarted with the first delay again
START_SECONDS = 60.0
STOP_SECONDS = 7.5
LAST_STOP_SECONDS = 0.5

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

log = logging.getLogger(LIFECYCLE)


class SupervisorError(Exception):
    """The children could not be started; the message names the one that failed."""


class ChildFailed(SupervisorError):
    """A child that runs ``once`` has ended with another status than 0."""

    def __init__(self, name: str, status: int) -> None:
        super().__init__(f"{name} ended with status {status}")
        self.status = status if status > 0 else 1


@dataclass(frozen=True)
class Child:
    """Description of a process to keep running: the program ``argv``, or a fork that calls ``call``.

    - ``ready``: whether it is up; the next child is started then, and the tree is announced once all are ready.
    - ``once``: it runs once and must end with status 0 before the next child is started.
    - ``early``: it is started before all others, because it is slow to start and waits for its dependencies itself.
    - ``needed``: others depend on it; it is stopped after them.
    - ``pass_fds``: open file descriptors that a program inherits.
    - ``close_fds``: open file descriptors that a fork closes, since it inherits all.
    - ``prepare``: called before every start.
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
    close_fds: tuple[int, ...] = ()
    prepare: Callable[[], None] | None = None


class ForkedProcess:
    """A forked process that calls a function, with the interface of ``subprocess.Popen`` that is used here."""

    def __init__(self, child: Child) -> None:
        forking = multiprocessing.get_context("fork")
        # a daemonic process may not have children
        self._process = forking.Process(target=_run_in_child, args=(child, os.getpid()), name=child.name, daemon=False)
        former = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # until the child handles them
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


def _run_in_child(child: Child, supervisor: int) -> None:
    signal.set_wakeup_fd(-1)
    for number in (*STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    die_with(supervisor)
    for descriptor in child.close_fds:
        os.close(descriptor)
    set_process_name(child.name)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    if child.call is not None:
        child.call()


@dataclass
class _ChildState:
    """The process of a child, and when to restart it. ``sessions`` maps session ids to the time of their SIGKILL."""

    child: Child
    process: subprocess.Popen[bytes] | ForkedProcess | None = None
    started: float = 0.0
    delay: float = MIN_RESTART_SECONDS
    start_at: float = 0.0
    sessions: dict[int, float] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Runs children until a stop signal, then stops them within ``stop_seconds``. Needs the main thread."""

    def __init__(self, children: Sequence[Child], stop_seconds: float | None = None) -> None:
        self._all = [_ChildState(child) for child in children]
        self._stop_seconds = stop_seconds
        self._signal: int | None = None
        self._wake_read, self._wake_write = os.pipe()
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)

    def run(self, announce: Callable[[], None] | None = None) -> int:
        """Start all children, call ``announce`` when all are ready, return the exit status after a stop signal.

        Raises:
            ChildFailed: one that runs ``once`` failed; all are stopped.
            SupervisorError: one was not ready within ``START_SECONDS``; all are stopped.

        """
        former = {number: signal.signal(number, self._on_signal) for number in (*STOP_SIGNALS, signal.SIGCHLD)}
        former_wakeup = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        try:
            if self._start() and announce is not None:
                announce()
            while self._signal is None:
                self._wait_and_restart(1.0)
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
        """Start all children; false if a stop signal came meanwhile."""
        for running in self._all:
            if running.child.early:
                self._launch(running)
        for running in self._all:
            if not running.child.early:
                self._launch(running)
            if not (self._wait_ended(running) if running.child.once else self._wait_ready(running)):
                return False
        return True

    def _wait_ended(self, running: _ChildState) -> bool:
        while self._signal is None and running.process is not None:
            status = running.process.poll()
            if status:
                raise ChildFailed(running.child.name, status)
            if status == 0:
                return True
            self._wait_and_restart(0.05)
        return False

    def _wait_ready(self, running: _ChildState) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while self._signal is None:
            if running.child.ready is None or (running.alive and running.child.ready()):
                return True
            if time.monotonic() > deadline:
                raise SupervisorError(f"{running.child.name} did not start within {START_SECONDS:g} seconds")
            self._wait_and_restart(0.05)
        return False

    def _launch(self, running: _ChildState) -> None:
        child = running.child
        running.started = time.monotonic()
        try:
            if child.prepare is not None:
                child.prepare()
            running.process = ForkedProcess(child) if child.call else _run(child)
        except OSError as error:
            raise SupervisorError(f"{child.name} cannot be started: {error}") from error
        running.sessions[running.process.pid] = 0.0
        log.info("started %s, pid %d", child.name, running.process.pid)

    def _wait_and_restart(self, timeout: float) -> None:
        """Wait for a signal, the end of a child or ``timeout`` seconds, and restart children that are due."""
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
                self._restart_if_due(running, running.process, time.monotonic())

    def _restart_if_due(
        self, running: _ChildState, process: subprocess.Popen[bytes] | ForkedProcess, now: float
    ) -> None:
        status = process.poll()
        current = process.pid
        if status is not None and running.start_at < running.started:
            if now - running.started > STABLE_SECONDS:
                running.delay = MIN_RESTART_SECONDS
            running.start_at = now + running.delay
            log.error("%s ended with status %d, restarting it in %.1f s", running.child.name, status, running.delay)
            running.delay = min(running.delay * 2, MAX_RESTART_SECONDS)
            # processes that it has forked get the same time to finish as at a stop
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
        """Stop all children within ``STOP_SECONDS`` + ``LAST_STOP_SECONDS``, the ``needed`` ones last."""
        backwards = list(reversed(self._all))
        _terminate([running for running in backwards if not running.child.needed], self._stop_seconds or STOP_SECONDS)
        _terminate([running for running in backwards if running.child.needed], LAST_STOP_SECONDS)


def _run(child: Child) -> subprocess.Popen[bytes]:
    supervisor = os.getpid()
    return subprocess.Popen(
        list(child.argv),
        env=dict(child.env),
        stdin=subprocess.DEVNULL,
        pass_fds=child.pass_fds,
        start_new_session=True,
        preexec_fn=lambda: die_with(supervisor),  # noqa: PLW1509  # safe: the supervisor has one thread
    )


def _terminate(stopping: list[_ChildState], seconds: float) -> None:
    """Send SIGTERM, wait up to ``seconds``, then send SIGKILL to what is left of the sessions."""
    deadline = time.monotonic() + seconds
    for running in stopping:
        if running.process is not None and running.alive:
            running.process.send_signal(signal.SIGTERM)
    while any(running.alive for running in stopping) and time.monotonic() < deadline:
        time.sleep(0.02)
    for running in stopping:
        if running.alive:
            log.warning("%s did not stop within %g s and is killed", running.child.name, seconds)
        for session in running.sessions:
            _signal_session(session, signal.SIGKILL)
        if running.process is not None:
            running.process.wait()


def _signal_session(session: int, number: signal.Signals) -> None:
    """Signal every process of a session, which may have ended already."""
    for pid in _members(session):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _members(session: int) -> list[int]:
    """Return the processes of a session; without ``/proc`` only its leader, if it is alive."""
    if not Path("/proc/self/stat").exists():
        try:
            return [session] if os.getsid(session) == session else []
        except ProcessLookupError:
            return []
    process_ids = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_bytes()
            except OSError:
                continue
            # after the program's name, which may contain anything: state, parent, group, session
            state, _parent, _group, its_session = stat.rpartition(b")")[2].split()[:4]
            if int(its_session) == session and state != b"Z":
                process_ids.append(int(entry))
    return process_ids
