"""The wheel and the image: installed and started outside the checkout, with the commands of their files."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import urllib.request
import venv
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
import yaml

from project_service.cli import main
from project_service.settings import Settings

REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy"
INCLUDED = [line[1:] for line in (REPOSITORY / ".containerignore").read_text().splitlines() if line.startswith("!")]
INSTRUCTION = re.compile(r"^(RUN|CMD) (.+)$", re.MULTILINE)
LISTENING = re.compile(r"listens on (http://\S+)")
SYSTEM_COMMANDS = ("apt-get ", "useradd ")
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)\}")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """What the image is built from: the files that ``.containerignore`` leaves."""
    folder = tmp_path_factory.mktemp("image") / "src"
    folder.mkdir()
    for name in INCLUDED:
        path = REPOSITORY / name
        copy = shutil.copytree if path.is_dir() else shutil.copyfile
        copy(path, folder / name)
    return folder


def make_environment(folder, *, has_dependencies):
    """A virtual environment without the project, with the dependencies of this one or empty."""
    venv.create(folder, with_pip=not has_dependencies)
    if has_dependencies:
        site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
        # nested .pth files, such as that of an editable installation, do not count
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for name in ("pip", "gunicorn"):
            script = folder / "bin" / name
            module = "pip" if name == "pip" else "gunicorn.app.wsgiapp"
            script.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {module} "$@"\n')
            script.chmod(0o755)
    return folder


def variables_for(environment, data_dir, *, isolated):
    """The environment variables of commands of the image; without isolation the build takes hatchling from here."""
    variables = {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "HOME": str(data_dir.parent),
        "PROJECT_SERVICE_DATA_DIR": str(data_dir),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    inherited = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    return inherited | variables | ({} if isolated else {"PIP_NO_BUILD_ISOLATION": "0"})


def serve(command, folder, variables):
    """Start the service in an empty directory, request some paths and stop it; returns status and body by path."""
    folder.mkdir()
    with subprocess.Popen(command, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = next(found[1] for line in process.stdout if (found := LISTENING.search(line)))
            return {path: request(address + path) for path in ("/-/liveness", "/users/sign_in", "/static/style.css")}
        finally:
            process.terminate()
            process.wait(30)


def request(url):
    with urllib.request.urlopen(url, timeout=20) as response:
        return response.status, response.read()


def run_image(source, folder, *, has_dependencies):
    """Run the commands of the Containerfile but those of the system; returns what the started service answers."""
    environment = make_environment(folder / "venv", has_dependencies=has_dependencies)
    variables = variables_for(environment, folder / "data", isolated=not has_dependencies)
    text = (DEPLOY / "Containerfile").read_text().replace("/dist", str(folder / "dist"))
    instructions = INSTRUCTION.findall(text)
    for number, (_, command) in enumerate(instruction for instruction in instructions if instruction[0] == "RUN"):
        if command.startswith(SYSTEM_COMMANDS) or (has_dependencies and "--require-hashes" in command):
            continue
        subprocess.run(["/bin/sh", "-ec", command], cwd=source, env=variables, check=True, capture_output=True)
        if number == 0:
            shutil.copyfile(source / "requirements.lock", folder / "dist" / "requirements.lock")
    [start] = [json.loads(command) for kind, command in instructions if kind == "CMD"]
    start = [word.replace("8080", "0").replace("0.0.0.0", "127.0.0.1") for word in start]
    program = environment / "bin" / start[0]
    answers = serve([str(program), *start[1:]], folder / "empty", variables)
    where = subprocess.run(
        [environment / "bin/python", "-c", "import project_service; print(project_service.__file__)"],
        cwd=folder / "empty",
        env=variables,
        check=True,
        capture_output=True,
        text=True,
    )
    assert where.stdout.startswith(str(environment))
    return answers


def test_the_commands_of_the_image_install_and_start_the_service_elsewhere(source, tmp_path):
    answers = run_image(source, tmp_path, has_dependencies=True)

    assert {path: status for path, (status, _) in answers.items()} == dict.fromkeys(answers, 200)


@pytest.mark.nightly
def test_the_commands_of_the_image_install_the_locked_dependencies(source, tmp_path):
    answers = run_image(source, tmp_path, has_dependencies=False)

    assert {path: status for path, (status, _) in answers.items()} == dict.fromkeys(answers, 200)


@pytest.mark.nightly
def test_the_wheel_is_installed_with_its_constraints_and_serves(source, tmp_path):
    subprocess.run(["make", "wheel"], cwd=REPOSITORY, check=True, capture_output=True)
    environment = make_environment(tmp_path / "venv", has_dependencies=False)
    variables = variables_for(environment, tmp_path / "data", isolated=True)
    [wheel] = (REPOSITORY / "dist").glob("project_service-*.whl")
    command = [environment / "bin/pip", "install", "--quiet", "-c", REPOSITORY / "dist/constraints.txt", wheel]
    subprocess.run(command, env=variables, check=True)

    answers = serve([environment / "bin/project-service", "serve", "--port", "0"], tmp_path / "empty", variables)

    assert {path: status for path, (status, _) in answers.items()} == dict.fromkeys(answers, 200)
    frozen = subprocess.run([environment / "bin/pip", "freeze"], check=True, capture_output=True, text=True).stdout
    locked = set((REPOSITORY / "dist/constraints.txt").read_text().split())
    assert {line for line in frozen.splitlines() if "project-service" not in line} <= locked


def composed(secrets):
    """The services of the compose file, with these variables in place."""
    text = (DEPLOY / "compose.yaml").read_text()
    return yaml.safe_load(VARIABLE.sub(lambda found: secrets.get(found[1], found[2] or ""), text))


SECRETS = {name: name.lower() * 4 for name in ("SECRET_KEY", "ROOT_PASSWORD", "DATABASE_PASSWORD", "OBJECTS_PASSWORD")}
OWN = ("prepare", "web", "worker")


def test_the_compose_file_names_existing_settings_and_hosts():
    services = composed(SECRETS)["services"]

    for name in OWN:
        settings = Settings.from_environment(services[name]["environment"])
        urls = (settings.database_url, settings.redis_url, services[name]["environment"]["AWS_ENDPOINT_URL"])
        hosts = {urlsplit(url).hostname for url in urls}
        assert hosts <= services.keys()
        assert (settings.embedded_redis, settings.storage_url) == (False, "s3://projects")
    assert "objects:/buckets/projects" in services["objects"]["volumes"]


def test_the_compose_file_asks_for_every_secret():
    text = (DEPLOY / "compose.yaml").read_text()

    assert {found[1] for found in VARIABLE.finditer(text) if ":?" in found[0]} == SECRETS.keys()
    assert all(name in text.partition("\nname:")[0] for name in SECRETS)


@pytest.mark.parametrize("name", OWN)
def test_the_compose_file_runs_existing_commands(name):
    program, *words = shlex.split(composed(SECRETS)["services"][name]["command"])
    if program == "gunicorn":
        unit = (DEPLOY / "project-service-web.service").read_text()
        assert unit.partition("/bin/")[2].partition("\n")[0] == shlex.join([program, *words]).replace("'", "")
        return
    command = main.main.get_command(click.Context(main.main), words[0])
    assert (program, command is not None) == ("project-service", True)
    with click.Context(command) as context:
        command.make_parser(context).parse_args(words)
