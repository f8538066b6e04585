"""Settings from environment variables."""

from __future__ import annotations

import dataclasses
import ipaddress
import tempfile
from pathlib import Path

import pytest

from project_service.settings import Settings, SettingsError, runtime_dir

KEY = "0123456789abcdef0123456789abcdef"


def read(**variables):
    return Settings.from_environment({f"PROJECT_SERVICE_{name}": value for name, value in variables.items()})


def test_by_default_all_paths_are_below_the_working_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    settings = Settings.from_environment({"PATH": "/bin", "HOME": "/root"})

    assert settings.data_dir == tmp_path / "var"
    assert settings.database_url == f"sqlite:///{tmp_path}/var/project-service.db"
    assert settings.storage_url == f"file://{tmp_path}/var/storage"
    assert settings.redis_url == f"unix://{settings.runtime_dir}/redis.sock"
    assert (settings.uses_sqlite, settings.embedded_redis) == (True, True)
    assert (settings.log_level, settings.sqlite_synchronous) == (None, "NORMAL")
    assert (settings.smtp_port, settings.smtp_security, settings.smtp_from) == (
        25,
        "none",
        "project-service@localhost",
    )
    nothing = ("secret_key", "external_url", "root_password", "root_token", "metrics_token", "smtp_host")
    assert [getattr(settings, name) for name in nothing] == [None] * len(nothing)
    assert settings.trusted_proxies == ()


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("DATA_DIR", "/srv/data", "data_dir", Path("/srv/data")),
        ("DATA_DIR", "~/data", "data_dir", Path("~/data").expanduser()),
        ("DATABASE_URL", "sqlite:////srv/a.db", "database_url", "sqlite:////srv/a.db"),
        ("DATABASE_URL", "postgresql+psycopg://u:p@h:5433/d", "database_url", "postgresql+psycopg://u:p@h:5433/d"),
        ("DATABASE_URL", "postgresql+psycopg://u@/d?host=/run", "database_url", "postgresql+psycopg://u@/d?host=/run"),
        ("REDIS_URL", "redis://:p@h:6380/1", "redis_url", "redis://:p@h:6380/1"),
        ("REDIS_URL", "rediss://h", "redis_url", "rediss://h"),
        ("REDIS_URL", "unix:///run/redis.sock", "redis_url", "unix:///run/redis.sock"),
        ("STORAGE_URL", "s3://bucket/prefix/", "storage_url", "s3://bucket/prefix"),
        ("STORAGE_URL", "s3://bucket", "storage_url", "s3://bucket"),
        ("STORAGE_URL", "file:///srv/files/", "storage_url", "file:///srv/files"),
        ("SECRET_KEY", KEY, "secret_key", KEY),
        ("SECRET_KEY", f" {KEY} ,, {KEY[::-1]} ", "secret_key", f"{KEY},{KEY[::-1]}"),
        ("EXTERNAL_URL", "https://projects.example.org/", "external_url", "https://projects.example.org"),
        ("EXTERNAL_URL", "http://[::1]:8080", "external_url", "http://[::1]:8080"),
        (
            "TRUSTED_PROXIES",
            "10.0.0.1/8, ::1 ,",
            "trusted_proxies",
            (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("::1/128")),
        ),
        ("MAX_WAITING_BODIES", "0", "max_waiting_bodies", 0),
        ("ROOT_PASSWORD", "any text!", "root_password", "any text!"),
        ("ROOT_TOKEN", "any text, no prefix, 20", "root_token", "any text, no prefix, 20"),
        ("METRICS_TOKEN", "m" * 20, "metrics_token", "m" * 20),
        ("LOG_LEVEL", "debug", "log_level", "DEBUG"),
        ("SQLITE_SYNCHRONOUS", "full", "sqlite_synchronous", "FULL"),
        ("SMTP_HOST", "mail.example.org", "smtp_host", "mail.example.org"),
        ("SMTP_PORT", "587", "smtp_port", 587),
        ("SMTP_USERNAME", "post", "smtp_username", "post"),
        ("SMTP_PASSWORD", "x", "smtp_password", "x"),
        ("SMTP_SECURITY", "STARTTLS", "smtp_security", "starttls"),
        ("SMTP_FROM", "projects@example.org", "smtp_from", "projects@example.org"),
    ],
)
def test_each_variable_sets_its_field(name, text, field, value):
    assert getattr(read(**{name: text}), field) == value


def test_every_field_can_be_set():
    fields = {field.name for field in dataclasses.fields(Settings)} - {"embedded_redis"}

    for name in fields:
        read(**{name.upper(): ""})

    assert len(fields) > 15


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DATA_DIR", "~nobody-of-this-name/data"),
        ("DATABASE_URL", "mysql://h/d"),
        ("DATABASE_URL", "postgresql://h/d"),
        ("DATABASE_URL", "postgresql+psycopg://h:port/d"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "sqlite:///"),
        ("DATABASE_URL", "sqlite:///:memory:"),
        ("DATABASE_URL", "sqlite:///relative.db"),
        ("REDIS_URL", "localhost:6379"),
        ("REDIS_URL", "redis://h:port"),
        ("REDIS_URL", "http://h"),
        ("STORAGE_URL", "/srv/files"),
        ("STORAGE_URL", "file://"),
        ("STORAGE_URL", "file:///"),
        ("STORAGE_URL", "file://relative"),
        ("STORAGE_URL", "s3://"),
        ("STORAGE_URL", "s3:///prefix"),
        ("STORAGE_URL", "gs://bucket"),
        ("SECRET_KEY", "short"),
        ("SECRET_KEY", "," * 40),
        ("SECRET_KEY", f"{KEY}\n{KEY}"),
        ("EXTERNAL_URL", "projects.example.org"),
        ("EXTERNAL_URL", "ftp://projects.example.org"),
        ("EXTERNAL_URL", "https://"),
        ("EXTERNAL_URL", "https://projects.example.org/below"),
        ("EXTERNAL_URL", "https://projects.example.org?a=b"),
        ("EXTERNAL_URL", "https://projects.example.org/#top"),
        ("EXTERNAL_URL", "https://projects.example.org:99999"),
        ("EXTERNAL_URL", "https://user:password@projects.example.org"),
        ("EXTERNAL_URL", "https://projects example.org"),
        ("EXTERNAL_URL", "https://[::1"),
        ("TRUSTED_PROXIES", "10.0.0.0/8 192.168.0.1"),
        ("TRUSTED_PROXIES", "proxy.example.org"),
        ("MAX_WAITING_BODIES", "-1"),
        ("ROOT_PASSWORD", "seven77"),
        ("ROOT_PASSWORD", "tab\tinside"),
        ("ROOT_TOKEN", "t" * 19),
        ("METRICS_TOKEN", "m" * 19),
        ("LOG_LEVEL", "LOUD"),
        ("SQLITE_SYNCHRONOUS", "maybe"),
        ("SMTP_PORT", "-25"),
        ("SMTP_PORT", "65536"),
        ("SMTP_SECURITY", "ssl"),
        ("SMTP_FROM", "nobody"),
        ("SMTP_FROM", "a b@example.org"),
    ],
)
def test_an_invalid_value_is_refused_with_the_variable_name(name, text):
    with pytest.raises(SettingsError) as refused:
        read(**{name: text})

    assert str(refused.value).startswith(f"PROJECT_SERVICE_{name}: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SECRET_KEY", "s3cr3t"),
        ("ROOT_PASSWORD", "s3cr3t"),
        ("ROOT_TOKEN", "s3cr3t"),
        ("DATABASE_URL", "mysql://u:s3cr3t@h/d"),
        ("REDIS_URL", "redis://:s3cr3t@h:port"),
        ("EXTERNAL_URL", "https://u:s3cr3t@h"),
    ],
)
def test_an_error_does_not_repeat_a_secret(name, text):
    with pytest.raises(SettingsError) as refused:
        read(**{name: text})

    assert "s3cr3t" not in str(refused.value)


def test_an_unknown_variable_is_refused():
    with pytest.raises(SettingsError, match="PROJECT_SERVICE_DATABASE: no such setting"):
        read(DATABASE="sqlite:////srv/a.db")


def test_an_empty_variable_counts_as_unset(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    fields = [field.name for field in dataclasses.fields(Settings) if field.name != "embedded_redis"]

    assert read(**{name.upper(): "" for name in fields}) == read()


def test_settings_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        read().log_level = "DEBUG"


def test_a_named_redis_is_not_embedded():
    assert not read(REDIS_URL="redis://localhost").embedded_redis


def test_the_socket_path_is_short_for_any_data_directory(tmp_path):
    long = read(DATA_DIR=f"/srv/{'d' * 300}")
    link = tmp_path / "link"
    link.symlink_to(tmp_path)

    assert len(long.redis_url.removeprefix("unix://")) < 108
    assert long.runtime_dir != read(DATA_DIR="/srv/d").runtime_dir
    assert runtime_dir(link) == runtime_dir(tmp_path)


def test_a_data_directory_with_unusual_characters_works():
    settings = read(DATA_DIR="/srv/50% of ünïcödé")

    assert settings.storage_url == "file:///srv/50%25%20of%20%C3%BCn%C3%AFc%C3%B6d%C3%A9/storage"


def test_sockets_are_not_placed_in_a_long_temporary_directory(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", "/" + "t" * 100)

    assert len(str(runtime_dir(tmp_path))) < 80
