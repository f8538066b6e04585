"""Two machines with a web server, a worker and a scheduler each, on one PostgreSQL, Redis and object store.

Clients reach the web servers in turn while processes of either machine are killed. Afterwards nothing that was accepted
is missing, nothing is there twice, everything that was begun has ended, and what is periodic ran as on one machine.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import redis
import requests

from project_service.kit import jobs
from project_service.runtime import embedded_redis
from tests.contract.alerting import Maintainer
from tests.contract.service import COMMAND, PASSWORD, REPOSITORY, free_port, git, is_running, wait_for
from tests.support.databases import create_database

START_SECONDS = 120.0
SETTLE_SECONDS = 240.0  # a minute of kills leaves about a hundred exports to be done
PAUSE_BETWEEN_KILLS = 1.5
FINGERPRINTS = 5
EXPORT_EVERY_ROUNDS = 20  # an export costs as much as dozens of other requests
BUCKET = "projects"
REMOVED_VARIABLES = ("PROJECT_SERVICE_", "AWS_", "COVERAGE_")


def responds(url):
    with suppress(requests.RequestException):
        return requests.get(url, timeout=5).status_code < 500
    return False


class Process:
    """A program that can be killed and started again."""

    def __init__(self, argv, env, log):
        self.argv, self.env, self.log = argv, env, log
        self.start()

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.argv, cwd=REPOSITORY, env=self.env, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, number=signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(60)


class Cluster:
    """The machines and the services they share."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        store_port, redis_port = free_port(), free_port()
        python = str(Path(sys.executable))
        self.database = create_database(f"machines_{os.environ.get('PYTEST_XDIST_WORKER', 'gw')}")
        self.redis = redis.Redis(port=redis_port)
        env = {name: text for name, text in os.environ.items() if not name.startswith(REMOVED_VARIABLES)}
        self.shared = [
            Process([python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(store_port)], env, directory / "s3.log"),
            Process(
                [
                    embedded_redis.find_server(),
                    "--port",
                    str(redis_port),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--dir",
                    directory,
                ],
                env,
                directory / "redis.log",
            ),
        ]
        assert wait_for(lambda: responds(f"http://127.0.0.1:{store_port}/"), START_SECONDS)
        requests.put(f"http://127.0.0.1:{store_port}/{BUCKET}", timeout=10).raise_for_status()
        self.env = env | {
            "PYTHONPATH": str(REPOSITORY),
            "PROJECT_SERVICE_DATABASE_URL": self.database,
            "PROJECT_SERVICE_REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
            "PROJECT_SERVICE_STORAGE_URL": f"s3://{BUCKET}/files",
            "PROJECT_SERVICE_SECRET_KEY": "a key that only these machines share",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store_port}",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        self.command("db", "upgrade")
        self.command("user", "create", "root", "--email", "root@example.org", "--admin", "--password", PASSWORD)
        self.token = self.command("token", "create", "root", "--name", "t", "--scopes", "api").strip()
        self.urls, self.processes = [], {}
        for number in (1, 2):
            self.add_machine(number)
        self.wait_until_ready()

    def wait_until_ready(self):
        assert wait_for(lambda: all(responds(f"{url}/-/readiness") for url in self.urls), START_SECONDS), self.logs()

    def command(self, *words):
        env = self.env | {"PROJECT_SERVICE_DATA_DIR": str(self.directory / "operator")}
        return subprocess.run([COMMAND, *words], env=env, check=True, capture_output=True, text=True).stdout

    def add_machine(self, number):
        port, home = free_port(), self.directory / f"machine-{number}"
        home.mkdir()
        env = self.env | {"PROJECT_SERVICE_DATA_DIR": str(home / "data")}
        web = [sys.executable, "-m", "gunicorn", "--config=python:project_service.runtime.web_server", "--workers=1"]
        commands = {
            "web": [*web, f"--bind=127.0.0.1:{port}", "project_service.runtime.wsgi:create()"],
            "worker": [COMMAND, "worker"],
            "scheduler": [COMMAND, "scheduler"],
        }
        for role, argv in commands.items():
            self.processes[role, number] = Process(argv, env, home / f"{role}.log")
        self.urls.append(f"http://127.0.0.1:{port}")

    def logs(self):
        return "\n".join(path.read_text()[-2000:] for path in self.directory.rglob("*.log"))

    def query(self, statement, *values):
        with psycopg.connect(self.database.replace("+psycopg", "")) as connection:
            return connection.execute(statement, values).fetchall()

    def stop(self):
        for process in (*self.processes.values(), *self.shared):
            process.kill(signal.SIGTERM)
        for process in (*self.processes.values(), *self.shared):
            process.kill()


class Client:
    """Sends to the web servers in turn and skips one that refuses connections, as a load balancer does."""

    def __init__(self, cluster):
        self.turn = itertools.cycle(cluster.urls)
        self.session = requests.Session()
        self.session.headers["PRIVATE-TOKEN"] = cluster.token

    def send(self, method, path, **options):
        """Return the response, or ``None`` when the outcome of the request is unknown."""
        for _ in range(100):
            url = next(self.turn)
            try:
                return self.session.request(method, f"{url}{path}", timeout=30, **options)
            except requests.ConnectionError as error:
                if "refused" not in str(error):
                    return None
                time.sleep(0.05)
            except requests.RequestException:
                return None
        return None


class Load:
    """Writes to several areas, and records which requests were accepted and which have an unknown outcome."""

    def __init__(self, cluster, project, endpoint):
        self.cluster, self.project, self.endpoint = cluster, project, endpoint
        self.accepted, self.uncertain = Counter(), Counter()
        self.names = {"variables": set(), "issues": set(), "groups": set()}
        self.statuses, self.lock, self.stop = Counter(), threading.Lock(), threading.Event()

    def run(self, number):
        client, path = Client(self.cluster), f"/api/v4/projects/{self.project}"
        for count in itertools.count():
            if self.stop.is_set():
                return
            name = f"T{number}_{count}"
            self.note("variables", name, client.send("POST", f"{path}/variables", json={"key": name, "value": "v"}))
            self.note("issues", name, client.send("POST", f"{path}/issues", json={"title": name}))
            self.note("groups", name, client.send("POST", "/api/v4/groups", json={"name": name, "path": name}))
            alert = {"title": "Stuck", "fingerprint": f"f{count % FINGERPRINTS}"}
            key = {"Authorization": f"Bearer {self.endpoint.key}", "PRIVATE-TOKEN": None}
            address = "/" + self.endpoint.url.split("/", 3)[3]
            self.note("alerts", "", client.send("POST", address, json=alert, headers=key))
            if count % EXPORT_EVERY_ROUNDS == 0:
                self.note("exports", "", client.send("POST", f"{path}/export"))
                self.note("lists", "", client.send("GET", f"{path}/issues?per_page=5"))

    def note(self, area, name, response):
        with self.lock:
            self.statuses[area, response.status_code if response is not None else None] += 1
            if response is None or response.status_code >= 500:
                self.uncertain[area] += 1
            elif response.status_code < 300:
                self.accepted[area] += 1
                if name:
                    self.names[area].add(name)


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.stop()
    assert not [process for process in made.processes.values() if is_running(process.process.pid)]


@pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.nightly)])
def test_killed_processes_neither_lose_nor_duplicate_rows(seconds, cluster, capsys):
    root = Client(cluster)
    project = root.send("POST", "/api/v4/projects", json={"name": "shop"}).json()
    cluster.url = cluster.urls[0]
    endpoint = Maintainer(cluster).add_integration(project["path_with_namespace"], type="http", name="Burst")
    load, began, killed = Load(cluster, project["id"], endpoint), time.monotonic(), []
    threads = [threading.Thread(target=load.run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()

    chance = random.Random(seconds)
    while time.monotonic() - began < seconds:
        time.sleep(PAUSE_BETWEEN_KILLS)
        victim = chance.choice(list(cluster.processes))
        cluster.processes[victim].kill()
        cluster.processes[victim].start()
        killed.append(victim)
    load.stop.set()
    for thread in threads:
        thread.join(SETTLE_SECONDS)
        assert not thread.is_alive()

    ended = wait_for(lambda: is_idle(cluster), SETTLE_SECONDS)
    elapsed = time.monotonic() - began
    with capsys.disabled():
        print(f"\n{len(killed)} kills in {seconds} s; accepted {dict(load.accepted)}, uncertain {dict(load.uncertain)}")
    assert ended, cluster.query("SELECT name, attempts, error FROM tasks")
    cluster.wait_until_ready()  # the last process that was killed may still be starting
    assert {area: load.accepted[area] > 0 for area in load.accepted} == dict.fromkeys(load.accepted, True)
    check_names(cluster, load, project["id"])
    check_alerts(cluster, load)
    check_exports(root, cluster, project["id"])
    check_periodic(cluster, elapsed)
    check_pushes(cluster, project["path_with_namespace"])
    assert not [status for status in load.statuses if status[1] in (500, 400, 401, 403, 404)], load.statuses


def is_idle(cluster):
    """Whether all jobs but the periodic ones have finished."""
    left = [name for (name,) in cluster.query("SELECT name FROM tasks")]
    return not [name for name in left if "transfers" in name or "alerts" in name]


def check_names(cluster, load, project_id):
    """Every accepted row exists once; every other row belongs to a request with an unknown outcome."""
    statements = {
        "variables": "SELECT key FROM variables WHERE project_id = %s",
        "issues": "SELECT title FROM issues WHERE project_id = %s AND starts_with(title, 'T')",
        "groups": "SELECT path FROM namespaces WHERE starts_with(path, 'T')",
    }
    for area, statement in statements.items():
        values = (project_id,) if "%s" in statement else ()
        found = Counter(name for (name,) in cluster.query(statement, *values))
        assert load.names[area] - found.keys() == set(), area
        assert len(found) <= load.accepted[area] + load.uncertain[area], area
        assert not [name for name, count in found.items() if count > 1], area
    iids = [iid for (iid,) in cluster.query("SELECT iid FROM issues WHERE project_id = %s", project_id)]
    assert len(iids) == len(set(iids))


def check_alerts(cluster, load):
    """Each fingerprint has one open alert that counts every accepted event."""
    counts = dict(cluster.query("SELECT fingerprint, sum(events) FROM alerts GROUP BY fingerprint"))
    rows = cluster.query("SELECT count(*) FROM alerts")[0][0]
    assert rows == len(counts) <= FINGERPRINTS
    assert load.accepted["alerts"] <= sum(counts.values()) <= load.accepted["alerts"] + load.uncertain["alerts"]


def check_exports(root, cluster, project_id):
    """The export has finished, and either machine serves its download."""
    status = root.send("GET", f"/api/v4/projects/{project_id}/export").json()["export_status"]
    assert status == "finished"
    for url in cluster.urls:
        archive = root.session.get(f"{url}/api/v4/projects/{project_id}/export/download", timeout=60)
        assert (archive.status_code, archive.content[:2]) == (200, b"\x1f\x8b")


def check_pushes(cluster, path):
    """A push to one machine can be fetched from the other, and from the first after it lost its disk."""
    folder = cluster.directory / "client"
    folder.mkdir()
    first, second = (f"{url.replace('://', f'://git:{cluster.token}@')}/{path}.git" for url in cluster.urls)
    git(folder, "init", "--quiet", "-b", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "First")
    git(folder, "push", first, "main")
    cluster.processes["web", 1].kill()
    shutil.rmtree(cluster.directory / "machine-1" / "data" / "repositories")

    git(folder, "clone", "--quiet", second, "clone")
    git(folder / "clone", "commit", "--quiet", "--allow-empty", "-m", "Second")
    git(folder / "clone", "push", second, "main")
    cluster.processes["web", 1].start()
    cluster.wait_until_ready()
    git(folder, "pull", "--quiet", first, "main")

    assert git(folder, "log", "--format=%s").stdout.split() == ["Second", "First"]


def check_periodic(cluster, elapsed):
    """With two schedulers each periodic job ran as often as with one."""
    outcomes = {key.decode(): int(count) for key, count in cluster.redis.hgetall(jobs.OUTCOMES_KEY).items()}
    dues = dict(cluster.query("SELECT name, count(*) FROM periodic_runs GROUP BY name"))
    assert set(dues.values()) == {1}
    for name, entry in jobs.PERIODIC_JOBS.items():
        assert outcomes.get(f"done {name}", 0) <= elapsed / entry.every.total_seconds() + 1, name
