"""Load on a web server with ``wrk``, what it costs, and the base that all requests are compared with."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.contract.service import REPOSITORY, children_of

WORKERS = 2
CONNECTIONS = 8
CONFIGURATION = "--config=python:project_service.runtime.web_server"
# the server that others know: two processes with two threads each
BASE_CONFIGURATION = ("--worker-class=gthread", "--threads=2")
RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
COUNT = re.compile(r"(\d+) requests in")
REFUSED = re.compile(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)")

runs = itertools.count()


@dataclass(frozen=True)
class Speed:
    """Things done in a second of the clock, and in a second of the web workers' processor time.

    Other work on the machine disturbs the second less; but it leaves out the time of PostgreSQL.
    """

    by_clock: float
    by_work: float

    def times(self, count: int) -> Speed:
        return Speed(self.by_clock * count, self.by_work * count)

    def over(self, base: Speed) -> Speed:
        return Speed(self.by_clock / base.by_clock, self.by_work / base.by_work)


def speed(
    web: int,
    address: str,
    seconds: int,
    script: Path | None = None,
    headers: Mapping[str, str] | None = None,
    **environment: str,
) -> Speed:
    """How many requests get answered; anything but success, or a known answer, ends the measurement."""
    if shutil.which("wrk") is None:
        sys.exit("wrk is needed to measure with (Debian has it in the package of this name)")
    sent = [f"-H{name}: {text}" for name, text in (headers or {}).items()]
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *([f"-s{script}"] if script else []), *sent, address]
    env = os.environ | environment | {"RUN": f"{os.getpid()}-{next(runs)}"}
    before = work_of(web)
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
    work = work_of(web) - before
    if refused := REFUSED.search(told):
        sys.exit(f"{address}: {refused[0]}")
    rate, count = RATE.search(told), COUNT.search(told)
    if rate is None or count is None:
        sys.exit(told)
    return Speed(float(rate[1]), int(count[1]) / work)


def work_of(pid: int) -> float:
    """The processor time that the children of a process have taken, in seconds."""
    ticks = 0
    for child in children_of(pid):
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int | str, name: str = "VmRSS") -> int:
    """The memory of a process that is in the machine, or with ``VmHWM`` the most it ever was, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


@contextmanager
def hello() -> Iterator[tuple[int, str]]:
    """Process and address of the base."""
    with gunicorn("benchmarks.hello:app", "/hello", configuration=BASE_CONFIGURATION) as served:
        yield served


@contextmanager
def gunicorn(
    application: str,
    path: str,
    python: str = sys.executable,
    configuration: tuple[str, ...] = (CONFIGURATION,),
    **environment: str,
) -> Iterator[tuple[int, str]]:
    """Process and address of an application, by default served as we serve ourselves, once it answers at ``path``."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    address = f"http://127.0.0.1:{port}{path}"
    bind = f"--bind=127.0.0.1:{port}"
    command = [python, "-m", "gunicorn", *configuration, bind, f"--workers={WORKERS}", application]
    env = os.environ | {"PYTHONPATH": str(REPOSITORY)} | environment
    process = subprocess.Popen(command, cwd=REPOSITORY, env=env)
    try:
        deadline = time.monotonic() + 30
        while True:
            with suppress(OSError), urllib.request.urlopen(address, timeout=2):
                break
            if time.monotonic() > deadline or process.poll() is not None:
                sys.exit(f"{application} does not answer at {address}")
            time.sleep(0.1)
        yield process.pid, address
    finally:
        process.terminate()
        process.wait()
