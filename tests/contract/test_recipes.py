"""The recipes of the documentation, run unchanged against a started service."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from shutil import which
from typing import Any
from urllib.parse import quote

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
RECIPES = (REPOSITORY / "docs/recipes.md").read_text()
BLOCK = re.compile(r"(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENVIRONMENT_READER = "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator"
VALUES = {
    "REGION": "eu-central-1",
    "GREETING": 'it\'s "one" $HOME `x` \\ 100% é\U0001f600 #',
    "LINES": "one\n two \n\nEOF\n",
    "LOGIN": "masked-10%-value",
    "EMPTY": "",
}
PRINT = "import json, os; print(json.dumps({k: v for k, v in os.environ.items()}))"
KEYS_OF_WORKFLOWS = {"name", "on", "jobs"}
KEYS_OF_JOBS = {"runs-on", "steps"}
KEYS_OF_STEPS = {"name", "env", "run"}


@pytest.fixture
def shop(project: Any) -> Any:
    """A project with variables of all kinds."""
    for key, value in VALUES.items():
        project.variables.create({"key": key, "value": value, "raw": True, "masked": key == "LOGIN"})
    project.variables.create({"key": "SIGNING", "value": "never-to-be-seen", "masked_and_hidden": True})
    project.variables.create({"key": "KUBECONFIG", "value": "a: 1\nb: 2\n", "variable_type": "file"})
    return project


class Recipe:
    """The code blocks of a section, run for one project in a temporary folder."""

    def __init__(self, folder: Path, project: Any, url: str, token: str) -> None:
        self.folder, self.token = folder, token
        self.project, self.url = project.path_with_namespace, url

    def blocks(self, heading: str) -> list[tuple[str, str, str]]:
        """Return file name, language and text of each block of a section."""
        section = RECIPES.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        return [(name, language, self._here(text)) for name, language, text in BLOCK.findall(section)]

    def _here(self, text: str) -> str:
        path = quote(self.project, safe="")
        text = text.replace("acme%%2Fshop", path.replace("%", "%%")).replace("acme%2Fshop", path)
        return text.replace("acme/shop", self.project).replace("https://git.example.org", self.url)

    def commands(self, heading: str) -> str:
        """Write the files of a section; return its commands."""
        commands = []
        for name, language, text in self.blocks(heading):
            if name:
                (self.folder / name).write_text(text)
            elif language == "sh":
                commands.append(text)
        return "\n".join(commands)

    def run(self, script: str, **environment: str) -> str:
        """Run a script in the folder; return its output."""
        path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
        known = {"PATH": path, "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "TOKEN": self.token}
        known["PYTHONPATH"] = str(REPOSITORY)
        command = ["bash", "-euo", "pipefail", "-c", script, "-"]
        ran = subprocess.run(command, env=known | environment, cwd=self.folder, capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout.decode()

    def environment(self, script: str) -> dict[str, str]:
        """Return the environment of a program that a script starts."""
        found: dict[str, str] = json.loads(self.run(f"{script}\n'{sys.executable}' -S -c \"$PRINT\"", PRINT=PRINT))
        return of_the_project(found)


def of_the_project(found: dict[str, str]) -> dict[str, str]:
    """Remove instance variables, which other tests may have set."""
    return {key: value for key, value in found.items() if key in {*VALUES, "SIGNING", "KUBECONFIG"}}


@pytest.fixture
def recipe(tmp_path: Path, shop: Any, service: Any) -> Recipe:
    """The recipes with a read-only token of the project, as the documentation asks for."""
    token = shop.access_tokens.create({"name": "recipes", "scopes": ["read_api"], "access_level": 40}).token
    made = Recipe(tmp_path, shop, service.url, token)
    made.run(made.commands("The token"))
    assert (tmp_path / ".project-service-token").stat().st_mode & 0o777 == 0o600
    return made


def test_curl_loads_variables_into_a_script(recipe: Recipe, tmp_path: Path) -> None:
    assert recipe.environment(recipe.commands("curl")) == VALUES | {
        "KUBECONFIG": str(tmp_path / "files" / "KUBECONFIG")
    }

    assert (tmp_path / "greeting.txt").read_text() == VALUES["GREETING"]
    assert (tmp_path / "kubeconfig").read_text() == (tmp_path / "files" / "KUBECONFIG").read_text() == "a: 1\nb: 2\n"
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600


def test_direnv_loads_variables(recipe: Recipe) -> None:
    program = [REPOSITORY / "scripts/foreign-programs", "direnv"]
    found = subprocess.run(program, check=False, capture_output=True, text=True)
    if found.returncode:
        pytest.skip(found.stderr.strip())
    folder = Path(found.stdout.strip()).parent
    script = f'PATH="{folder}:$PATH"\n{recipe.commands("direnv").strip()}'
    assert "REGION=eu-central-1" in recipe.run(script).splitlines()

    loaded = recipe.run(f'{script} > list\ndirenv exec . "{sys.executable}" -S -c "$PRINT"', PRINT=PRINT)

    assert {key: value for key, value in json.loads(loaded).items() if key in VALUES} == VALUES


def test_docker_gets_variables(recipe: Recipe, tmp_path: Path) -> None:
    if which("docker") is None:
        pytest.skip("there is no docker")
    with docker_daemon() as (address, sent):
        recipe.run(recipe.commands("docker"), DOCKER_HOST=address)

    environment = of_the_project(dict(line.split("=", 1) for line in sent["Env"]))
    assert environment == {key: value for key, value in VALUES.items() if "\n" not in value}
    assert not (tmp_path / "shop.env").exists()


def test_systemd_accepts_the_unit_and_reads_the_file(recipe: Recipe, tmp_path: Path) -> None:
    [(_, _, text)] = [block for block in recipe.blocks("systemd") if block[1] == "ini"]
    [start] = re.findall(r"^ExecStartPre=(.*)$", text, re.MULTILINE)
    recipe.run("mkdir credentials; cp .project-service-token credentials/token; mkdir run")
    folders = {"${CREDENTIALS_DIRECTORY}": str(tmp_path / "credentials"), "${RUNTIME_DIRECTORY}": str(tmp_path / "run")}
    for name, folder in folders.items():
        start = start.replace(name, folder)

    recipe.run(shlex.join(shlex.split(start.replace("%%", "%"))))

    if which("systemd-analyze"):
        (tmp_path / "shop.service").write_text(text.replace("/usr/local/bin/shop", "/bin/true"))
        checked = subprocess.run(
            ["systemd-analyze", "verify", tmp_path / "shop.service"], capture_output=True, text=True, check=False
        )
        assert (checked.returncode, "shop.service" in checked.stderr) == (0, False), checked.stderr
    if which(ENVIRONMENT_READER):
        recipe.run("mkdir environment.d; cp run/variables.env environment.d/1.conf")
        script = f'while IFS= read -r line; do eval "export $line"; done < <({ENVIRONMENT_READER})'
        # the reader of environment.d expands references and leaves out empty values, which EnvironmentFile= does not
        plain = {key: value for key, value in VALUES.items() if value and not {"$", "\n"} & {*value}}
        shown = recipe.run(f"{script}\n'{sys.executable}' -S -c \"$PRINT\"", PRINT=PRINT, XDG_CONFIG_HOME=str(tmp_path))
        assert plain.items() <= json.loads(shown).items()


def test_the_workflow_has_the_grammar_of_github_actions_and_sets_them(recipe: Recipe, tmp_path: Path) -> None:
    [(name, _, text)] = recipe.blocks("GitHub Actions")
    workflow = yaml.load(text, yaml.BaseLoader)
    [job] = workflow["jobs"].values()
    assert (name, workflow.keys(), job.keys()) == (".github/workflows/deploy.yml", KEYS_OF_WORKFLOWS, KEYS_OF_JOBS)
    assert all(step.keys() <= KEYS_OF_STEPS for step in job["steps"])
    file = tmp_path / "environment"
    known = {"GITHUB_ENV": str(file), "RUNNER_TEMP": str(tmp_path)}

    printed = ""
    for step in job["steps"][:-1]:
        secrets = {
            key: value.replace("${{ secrets.VARIABLES_TOKEN }}", recipe.token)
            for key, value in step.get("env", {}).items()
        }
        printed += recipe.run(step["run"], **{"TOKEN": "", **known, **secrets})

    assert printed == "::add-mask::masked-10%25-value\n"
    assert of_the_project(environment_of(file.read_text())) == VALUES
    assert not (tmp_path / "variables.json").exists()


@contextmanager
def docker_daemon() -> Iterator[tuple[str, dict[str, Any]]]:
    """A daemon that creates and starts every container; its address and the requests it received."""
    sent: dict[str, Any] = {}

    class RecipeDaemon(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"ApiVersion": "1.43"})

        do_HEAD = do_GET

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.partition("?")[0].endswith("/containers/create"):
                sent.update(json.loads(content))
                self._answer({"Id": "1", "Warnings": []}, 201)
            else:
                self._answer({}, 204)

        def _answer(self, body: Any, status: int = 200) -> None:
            content = b"" if status == 204 else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Api-Version", "1.43")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else content)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), RecipeDaemon) as daemon:
        threading.Thread(target=daemon.serve_forever, daemon=True).start()
        yield f"tcp://127.0.0.1:{daemon.server_port}", sent
        daemon.shutdown()


def environment_of(content: str) -> dict[str, str]:
    """Read a file of variables as GitHub documents it: KEY=value, or lines between KEY<<delimiter and the delimiter."""
    found, lines = {}, iter(content.splitlines())
    for line in lines:
        key, _, delimiter = line.partition("<<")
        if "=" in key:
            key, _, found[key] = line.partition("=")
            continue
        value = []
        for inner in lines:
            if inner == delimiter:
                break
            value.append(inner)
        found[key] = "\n".join(value)
    return found
