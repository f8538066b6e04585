"""The embedded Redis."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from project_service.runtime import embedded_redis
from project_service.runtime.embedded_redis import EmbeddedRedisError
from project_service.settings import Settings
from tests.support.redis_servers import wait_until_ready


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a data directory whose path is far too long for a socket."""
    return Settings.from_environment({"PROJECT_SERVICE_DATA_DIR": str(tmp_path / ("long " + "x" * 200) / "var")})


@pytest.fixture
def start(settings: Settings) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts the server and waits for it."""
    servers: list[subprocess.Popen[bytes]] = []

    def started() -> subprocess.Popen[bytes]:
        servers.append(subprocess.Popen(embedded_redis.redis_command(settings)))
        wait_until_ready(settings)
        return servers[-1]

    yield started
    for server in servers:
        server.kill()
        server.wait()
    shutil.rmtree(settings.runtime_dir, ignore_errors=True)


def client(settings: Settings) -> redis.Redis:
    return redis.Redis.from_url(settings.redis_url, decode_responses=True)


Start = Callable[[], "subprocess.Popen[bytes]"]


def test_redis_listens_only_on_its_private_socket(settings: Settings, start: Start) -> None:
    start()

    with client(settings) as connection:
        options = connection.config_get("*")
    assert options["port"] == "0"
    assert settings.runtime_dir.stat().st_mode & 0o777 == 0o700
    assert (settings.runtime_dir / "redis.sock").is_socket()


def test_accepted_writes_survive_a_kill(settings: Settings, start: Start) -> None:
    server = start()
    with client(settings) as connection:
        connection.rpush("queue", *map(str, range(100)))
    server.kill()
    server.wait()

    start()

    with client(settings) as connection:
        assert connection.lrange("queue", 0, -1) == [str(number) for number in range(100)]


def test_redis_is_not_ready_before_it_runs(settings: Settings) -> None:
    assert not embedded_redis.is_ready(settings)


def test_a_shared_directory_is_made_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    embedded_redis.prepare_runtime_dir(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_symbolic_link_as_directory_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)

    with pytest.raises(EmbeddedRedisError, match="is not a directory of ours"):
        embedded_redis.prepare_runtime_dir(link)


def test_a_missing_redis_server_is_reported_with_advice(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(embedded_redis, "bundled_servers", lambda: ["/no/such/server"])
    monkeypatch.setenv("PATH", "/no/such/directory")

    with pytest.raises(EmbeddedRedisError, match="install valkey-server or redis-server"):
        embedded_redis.redis_command(settings)


def test_removed_directories_are_recreated(settings):
    embedded_redis.redis_command(settings)
    shutil.rmtree(settings.data_dir / "redis")

    embedded_redis.prepare_directories(settings)

    assert (settings.data_dir / "redis").is_dir()
