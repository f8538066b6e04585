"""The application behind a real socket, and real git as its client."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask
from werkzeug.serving import make_server

from project_service.domain.accounts.users import User
from tests.support.git_repositories import keep_bundle, make_history
from tests.support.sample_data import make_token

AUTHOR = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (
    ("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", "2021-02-03T04:05:06+01:00")
)}  # fmt: skip


class GitClient:
    """Runs git in a folder, with the credentials of a user for the server."""

    def __init__(self, folder: Path, address: str, token: str | None) -> None:
        self.folder = folder
        self.credentials = f"git:{token}@" if token else ""
        self.address = address

    def url(self, path: str) -> str:
        """The address of a repository, with the credentials of the user."""
        return f"http://{self.credentials}{self.address}/{path}.git"

    def run(self, *arguments: str, check: bool = True, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run git; returns the process with its output and errors as text."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_TERMINAL_PROMPT": "0", **AUTHOR}
        result = subprocess.run(
            ["git", *arguments], cwd=folder or self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert not check or result.returncode == 0, result.stderr
        return result

    def output(self, *arguments: str) -> str:
        """Run git; returns its standard output, stripped."""
        return self.run(*arguments).stdout.strip()

    def commit(self, message: str, **files: str) -> str:
        """Make a commit on the current branch; returns its id."""
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self.run("add", "--all")
        self.run("commit", "--quiet", "--allow-empty", "-m", message)
        return self.output("rev-parse", "HEAD")

    def push(self, path: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Push to the repository at a path."""
        return self.run("push", self.url(path), *arguments, check=check)


@pytest.fixture
def address(app: Flask) -> Iterator[str]:
    """Host and port of a server of the application in threads of this process."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def git_of(address: str, tmp_path: Path) -> Callable[..., GitClient]:
    """Creates a client of a user, or an anonymous one, in a new repository."""
    numbers = iter(range(100))

    def make(user: User | None, *scopes: str) -> GitClient:
        folder = tmp_path / f"client-{next(numbers)}"
        folder.mkdir()
        client = GitClient(folder, address, make_token(user, *scopes) if user else None)
        client.run("init", "--quiet", "-b", "main")
        return client

    return make


@pytest.fixture(scope="session")
def history(tmp_path_factory):
    return make_history(tmp_path_factory.mktemp("history") / "source")


@pytest.fixture
def code(app, project, history):
    """The address of the repository of the project in the API."""
    keep_bundle(project, history)
    return f"/projects/{project.id}/repository"
