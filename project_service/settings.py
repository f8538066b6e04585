"""What the environment says, read once, typed and frozen.

Nothing else in the program looks at ``os.environ``. Every field has its line in ``docs/configuration.md``.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, quote, urlsplit

PREFIX = "PROJECT_SERVICE_"
MEMORY_DIR = Path("/dev/shm")  # noqa: S108  # a file system in memory, where Linux has one
DEFAULT_WAITING_BODIES = 100
DEFAULT_REPOSITORY_CACHE_MIB = 20 << 10
DEFAULT_FOLDER_ENTRIES = 100_000
MIN_METRICS_BYTES = 16 << 20
MAX_TEMPORARY_PATH_BYTES = 50  # of TMPDIR, if sockets are below it
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LOG_FORMATS = ("json", "text")
SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")
SMTP_SECURITY = ("none", "starttls", "tls")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Value = TypeVar("Value")


class SettingsError(Exception):
    """A variable of the environment has a value that cannot be used; the text names it and says what would be right."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be configured from outside."""

    data_dir: Path
    database_url: str
    redis_url: str
    storage_url: str
    embedded_redis: bool
    secret_key: str | None = None
    external_url: str | None = None
    trusted_proxies: tuple[Network, ...] = ()
    max_waiting_bodies: int = DEFAULT_WAITING_BODIES
    max_repository_cache_mib: int = DEFAULT_REPOSITORY_CACHE_MIB
    max_folder_entries: int = DEFAULT_FOLDER_ENTRIES
    root_password: str | None = None
    root_token: str | None = None
    metrics_token: str | None = None
    log_level: str | None = None
    log_format: str | None = None
    sqlite_synchronous: str = "NORMAL"
    smtp_host: str | None = None
    smtp_port: int = 25
    smtp_username: str | None = None
    smtp_password: str | None = None
    smtp_security: str = "none"
    smtp_from: str = "project-service@localhost"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the variables ``PROJECT_SERVICE_*``; ``SettingsError`` names the first that is wrong.

        An empty variable counts as absent, an unknown one is refused: it is most often a misspelt one.
        """
        reader = _Reader(os.environ if environment is None else environment)
        data_dir = reader.get("DATA_DIR", _directory) or _directory("var")
        redis_url = reader.get("REDIS_URL", _redis_url)
        settings = cls(
            data_dir=data_dir,
            database_url=reader.get("DATABASE_URL", _database_url) or f"sqlite:///{data_dir}/project-service.db",
            redis_url=redis_url or _embedded_redis_url(data_dir),
            embedded_redis=redis_url is None,
            storage_url=reader.get("STORAGE_URL", _storage_url) or f"file://{quote(str(data_dir))}/storage",
            secret_key=reader.get("SECRET_KEY", _keys),
            external_url=reader.get("EXTERNAL_URL", _external_url),
            trusted_proxies=reader.get("TRUSTED_PROXIES", _networks) or (),
            max_waiting_bodies=reader.whole("MAX_WAITING_BODIES", 1_000_000, DEFAULT_WAITING_BODIES),
            max_repository_cache_mib=reader.whole("MAX_REPOSITORY_CACHE_MIB", 1 << 30, DEFAULT_REPOSITORY_CACHE_MIB),
            max_folder_entries=reader.whole("MAX_FOLDER_ENTRIES", 1 << 30, DEFAULT_FOLDER_ENTRIES),
            root_password=reader.get("ROOT_PASSWORD", _at_least(8)),
            root_token=reader.get("ROOT_TOKEN", _at_least(20)),
            metrics_token=reader.get("METRICS_TOKEN", _at_least(20)),
            log_level=reader.get("LOG_LEVEL", _one_of(LOG_LEVELS)),
            log_format=reader.get("LOG_FORMAT", _one_of(LOG_FORMATS)),
            sqlite_synchronous=reader.get("SQLITE_SYNCHRONOUS", _one_of(SYNCHRONOUS)) or "NORMAL",
            smtp_host=reader.text("SMTP_HOST"),
            smtp_port=reader.get("SMTP_PORT", _whole(1, 65535)) or 25,
            smtp_username=reader.text("SMTP_USERNAME"),
            smtp_password=reader.text("SMTP_PASSWORD"),
            smtp_security=reader.get("SMTP_SECURITY", _one_of(SMTP_SECURITY)) or "none",
            smtp_from=reader.get("SMTP_FROM", _mail_address) or "project-service@localhost",
        )
        reader.refuse_unknown()
        return settings

    @property
    def uses_sqlite(self) -> bool:
        """Whether the database is a SQLite file."""
        return self.database_url.startswith("sqlite")

    @property
    def metrics_dir(self) -> Path | None:
        """The directory of memory-mapped metric files, in memory: a full disk kills the processes that write them.

        ``None`` if this system has no file system in memory, or no room there.
        """
        if not os.access(MEMORY_DIR, os.W_OK):
            return None
        state = os.statvfs(MEMORY_DIR)
        has_room = state.f_bavail * state.f_frsize >= MIN_METRICS_BYTES
        return MEMORY_DIR / f"{self.runtime_dir.name}-metrics" if has_room else None

    @property
    def runtime_dir(self) -> Path:
        """A short, private directory for sockets, the same for every process of one data directory."""
        return runtime_dir(self.data_dir)


def runtime_dir(data_dir: Path) -> Path:
    """Where the sockets of ``data_dir`` live; unix socket paths must stay under 108 bytes whatever its length."""
    digest = hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:16]
    temporary = Path(tempfile.gettempdir())
    if len(os.fsencode(temporary)) > MAX_TEMPORARY_PATH_BYTES:
        temporary = MEMORY_DIR
    return temporary / f"project-service-{os.getuid()}-{digest}"


class _Reader:
    """Takes variables one by one and remembers which were asked for."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.given = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
        self.known: set[str] = set()

    def text(self, name: str) -> str | None:
        self.known.add(PREFIX + name)
        return self.given.get(PREFIX + name) or None

    def get(self, name: str, parse: Callable[[str], Value]) -> Value | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as error:
            raise SettingsError(f"{PREFIX}{name}: {error}") from error

    def whole(self, name: str, highest: int, default: int) -> int:
        value = self.get(name, _whole(0, highest))
        return default if value is None else value

    def refuse_unknown(self) -> None:
        unknown = sorted(set(self.given) - self.known)
        if unknown:
            raise SettingsError(f"{unknown[0]}: no such setting; docs/configuration.md lists those there are")


def _embedded_redis_url(data_dir: Path) -> str:
    return f"unix://{runtime_dir(data_dir)}/redis.sock"


def _directory(value: str) -> Path:
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"must be a directory ({error})") from error


def _keys(value: str) -> str:
    keys = [key.strip() for key in value.split(",")]
    return ",".join(_at_least(32)(key) for key in keys if key) or _at_least(32)("")


def _at_least(length: int) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if len(value) < length or not value.isprintable():
            raise ValueError(f"needs at least {length} printable characters")
        return value

    return parse


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    by_folded = {choice.lower(): choice for choice in choices}

    def parse(value: str) -> str:
        if value.lower() not in by_folded:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return by_folded[value.lower()]

    return parse


def _whole(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not value.isascii() or not value.isdigit() or not lowest <= int(value) <= highest:
            raise ValueError(f"must be a whole number from {lowest} to {highest}")
        return int(value)

    return parse


def _database_url(value: str) -> str:
    if not value.startswith(("sqlite:///", "postgresql+psycopg://")):
        raise ValueError("must begin with sqlite:/// or postgresql+psycopg://")
    if value.startswith("sqlite:") and not value.startswith("sqlite:////"):
        raise ValueError("must name a file by its whole path: sqlite:////directory/file")
    _check_port(value)
    return value


def _redis_url(value: str) -> str:
    if not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("must begin with redis://, rediss:// or unix://")
    _check_port(value)
    return value


def _storage_url(value: str) -> str:
    scheme, _, rest = value.rstrip("/").partition("://")
    if (scheme == "file" and rest.startswith("/")) or (scheme == "s3" and rest and not rest.startswith("/")):
        return f"{scheme}://{rest}"
    raise ValueError("must be file:///directory or s3://bucket/prefix")


def _external_url(value: str) -> str:
    parts = _check_port(value)
    usual = parts.scheme in ("http", "https") and parts.hostname and not parts.username and value.isprintable()
    if not usual or " " in value or parts.query or parts.fragment:
        raise ValueError("must be an address such as https://projects.example.org, without query or fragment")
    if parts.path.strip("/"):
        raise ValueError("must not carry a path: the service answers at the root of its host")
    return value.rstrip("/")


def _check_port(value: str) -> SplitResult:
    parts = urlsplit(value)
    try:
        _port = parts.port
    except ValueError as error:
        raise ValueError("has a port that is none") from error
    return parts


def _mail_address(value: str) -> str:
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", value) or not value.isprintable():
        raise ValueError("must be an address such as projects@example.org")
    return value


def _networks(value: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(entry.strip(), strict=False) for entry in value.split(",") if entry.strip())
    except ValueError as error:
        raise ValueError(f"must be addresses or networks, separated by commas ({error})") from error
