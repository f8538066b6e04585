"""The service as users start it: one command on an empty data directory, and all its processes."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("project-service")
INSTALLED_COMMAND = Path(".venv/bin/project-service")  # in the folder of another version
PASSWORD = "a password for the tests"
TOKEN = "a-token-for-the-tests-0123456789"
START_SECONDS = 120.0
AUTHOR = {f"GIT_{role}_{key}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
ADDRESS = re.compile(r"listens on (\S+)")
PROGRAMS = {"valkey-server": "redis", "redis-server": "redis"}


class Service:
    """``project-service serve`` on a directory; coverage of its processes is not measured unless it is ``shared``.

    ``tree`` is the folder of another version with a virtual environment of its own, to compare with.
    """

    def __init__(
        self, directory: Path, *, is_measured: bool = False, tree: Path | None = None, **environment: str
    ) -> None:
        self.directory = directory
        self.tree = tree or REPOSITORY
        self.command = tree / INSTALLED_COMMAND if tree else COMMAND
        self.is_measured = is_measured
        self.log = directory / "serve.log"
        self.environment = environment
        self.url = ""
        self.pid = 0
        self.patience = 10.0

    def start(self) -> float:
        """Start the service and wait for its URL; return the seconds."""
        began = time.monotonic()
        self.directory.mkdir(exist_ok=True)
        output = self.directory / "serve.out"
        removed = ("PROJECT_SERVICE_",) if self.is_measured else ("PROJECT_SERVICE_", "COVERAGE_")
        env = {name: text for name, text in os.environ.items() if not name.startswith(removed)}
        env |= {
            "PYTHONPATH": str(self.tree),
            "PROJECT_SERVICE_DATA_DIR": str(self.directory / "data"),
            "PROJECT_SERVICE_ROOT_TOKEN": TOKEN,
            "PROJECT_SERVICE_ROOT_PASSWORD": PASSWORD,
            **self.environment,
        }
        with output.open("wb") as out, self.log.open("ab") as log:
            process = subprocess.Popen(
                [self.command, "serve", "--port", "0", "--workers", "2"], cwd=self.tree, env=env, stdout=out, stderr=log
            )
        self.pid = process.pid
        found = wait_for(lambda: ADDRESS.search(output.read_text()) or process.poll() is not None, START_SECONDS)
        if not isinstance(found, re.Match):
            raise RuntimeError(f"the service does not start:\n{self.log.read_text()[-4000:]}")
        process.returncode = 0  # avoids a ResourceWarning if the process outlives this object
        self.url = found[1]
        return time.monotonic() - began

    def stop(self, number: signal.Signals = signal.SIGTERM) -> float:
        """Stop the service and wait for its end; return the seconds."""
        began = time.monotonic()
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
        wait_for(lambda: not is_running(self.pid), 60)
        return time.monotonic() - began

    def get(self, path: str) -> int:
        """Return the status of a request on a new connection; 0 without a response."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=10)
        try:
            connection.request("GET", path, headers={"PRIVATE-TOKEN": TOKEN})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def child(self, role: str) -> int:
        """Return the pid of the child process with a role; 0 while there is none."""
        return self.children().get(role, 0)

    def children(self) -> dict[str, int]:
        """Return the pids of all child processes, by role."""
        return {role_of(pid): pid for pid in children_of(self.pid)}

    def lines(self, **values: str) -> list[dict[str, object]]:
        """Return the log entries with these values."""
        found = []
        for line in self.log.read_text().splitlines():
            with suppress(json.JSONDecodeError):
                entry = json.loads(line)
                if values.items() <= entry.items():
                    found.append(entry)
        return found


def git(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run git in a folder; its output and errors are text."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_TERMINAL_PROMPT": "0", **AUTHOR}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done


@contextmanager
def shared(directory: Path) -> Iterator[Service]:
    """One service for all processes of a test run: the first starts it, the last stops it."""
    directory.mkdir(exist_ok=True)
    service = Service(directory, is_measured=True)
    with state_of(directory) as state:
        if not state.get("users"):
            service.start()
            state.update(pid=service.pid, url=service.url, users=0)
        service.pid, service.url = state["pid"], state["url"]
        state["users"] += 1
    try:
        yield service
    finally:
        with state_of(directory) as state:
            state["users"] -= 1
            if not state["users"]:
                service.stop()


@contextmanager
def state_of(directory: Path) -> Iterator[dict[str, object]]:
    """The state that the processes of a run share, under a lock."""
    with (directory / "state.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        state = json.loads(file.read() or "{}")
        yield state
        file.truncate(0)
        json.dump(state, file)


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> object:
    """Return the first true result of ``condition``, or its last result after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process."""
    with suppress(OSError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in found if is_running(int(child))]
    return []


def tree_of(pid: int) -> list[int]:
    """Return all descendants of a process."""
    return [one for child in children_of(pid) for one in (child, *tree_of(child))]


def command_of(pid: int) -> list[str]:
    """Return the words of the command line of a process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace(" ", "\0").strip("\0").split("\0")
    return [""]


def name_of(pid: int) -> str:
    """Return the name of a process; forks of one command set names of their own."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def role_of(pid: int) -> str:
    """Return what a child process of the service does; in older versions the web server is a program of its own."""
    name = name_of(pid)
    return "web" if "gunicorn" in command_of(pid) else PROGRAMS.get(name, name)


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    return state_of_process(pid) not in ("", "Z")


def state_of_process(pid: int) -> str:
    """Return the kernel's letter for the state of a process; an empty text if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def kill(pid: object) -> int:
    """Kill a process with SIGKILL, as the kernel does when memory runs out."""
    assert isinstance(pid, int)
    assert pid, "there is no such process"  # 0 would kill our own process group
    os.kill(pid, signal.SIGKILL)
    return pid


def free_port() -> int:
    """A free port outside the range from which the kernel chooses ports, so that no other process gets it first."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = 10_000 + secrets.randbelow(lowest - 10_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
