"""Pushes while processes of the service are killed: every accepted push is stored once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.contract.service import TOKEN, Service, children_of, git, wait_for

HEADERS = {"PRIVATE-TOKEN": TOKEN}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    found = Service(tmp_path_factory.mktemp("pushes") / "service")
    found.start()
    yield found
    found.stop()


def kill_web(service):
    web = service.child("web")
    for pid in (web, *children_of(web)):
        os.kill(pid, signal.SIGKILL)


def is_ready(service):
    try:
        return requests.get(f"{service.url}/-/readiness", timeout=5).ok
    except requests.RequestException:
        return False


def test_an_accepted_push_survives_a_kill(service, tmp_path):
    push_and_kill(service, tmp_path / "client", "few", kills=2)


@pytest.mark.nightly
def test_accepted_pushes_survive_fifty_kills(service, tmp_path):
    push_and_kill(service, tmp_path / "client", "many", kills=50)


def push_and_kill(service, folder, name, kills):
    """Push commits while web processes are killed; compare the stored refs with the responses."""
    url = f"{service.url.replace('://', f'://git:{TOKEN}@')}/root/{name}.git"
    requests.post(f"{service.url}/api/v4/projects", json={"name": name}, headers=HEADERS, timeout=30).raise_for_status()
    folder.mkdir()
    git(folder, "init", "--quiet", "-b", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "First")
    git(folder, "push", url, "main")
    (folder / "large").write_bytes(os.urandom(4 << 20))
    dice, answered, refused = random.Random(7), {}, {}  # not used for security
    for number in range(kills):
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", f"Commit {number}")
        (folder / "large").write_bytes(os.urandom(1 << 20))
        timer = threading.Timer(dice.uniform(0.05, 1.0), kill_web, (service,))
        timer.start()
        pushed = git(folder, "push", url, f"main:b{number}", check=False)
        target = git(folder, "rev-parse", "main").stdout.strip()
        (refused if pushed.returncode else answered)[f"b{number}"] = target
        timer.join()
        assert wait_for(lambda: is_ready(service), 60)

    found = dict(
        line.split("\trefs/heads/")[::-1] for line in git(folder, "ls-remote", "--heads", url).stdout.splitlines()
    )
    events = [
        event["push_data"]["ref"]
        for page in range(1, 2 + kills // 100)
        for event in requests.get(
            f"{service.url}/api/v4/projects/root%2F{name}/events?action=pushed&per_page=100&page={page}",
            headers=HEADERS,
            timeout=30,
        ).json()
    ]
    assert answered.items() <= found.items()
    assert {name: target for name, target in found.items() if name in refused}.items() <= refused.items()
    assert sorted(events) == sorted(found)
    git(folder, "clone", "--quiet", "--mirror", url, "clone")
    git(folder / "clone", "fsck", "--strict")


def test_one_of_several_concurrent_pushes_to_a_branch_is_accepted(service, tmp_path):
    url = f"{service.url.replace('://', f'://git:{TOKEN}@')}/root/race.git"
    requests.post(
        f"{service.url}/api/v4/projects", json={"name": "race"}, headers=HEADERS, timeout=30
    ).raise_for_status()
    clients = []
    for number in range(4):
        folder = tmp_path / f"client-{number}"
        folder.mkdir()
        git(folder, "init", "--quiet", "-b", "main")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", f"Commit {number}")
        clients.append(folder)
    git(clients[0], "push", url, "main")

    with ThreadPoolExecutor(4) as pool:
        one = [pool.submit(git, folder, "push", url, "main:one", check=False) for folder in clients]
        many = [pool.submit(git, folder, "push", url, f"main:many{n}", check=False) for n, folder in enumerate(clients)]

    assert sorted(bool(done.result().returncode) for done in one) == [False, True, True, True]
    assert [done.result().returncode for done in many] == [0, 0, 0, 0]


def test_a_client_that_disconnects_leaves_no_process_and_no_file(service, tmp_path):
    url = f"{service.url.replace('://', f'://git:{TOKEN}@')}/root/gone.git"
    requests.post(
        f"{service.url}/api/v4/projects", json={"name": "gone"}, headers=HEADERS, timeout=30
    ).raise_for_status()
    git(tmp_path, "init", "--quiet", "-b", "main")
    (tmp_path / "large").write_bytes(os.urandom(30 << 20))
    git(tmp_path, "add", "large")
    git(tmp_path, "commit", "--quiet", "-m", "Large")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    incoming = service.directory / "data/repositories/incoming"
    before = {*incoming.glob("push-*")}  # of processes that were killed; a job removes them
    for delay in (0.3, 0.6, 0.9):
        client = subprocess.Popen(
            ["git", "push", "--quiet", url, "main"], cwd=tmp_path, env=environment, start_new_session=True
        )
        time.sleep(delay)
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()

    def is_clean():
        running = subprocess.run(["pgrep", "-f", f"git.*{incoming}"], capture_output=True, check=False).stdout
        return not running and not {*incoming.glob("push-*")} - before

    assert wait_for(is_clean, 30)
