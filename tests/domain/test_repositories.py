"""How git is run: no process outlives its parent, and it has a low priority."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from project_service.domain.repositories import bundles
from tests.contract.service import REPOSITORY, is_running, kill, wait_for
from tests.support.git_repositories import make_bundle

RUN = "from project_service.domain.repositories.git import git; print(git('anything').decode())"


@pytest.fixture
def run(tmp_path):
    """Starts a process that runs a git of ours."""
    started = []

    def start(script: str) -> subprocess.Popen[bytes]:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
        program.chmod(0o755)
        environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
        words = [sys.executable, "-c", RUN]
        started.append(subprocess.Popen(words, env=environment, cwd=REPOSITORY, stdout=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_git_processes_end_when_their_parent_is_killed(run, tmp_path):
    process = run("sleep 600 & echo $! $$ > new; mv new pids; sleep 600")
    assert wait_for((tmp_path / "pids").exists)
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert all(map(is_running, pids))

    kill(process.pid)

    assert wait_for(lambda: not any(map(is_running, pids)), 10.0)


def group(number: int) -> list[int]:
    """The processes of a group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, its_group = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == number and state != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists processes in this way")
def test_git_leaves_no_process_or_file(run):
    process = run("echo $$ $(nice) $(cat | wc -c)")

    number, niceness, read = map(int, process.communicate()[0].split())

    assert (process.returncode, read) == (0, 0)
    assert niceness == min(os.nice(0) + 10, 19)
    assert wait_for(lambda: not group(number), 10.0)


def test_files_of_a_killed_clone_are_removed_by_the_next_one(tmp_path):
    bundle, target = tmp_path / "a.bundle", tmp_path / "1-project-abc.git"
    bundle.write_bytes(make_bundle(tmp_path / "made", "v1"))
    (tmp_path / ".1-project-abc.git.0123abcd").mkdir()
    (tmp_path / ".1-project-abcd.git.0123abcd").mkdir()

    bundles.unbundle(bundle, target)

    assert sorted(path.name for path in tmp_path.glob("*1-project*")) == [
        ".1-project-abcd.git.0123abcd",
        "1-project-abc.git",
    ]
