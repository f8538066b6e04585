"""The supervisor, with children that do next to nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from project_service.runtime.startup import Preparation
from project_service.runtime.supervisor import Child, ChildFailed, ForkedProcess, Supervisor, SupervisorError

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 30.0

# Writes its pid, and that of a grandchild in a process group of its own, then does what its last argument says.
DUMMY = """
import os, signal, subprocess, sys, time
directory, name, manner = sys.argv[1:]
if manner == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen(["sleep", "600"], process_group=0)
open(f"{directory}/{name}.grandchild", "w").write(str(grandchild.pid))
def stop(*_):
    open(f"{directory}/stopped", "a").write(name + " ")
    grandchild.kill()
    sys.exit()
if manner == "polite":
    signal.signal(signal.SIGTERM, stop)
open(f"{directory}/started", "a").write(name + " ")
os.rename(f"{directory}/{name}.grandchild", f"{directory}/{name}.grandchild.pid")
open(f"{directory}/{name}.new", "w").write(str(os.getpid()))
os.rename(f"{directory}/{name}.new", f"{directory}/{name}.pid")
time.sleep(600)
"""

PARENT = """
import os, sys
from project_service.runtime import supervisor
from project_service.runtime.supervisor import Child, Supervisor
directory, dummy = sys.argv[1:3]
supervisor.STOP_SECONDS = 1.0 if "web=stubborn" in sys.argv else 30.0
supervisor.LAST_STOP_SECONDS = 30.0
def child(name, manner):
    ready = lambda: os.path.exists(f"{directory}/{name}.pid")
    def call():
        sys.argv = ["-c", directory, name, manner]
        exec(dummy, {})
    if KIND == "fork":
        return Child(name, call=call, needed=name == "base", ready=ready)
    words = [sys.executable, "-c", dummy, directory, name, manner]
    return Child(name, words, dict(os.environ), needed=name == "base", ready=ready)
children = [child(*entry.split("=")) for entry in sys.argv[3:]]
sys.exit(Supervisor(children).run(lambda: print("all are ready", flush=True)))
"""


class Tree:
    """A supervisor in a process of its own, with its dummies, which are programs or forks."""

    def __init__(self, directory: Path, kind: str, *children: str) -> None:
        self.directory = directory
        program = f"KIND = {kind!r}\n{PARENT}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(directory), DUMMY, *children], cwd=REPOSITORY, stdout=subprocess.PIPE
        )

    def announcement(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def pid(self, name: str) -> int:
        return int((self.directory / f"{name}.pid").read_text())

    def all_pids(self) -> list[int]:
        return [int(file.read_text()) for file in self.directory.glob("*.pid")]

    def notes(self, kind: str) -> list[str]:
        return (self.directory / kind).read_text().split()


@pytest.fixture(params=["program", "fork"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Tree]]:
    """Starts a supervisor with dummies, each given as ``name=manner``."""
    trees: list[Tree] = []

    def start(*children: str) -> Tree:
        trees.append(Tree(tmp_path, request.param, *children))
        return trees[-1]

    yield start
    for started in trees:
        started.process.kill()
        started.process.wait()
        assert started.process.stdout is not None
        started.process.stdout.close()
        for pid in started.all_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def lives(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not asked after does not."""
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def soon(happens: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    deadline = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_children_start_in_order_and_are_announced_when_all_are_ready(tree: Callable[..., Tree]) -> None:
    started = tree("base=polite", "web=polite", "worker=polite")

    assert started.announcement() == b"all are ready\n"
    assert started.notes("started")[0] == "base"
    assert sorted(started.notes("started")) == ["base", "web", "worker"]


def test_required_processes_stop_last(tree: Callable[..., Tree]) -> None:
    started = tree("base=polite", "web=polite", "worker=polite")
    started.announcement()

    started.process.send_signal(signal.SIGTERM)

    assert started.process.wait(PATIENCE) == 0
    assert started.notes("stopped")[-1] == "base"
    assert soon(lambda: not any(lives(pid) for pid in started.all_pids()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_other_signals_stop_the_service(tree: Callable[..., Tree], number: signal.Signals) -> None:
    started = tree("base=polite")
    started.announcement()

    started.process.send_signal(number)

    assert started.process.wait(PATIENCE) == 0


def test_a_killed_child_is_restarted_and_its_forks_end(tree: Callable[..., Tree]) -> None:
    started = tree("base=polite", "web=plain")
    started.announcement()
    first, grandchild = started.pid("web"), started.pid("web.grandchild")

    os.kill(first, signal.SIGKILL)

    assert soon(lambda: started.pid("web") != first and lives(started.pid("web")))
    assert soon(lambda: not lives(grandchild))


def test_a_child_that_does_not_stop_is_killed_with_its_forks(tree: Callable[..., Tree]) -> None:
    started = tree("base=polite", "web=stubborn")
    started.announcement()

    started.process.send_signal(signal.SIGTERM)

    assert started.process.wait(PATIENCE) == 0
    assert soon(lambda: not any(lives(pid) for pid in started.all_pids()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_a_killed_supervisor_leaves_no_child(tree: Callable[..., Tree]) -> None:
    started = tree("base=polite", "web=stubborn")
    started.announcement()

    started.process.kill()

    assert soon(lambda: not any(lives(started.pid(name)) for name in ("base", "web")))


def test_a_signal_right_after_the_fork_is_not_lost() -> None:
    former = signal.signal(signal.SIGTERM, lambda *_: None)  # as a supervisor has a handler of its own
    try:
        for _ in range(20):
            fork = ForkedProcess(Child("worker", call=lambda: time.sleep(600)))
            fork.send_signal(signal.SIGTERM)
            assert soon(lambda fork=fork: fork.poll() == -signal.SIGTERM, 5.0)
    finally:
        signal.signal(signal.SIGTERM, former)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists processes in this way")
def test_signals_to_a_fork_do_not_wake_the_supervisor(tmp_path: Path) -> None:
    def wait_for_the_end() -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
        (tmp_path / "begun").touch()
        time.sleep(600)

    waking, wake = os.pipe()
    os.set_blocking(wake, False)
    former = signal.set_wakeup_fd(wake)
    try:
        fork = ForkedProcess(Child("worker", call=wait_for_the_end))
        assert soon((tmp_path / "begun").exists)
        fork.send_signal(signal.SIGTERM)
        assert soon(lambda: fork.poll() == 3)
    finally:
        signal.set_wakeup_fd(former)
    os.close(wake)

    with open(waking, "rb") as woken:
        assert bytes([signal.SIGTERM]) not in woken.read()


def test_forks_have_names_of_their_own(tmp_path: Path) -> None:
    def tell() -> None:
        (tmp_path / "name").write_text(Path("/proc/self/comm").read_text().strip())

    fork = ForkedProcess(Child("a worker with a long name", call=tell))
    fork.wait()

    assert (fork.poll(), (tmp_path / "name").read_text()) == (0, "a worker with a")


def test_a_failing_fork_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise LookupError("what is wrong")

    fork = ForkedProcess(Child("worker", call=fail))
    fork.wait()

    assert fork.poll() == 1
    assert "LookupError: what is wrong" in capfd.readouterr().err


def test_a_child_that_cannot_be_started_is_reported() -> None:
    with pytest.raises(SupervisorError, match="web cannot be started"):
        Supervisor([Child("web", ["/no/such/program"], {})]).run()


def test_a_child_that_never_gets_ready_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("project_service.runtime.supervisor.START_SECONDS", 1.0)
    deaf = Child("web", [sys.executable, "-c", "import sys; sys.exit(1)"], dict(os.environ), ready=lambda: False)

    with pytest.raises(SupervisorError, match="web did not start within 1 seconds"):
        Supervisor([deaf]).run()


def once(tmp_path: Path, program: str) -> list[Child]:
    """A child that runs once, one that starts before it and one that starts behind it; each leaves its mark."""
    mark = "from pathlib import Path; import sys, time; Path(sys.argv[1]).touch(); time.sleep(float(sys.argv[2]))"

    def child(name: str, seconds: float, **options: bool) -> Child:
        words = [sys.executable, "-c", mark, str(tmp_path / name), str(seconds)]
        return Child(name, words, dict(os.environ), ready=(tmp_path / name).exists, **options)

    return [
        Child("first", [sys.executable, "-c", program, str(tmp_path)], dict(os.environ), once=True),
        child("early", 600, early=True),
        child("late", 600),
    ]


def test_a_one_time_process_runs_before_the_next_and_is_not_restarted(tmp_path: Path) -> None:
    program = """
import sys, time, pathlib
folder = pathlib.Path(sys.argv[1])
while not (folder / "early").exists():
    time.sleep(0.01)
(folder / f"ran-{time.time_ns()}").write_text(str((folder / "late").exists()))
"""
    supervisor = Supervisor(once(tmp_path, program))

    def stop() -> None:
        supervisor._wait_and_restart(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    assert supervisor.run(stop) == 0
    assert [path.read_text() for path in tmp_path.glob("ran-*")] == ["False"]


@pytest.mark.parametrize(("program", "status"), [("import sys; sys.exit(3)", 3), ("import os; os.abort()", 1)])
def test_a_failed_one_time_process_stops_the_service(tmp_path: Path, program: str, status: int) -> None:
    children = once(tmp_path, program)
    supervisor = Supervisor(children)

    with pytest.raises(ChildFailed, match="first ended with status") as failed:
        supervisor.run()

    assert failed.value.status == status
    assert not (tmp_path / "late").exists()
    assert not any(running.alive for running in supervisor._all)


def test_a_stop_ends_a_one_time_process(tmp_path: Path) -> None:
    program = "import sys, time, pathlib; (pathlib.Path(sys.argv[1]) / 'begun').touch(); time.sleep(600)"
    supervisor = Supervisor(once(tmp_path, program))

    def stop(*_: object) -> None:
        if (tmp_path / "begun").exists():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            signal.setitimer(signal.ITIMER_REAL, 0.1)

    former = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)

    assert supervisor.run() == 0
    signal.signal(signal.SIGALRM, former)
    assert not any(running.alive for running in supervisor._all)


def test_waiting_processes_continue_after_the_preparation_or_its_end(tmp_path: Path) -> None:
    preparation = Preparation(tmp_path)
    preparation.wait()
    preparation.begin()
    waiting = threading.Thread(target=preparation.wait)
    waiting.start()
    waiting.join(0.1)
    held = waiting.is_alive()

    preparation.end()
    waiting.join(PATIENCE)

    assert (held, waiting.is_alive()) == (True, False)
    dead = subprocess.Popen(["true"])
    dead.wait()
    (tmp_path / "preparing").write_text(str(dead.pid))
    preparation.wait()
