"""Answers that are kept for as long as the database stays as it is.

What a list or a page answers follows from the request, the day, and what is in the database, permissions included.
Both databases can say cheaply whether anything at all has been committed since: SQLite counts changes (``PRAGMA
data_version``), and PostgreSQL tells which transactions are visible (``pg_current_snapshot()``). As long as they say
the same, the answer to the same token is the same; whatever anybody commits, in whatever process, makes all that was
kept worthless at once. Nobody has to announce a change, and none can be forgotten.

The state is read before the answer is made: a change in between makes an answer newer than its state, never older.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, cast

import sqlalchemy as sa
import structlog
from flask import Flask, Response, current_app, g
from sqlalchemy import ColumnElement, Engine, Text, event

from project_service.kit import clock
from project_service.kit.db.session import db

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

MOST_BYTES = 2 << 20
MOST_TOTALS = 256
OF_A_HEADER = 160  # bytes that Python needs for a pair of texts beside what they say
LARGEST = 64 << 10
NEVER = dt.datetime.max.replace(tzinfo=dt.UTC)
LONGEST = dt.timedelta(seconds=60)  # after which it counts again that time passes and that tokens are used
KEY, STATE = "project_service.key", "project_service.state"  # of the environment of a request
NO_BODY = ("", "0")
# what says something of one request, or of a body that a 304 leaves out
OF_ONE_REQUEST = frozenset(
    {"X-Request-Id", "X-Runtime", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Content-Length"}
)
CREDENTIALS = ("HTTP_PRIVATE_TOKEN", "HTTP_AUTHORIZATION", "HTTP_SUDO", "HTTP_COOKIE")

# with the moment when the server was started: for another one in its place the numbers mean something else
TOLD = "pg_current_snapshot()::text || ' ' || EXTRACT(EPOCH FROM pg_postmaster_start_time())::text"
TELL = f"SELECT {TOLD}"
SNAPSHOT: ColumnElement[str] = sa.literal_column(TOLD, Text).label("snapshot")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer, whole but for what belongs to a single request, with the state of the database it belongs to.

    ``size`` is the memory it takes, in bytes.
    """

    state: Hashable
    until: dt.datetime
    headers: tuple[tuple[str, str], ...]
    body: bytes
    tag: str
    route: str
    size: int


def size_of(headers: Collection[tuple[str, str]], body: bytes) -> int:
    """The memory they take, in bytes: the headers take as much as many a body."""
    return len(body) + OF_A_HEADER * len(headers) + sum(map(len, chain.from_iterable(headers)))


class Source(Protocol):
    """Where the state comes from; ``errors`` are those of its driver."""

    errors: type[Exception]
    opened: int  # which connections it has: of others the same state may mean something else
    column: ColumnElement[str] | None  # with which a statement tells the state it reads, if that spares a way

    def state(self) -> Hashable:
        """Something that is only the same when nothing was committed in between."""

    def close(self) -> None:
        """Let go of all connections."""


class Totals:
    """How long the lists are that were counted last: whoever goes on to the next page has them counted only once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Hashable, dt.datetime, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, state: Hashable, name: Hashable, count: Callable[[], int]) -> int:
        """The length of a list, which ``count`` finds out if the database is no longer in the state it was counted in.

        ``name`` tells it from all others, and is kept: it is to be short.
        """
        now = clock.now()
        with self._lock:
            kept_in, until, total = self._kept.get(name, (None, now, 0))
        if kept_in == state and now < until:
            return total
        total = count()
        with self._lock:
            self._kept[name] = state, now + LONGEST, total
            self._kept.move_to_end(name)
            if len(self._kept) > MOST_TOTALS:
                self._kept.popitem(last=False)
        return total


class Answers:
    """The answers of one process that were asked for last, as many as ``MOST_BYTES`` hold."""

    def __init__(self, source: Source, base_url: str | None) -> None:
        self.source = source
        self.base_url = base_url
        self.totals = Totals()
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, environ: WSGIEnvironment) -> Kept | None:
        """The answer to the same request, if nothing has changed since; ``expect`` needs to have asked for it here."""
        if environ["REQUEST_METHOD"] != "GET" or environ.get("CONTENT_LENGTH", "0") not in NO_BODY:
            return None
        if "HTTP_TRANSFER_ENCODING" in environ:
            return None
        key = environ[KEY] = self._key(environ)
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
        environ[STATE] = self._state()
        return kept if kept.state == environ[STATE] and kept.until >= clock.now() else None

    def expect(self, environ: WSGIEnvironment) -> None:
        """Note the state of the database before an answer is made that may be kept.

        Where statements tell it, the first that is sent for the request does, or else ``ask`` finds it out.
        """
        key = environ.get(KEY)
        if key is None:
            return
        state = environ.get(STATE)
        if state is None and self.source.column is not None:
            g.untold = key
        else:
            self._note(key, state or self._state())

    def told(self, found: Any) -> None:
        """The first statement of a request has told the state along with its row, see ``snapshot``."""
        key = g.pop("untold", None)
        if key is not None:
            self._note(key, (self.source.opened, found.snapshot))

    def ask(self) -> bool:
        """Find the state out, if no row has told it, before others are read; whether that was so."""
        key = g.pop("untold", None)
        if key is None:
            return False
        self._note(key, self._state())
        return True

    def _note(self, key: bytes, state: Hashable) -> None:
        g.kept_as = None if state is None else (key, state)
        g.total = None if state is None else partial(self.totals.find, state)

    def keep(self, response: Response, route: str) -> None:
        """Keep the answer that was expected, with all its headers."""
        g.pop("untold", None)
        found: tuple[bytes, Hashable] | None = g.pop("kept_as", None)
        if found is None or response.status_code != 200 or response.is_streamed:
            return
        body = response.get_data()
        if len(body) > LARGEST:
            return
        key, state = found
        until = min(clock.now() + LONGEST, g.get("valid_until", NEVER))
        headers = tuple(pair for pair in response.headers if pair[0] not in OF_ONE_REQUEST)
        tag = response.headers.get("ETag", "")
        kept = Kept(state, until, headers, body, tag, route, size_of(headers, body))
        with self._lock:
            self._drop(key)
            self._kept[key] = kept
            self._size += kept.size
            while self._size > MOST_BYTES:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: bytes) -> None:
        dropped = self._kept.pop(key, None)
        self._size -= dropped.size if dropped else 0

    def _state(self) -> Hashable:
        try:
            return self.source.state()
        except self.source.errors as error:
            log.warning("the database does not tell its state", error=str(error))
            return None

    def _key(self, environ: WSGIEnvironment) -> bytes:
        base = self.base_url or f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST', '')}"
        target = environ.get("RAW_URI") or environ.get("REQUEST_URI") or environ.get("PATH_INFO", "")
        credentials = (environ.get(name, "") for name in CREDENTIALS)
        # not every server has the query in the raw target
        parts = (base, target, environ.get("QUERY_STRING", ""), clock.today().isoformat(), *credentials)
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).digest()


class CountOfChanges:
    """SQLite counts for a connection what all others commit; this one commits nothing, so it counts everything."""

    column: ColumnElement[str] | None = None

    def __init__(self, engine: Engine) -> None:
        self._driver = cast("Any", engine.dialect.dbapi)
        self.errors = self._driver.Error
        self._path = str(engine.url.database)
        self._lock = threading.Lock()
        self.opened = 0
        self._connection: Any = None

    def state(self) -> Hashable:
        with self._lock:
            if self._connection is None:
                self.opened += 1  # the count begins anew with each connection
                self._connection = self._driver.connect(self._path, check_same_thread=False, isolation_level=None)
            return self.opened, self._connection.execute("PRAGMA data_version").fetchone()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


class VisibleTransactions:
    """PostgreSQL tells which transactions are visible: while these are the same, so is everything one reads."""

    column: ColumnElement[str] | None = SNAPSHOT

    def __init__(self, engine: Engine) -> None:
        self._driver = cast("Any", engine.dialect.dbapi)
        self.errors = self._driver.Error
        self._address = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._idle: deque[Any] = deque()
        self.opened = 0

    def state(self) -> Hashable:
        opened = self.opened
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._driver.connect(self._address, autocommit=True)
        try:
            [told] = connection.execute(TELL).fetchone()
        except BaseException:
            connection.close()
            self.close()
            raise
        if opened == self.opened:
            self._idle.append(connection)
        else:
            connection.close()
        return opened, told

    def close(self) -> None:
        self.opened += 1
        while self._idle:
            self._idle.pop().close()


def init_app(app: Flask) -> None:
    """Begin with nothing."""
    with app.app_context():
        engine = db.engine
    source: Source = CountOfChanges(engine) if engine.dialect.name == "sqlite" else VisibleTransactions(engine)
    event.listen(engine, "engine_disposed", lambda _engine: source.close())
    app.extensions["kept_answers"] = Answers(source, app.config["EXTERNAL_URL"])


def answers_of(app: Flask) -> Answers:
    """What this process keeps."""
    found: Answers = app.extensions["kept_answers"]
    return found


def answers() -> Answers:
    """The same, of the current application."""
    return answers_of(current_app)


def snapshot() -> Iterable[ColumnElement[str]]:
    """What the first statement of a request selects beside its columns, and is ``told`` then."""
    column = answers().source.column
    return () if column is None else (column,)
