"""The commands of the README, run unchanged against a started service."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text()
ADDRESS = "http://127.0.0.1:8080"
HOST = "127.0.0.1:8080"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS, OUTPUTS = ("sh", "python"), ("json", "text")
LISTENING_LINE = re.compile(r"listens on (http://\S+)")
BETWEEN = "-- the next block of the tour --"
STOP_SECONDS = 60


@dataclass
class Block:
    """Commands of the README and their expected output."""

    language: str
    commands: str
    shown: str | None = None


@dataclass
class Service:
    """A service started on an empty data directory."""

    address: str
    data_dir: Path
    printed: str


def blocks_of(text: str) -> list[Block]:
    found: list[Block] = []
    for language, content in FENCE.findall(text):
        if language in COMMANDS:
            found.append(Block(language, content))
        elif language in OUTPUTS:
            assert found[-1].shown is None, f"two outputs of one block: {content}"
            found[-1].shown = content
    return found


def tour() -> list[Block]:
    return blocks_of(README.partition("\n## A tour")[2].partition("\n## ")[0])


def pattern_of(shown: str) -> str:
    """Return expected output as a regular expression: ``…`` matches any characters."""
    return ".*".join(re.escape(part) for part in shown.strip().split("…"))


def looks_like(shown: str, printed: str) -> bool:
    return re.fullmatch(pattern_of(shown), printed.replace("\r", "").strip(), re.DOTALL) is not None


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("tour")
    data_dir = directory / "var"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROJECT_SERVICE_")}
    read_end, terminal = pty.openpty()
    with (
        open(read_end) as output,
        (directory / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "project_service", "serve", "--port", "0", "--workers", "1"],
            cwd=REPOSITORY,
            env={**environment, "PROJECT_SERVICE_DATA_DIR": str(data_dir)},
            stdout=terminal,
            stderr=log,
        ) as process,
    ):
        try:
            os.close(terminal)
            printed = ""
            for line in output:
                printed += line
                if heard := LISTENING_LINE.search(line):
                    yield Service(heard[1], data_dir, printed)
                    break
            else:
                pytest.fail(f"the service did not start:\n{(directory / 'log').read_text()}")
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


@pytest.fixture(scope="module")
def outputs(service: Service) -> list[str]:
    """The output of each block, run one after the other in one shell."""
    bash = shutil.which("bash")
    assert bash is not None
    script = ["set -euo pipefail"]
    for block in tour():
        text = (
            block.commands.replace(HOST, service.address.removeprefix("http://"))
            .replace("var/initial_credentials", str(service.data_dir / "initial_credentials"))
            .replace(".venv/bin/", f"{Path(sys.executable).parent}/")
        )
        script.append(f"{sys.executable} - <<'END'\n{text}END" if block.language == "python" else text)
        script.append(f"echo '{BETWEEN}'")
    ran = subprocess.run(
        [bash, "-c", "\n".join(script)],
        cwd=REPOSITORY,
        env=os.environ | {"PROJECT_SERVICE_DATA_DIR": str(service.data_dir)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.split(f"{BETWEEN}\n")[:-1]


def test_the_first_start_prints_what_the_readme_shows(service: Service) -> None:
    shown = next(block.shown for block in blocks_of(README) if block.commands == "make serve\n")

    assert shown is not None
    assert looks_like(shown.replace(ADDRESS, service.address), service.printed)


def test_every_command_of_the_readme_prints_the_shown_output(outputs: list[str]) -> None:
    differing = {
        block.commands: (block.shown, printed)
        for block, printed in zip(tour(), outputs, strict=True)
        if not looks_like(block.shown or "", printed)
    }

    assert differing == {}


def test_the_readme_uses_curl_and_python_gitlab() -> None:
    assert [block.language for block in tour()].count("python") == 1
    assert sum("api " in block.commands for block in tour()) >= 5


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ('{"id":…,"name":"shop",…}', '{"id":7,"description":null,"name":"shop","path":"shop"}', True),
        ('{"id":…,"name":"shop",…}', '{"id":7,"name":"ship","path":"shop"}', False),
        ("HTTP/1.1 200 OK\n", "HTTP/1.1 200 OK\r\n", True),
        ("", "another output", False),
    ],
)
def test_different_output_does_not_match_the_readme(shown: str, printed: str, same: bool) -> None:
    assert looks_like(shown, printed) is same
