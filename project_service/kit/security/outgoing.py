"""HTTP requests to addresses that users chose, kept away from networks that users must not reach.

Every URL passes the URL rules before a connection is opened, and the connection goes to the very address that was
judged: a name that answers differently a moment later changes nothing. Each redirect is a new URL and is judged anew.
``docs/decisions/outgoing-requests.md`` tells why it is built so. Times are seconds, sizes are bytes.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from http.client import HTTPException, responses
from typing import IO, Any
from urllib.parse import unquote_to_bytes, urljoin

from urllib3 import BaseHTTPResponse, HTTPHeaderDict
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
Resolver = Callable[[str, int, int, int], Sequence[AddressInfo]]  # host, port, family, type; as socket.getaddrinfo
Body = bytes | IO[bytes] | Iterable[bytes]

SCHEME = "Only allowed schemes are http, https"
INVALID = "URI is invalid"
BAD_HOST = "Hostname or IP address invalid"
TOO_LONG = "Host is too long (maximum is 1024 characters)"
UNRESOLVED = "Host cannot be resolved or invalid"
LOCALHOST = "Requests to localhost are not allowed"
LOOPBACK = "Requests to loopback addresses are not allowed"
LOCAL_NETWORK = "Requests to the local network are not allowed"
LINK_LOCAL = "Requests to the link local network are not allowed"
SHARED = "Requests to the shared address space are not allowed"
BROADCAST = "Requests to the limited broadcast address are not allowed"

# The first row that holds an address decides. The URL rules name most of these networks; the others (protocol
# assignments, benchmarking, multicast, what is not assigned at all) reach nothing on the Internet and get the text
# that comes nearest. A cloud's metadata service is in here whichever the cloud: 169.254.169.254, fd00:ec2::254,
# 100.100.100.200, 192.0.0.192, and 168.63.129.16, which looks like a public address and is not.
FORBIDDEN: tuple[tuple[str, tuple[Network, ...]], ...] = tuple(
    (text, tuple(ipaddress.ip_network(network) for network in networks.split()))
    for text, networks in (
        (LOCALHOST, "0.0.0.0/8 ::/128"),
        (LOOPBACK, "127.0.0.0/8 ::1/128"),
        (LOCAL_NETWORK, "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"),
        (LINK_LOCAL, "169.254.0.0/16 168.63.129.16/32 fe80::/10"),
        (SHARED, "100.64.0.0/10"),
        (BROADCAST, "224.0.0.0/4 240.0.0.0/4 ff00::/8"),
        (LOCAL_NETWORK, "192.0.0.0/24 198.18.0.0/15 ::/3 4000::/2 8000::/1"),
    )
)

# Where IPv6 carries an IPv4 address: the network, how far its bits stand from the right, what they are XORed with.
EMBEDDINGS = tuple(
    (ipaddress.IPv6Network(network), shift, mask)
    for network, shift, mask in (
        ("::/96", 0, 0),  # IPv4-compatible
        ("::ffff:0:0/96", 0, 0),  # IPv4-mapped
        ("::ffff:0:0:0/96", 0, 0),  # IPv4-translated
        ("64:ff9b::/96", 0, 0),  # NAT64
        ("2002::/16", 80, 0),  # 6to4
        ("2001::/32", 0, 0xFFFFFFFF),  # Teredo
    )
)

# One strict grammar and no second parser that could read the same text in another way. The fragment is not sent.
URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?:(?P<userinfo>[^/?#@\\]*)@)?"
    r"(?P<host>\[[0-9a-f:.]+\]|[^/?#@:\[\]\\]*)"
    r"(?::(?P<port>[0-9]{0,5}))?"
    r"(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?:#.*)?",
    re.IGNORECASE,
)
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
HEXADECIMAL = re.compile(r"0x[0-9a-f]*")
ENTRY = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:./]+)\]|(?P<plain>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")
ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
ENCODED_LINE_BREAK = re.compile(r"%0[0ad]", re.IGNORECASE)
HEADER_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

PORTS = {"http": 80, "https": 443}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# The headers that may follow a redirect to another origin. Nobody can list every header that carries a secret.
HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "range", "user-agent"})
CHUNK = 64 * 1024
LONGEST_REASON = 100  # characters


class Blocked(Exception):
    """The URL may not be requested; the text is that of the URL rule it breaks, fit to be shown."""


class RequestFailed(Exception):
    """No complete answer came: refused, too late, broken. The text is fit to be shown, it holds nothing secret."""


@dataclass(frozen=True)
class Policy:
    """What may be reached beyond the public Internet."""

    allow_local: bool = False  # lifts every rule about addresses
    allowed: tuple[str, ...] = ()  # entries that check_allow_list_entry accepts
    own_url: str | None = None  # the address of this instance: its host and port are exempt


@dataclass(frozen=True)
class Target:
    """A URL that passed the rules, and the addresses it was judged by, which are the only ones to connect to."""

    scheme: str
    host: str  # a name in lower case, or an address in its usual spelling, IPv6 without brackets
    port: int
    request_target: str = field(repr=False)  # path and query, byte for byte as given
    authorization: str | None = field(repr=False)  # from the user information of the URL
    addresses: tuple[str, ...] = ()

    @property
    def netloc(self) -> str:
        """Host and port as in the Host header: a default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: what credentials belong to."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def url(self) -> str:
        """The URL without user information and fragment; ``redact`` it before it goes to a log."""
        return self.origin + self.request_target


def validate(url: str, policy: Policy, resolver: Resolver = socket.getaddrinfo, *, patience: float = 10.0) -> Target:
    """Judge a URL by the URL rules and say where it leads; ``Blocked`` with the rule's text when it may not be used.

    A name is looked up once, for at most ``patience`` seconds, and every address it has must be permitted.
    """
    target = _parse(url)
    target = replace(target, addresses=_addresses(target, resolver, patience))
    for address in map(ipaddress.ip_address, target.addresses):
        rule = LOCALHOST if _is_local_name(target.host) else _rule_against(_unwrapped(address))
        if rule is not None and not _is_allowed(target, address, policy):
            raise Blocked(rule)
    return target


def check_link(url: str, policy: Policy) -> None:
    """Judge an address that people follow and this machine does not; ``Blocked`` with the text of the rule it breaks.

    It is judged by its writing: no name is looked up, for what a browser will be told is not ours to know.
    """
    host = _parse(url).host
    if _is_local_name(host) or _is_address(host):
        validate(url, policy)


def spelling_problem(url: str) -> str | None:
    """The URL rule that the writing of a URL breaks; where it leads is not asked."""
    try:
        _parse(url)
    except Blocked as error:
        return str(error)
    return None


def check_allow_list_entry(entry: str) -> None:
    """Refuse with ``ValueError`` what is neither host, address nor range, each with or without a port.

    ``example.com``, ``example.com:8080``, ``10.0.0.1``, ``10.0.0.0/8:443``, ``fd00::/8``, ``[fd00::1]:8080``.
    """
    place, _ = _parse_entry(entry)
    # Judged here alone, since older releases took it: it matches nothing, and must not stop every request.
    if isinstance(place, str) and HEXADECIMAL.fullmatch(place.rpartition(".")[2]):
        raise _not_an_entry(entry)


def redact(url: str) -> str:
    """The URL as it may stand in a log: without user information and fragment, the query only hinted at."""
    match = URL.fullmatch(url)
    if match is None or not _is_printable(url):
        return "[unreadable URL]"
    port = f":{match['port']}" if match["port"] else ""
    query = "?[FILTERED]" if match["query"] else ""
    return f"{match['scheme']}://{match['host']}{port}{match['path'] or ''}{query}"


@dataclass
class Pace:
    """The least that has to move: ``least`` bytes in every ``seconds``, over however many requests a transfer takes.

    A time-out begins anew with every byte, and one byte now and then would hold whoever waits for hours. Requests that
    are made at a pace fail when it is lost. Bodies of answers count by themselves, what is sent is counted by who
    sends it.
    """

    least: int
    seconds: float
    lost: bool = False
    _moved: int = 0
    _ends: float = 0.0

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.seconds

    def count(self, size: int) -> None:
        """So many bytes more have moved."""
        self._moved += size

    def look(self) -> float:
        """Judge the stretch that is over, if one is; the seconds until the next look."""
        now = time.monotonic()
        if now >= self._ends:
            self.lost = self.lost or self._moved < self.least
            self._moved, self._ends = 0, now + self.seconds
        return self._ends - now

    def check(self) -> None:
        """Raise ``RequestFailed`` when the pace is lost."""
        if self.lost:
            raise RequestFailed("The far side is too slow")


@dataclass(frozen=True)
class Answer:
    """What the far side sent: the head at once, the body while it is read, as long as the request is open."""

    status: int
    headers: Mapping[str, str]  # names in any case; a repeated header is one, joined by commas
    final_url: str = field(repr=False)  # after redirects, without user information; redact it before it is logged
    _response: BaseHTTPResponse = field(repr=False)
    _target: Target = field(repr=False)
    _deadline: float = field(repr=False)
    _pace: Pace | None = field(default=None, repr=False)

    @property
    def reason(self) -> str:
        """The phrase beside the status, as far as it can be shown; the usual one where the far side sent none."""
        said = "".join(filter(str.isprintable, self._response.reason or ""))[:LONGEST_REASON].strip()
        return said or responses.get(self.status, "")

    def iter_chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """The body as it was sent, not decompressed, in pieces of ``size`` bytes; the last may be shorter.

        ``RequestFailed`` when it stops early or the time is up, so that half a body never passes for a whole one.
        """
        while True:
            with _failures(self._target, self._deadline, self._pace):
                chunk = self._response.read(size, decode_content=False)
            if not chunk:
                return
            if self._pace is not None:
                self._pace.count(len(chunk))
            yield chunk

    def read(self, limit: int) -> bytes:
        """The whole body; ``RequestFailed`` when it has more than ``limit`` bytes."""
        body = bytearray()
        for chunk in self.iter_chunks(min(limit + 1, CHUNK)):
            body += chunk
            if len(body) > limit:
                raise RequestFailed(f"The answer of {self._target.netloc} has more than {limit} bytes")
        return bytes(body)


@dataclass(frozen=True)
class Client:
    """Makes requests within a policy. It holds no connection and may be shared between threads.

    ``total_timeout`` counts from the call to the last byte read, over all redirects and the caller's own time while
    it reads. Proxies and credentials of the environment are not used.
    """

    policy: Policy
    connect_timeout: float = 5.0  # for the look-up of the name, and for each of its addresses
    read_timeout: float = 10.0  # without a byte in either direction
    total_timeout: float = 60.0
    max_redirects: int = 5
    resolver: Resolver = socket.getaddrinfo
    tls: ssl.SSLContext | None = None  # other certificate authorities than those of the machine
    pace: Pace | None = None  # of one transfer, to which this client belongs then

    @contextmanager
    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        credentials: tuple[str, str] | None = None,
    ) -> Iterator[Answer]:
        """Send a request and give its answer, whatever the status, while the ``with`` block lasts.

        ``credentials`` are name and password for Basic authentication; a given Authorization header comes before
        them, the user information of the URL after them. A body that is not ``bytes`` goes out chunked unless
        ``headers`` has its Content-Length. GET and HEAD without a body follow redirects; to another origin goes
        nothing but harmless headers. Raises ``Blocked`` and ``RequestFailed``.
        """
        deadline = time.monotonic() + self.total_timeout
        target = self._validate(url, deadline)
        sent = HTTPHeaderDict(headers or {})
        if credentials is not None:
            sent.setdefault("Authorization", _basic(":".join(credentials).encode()))
        for _ in range(self.max_redirects + 1):
            if target.authorization is not None:
                sent.setdefault("Authorization", target.authorization)
            with self._exchange(method, target, sent, body, deadline) as response:
                location = response.headers.get("Location") if response.status in REDIRECTS else None
                if location is None:
                    yield Answer(response.status, response.headers, target.url, response, target, deadline, self.pace)
                    return
            if method not in ("GET", "HEAD") or body is not None:
                raise RequestFailed(f"{target.netloc} answered {method} with a redirect, which is not followed")
            # Only a relative address is joined: joining rewrites, and a signed URL must arrive as it was written.
            location = location if ABSOLUTE.match(location) else urljoin(target.url, location)
            previous, target = target, self._validate(location, deadline)
            if target.origin != previous.origin:
                sent = HTTPHeaderDict((name, value) for name, value in sent.items() if name.lower() in HARMLESS)
        raise RequestFailed(f"More than {self.max_redirects} redirects")

    def head(self, url: str, *, headers: Mapping[str, str] | None = None) -> Answer:
        """The head of what a GET would answer; its body is empty."""
        with self.request("HEAD", url, headers=headers) as answer:
            return answer

    def _validate(self, url: str, deadline: float) -> Target:
        return validate(url, self.policy, self.resolver, patience=min(self.connect_timeout, _remaining(deadline)))

    @contextmanager
    def _exchange(
        self, method: str, target: Target, headers: HTTPHeaderDict, body: Body | None, deadline: float
    ) -> Iterator[BaseHTTPResponse]:
        sent = HTTPHeaderDict(headers)
        sent["Host"] = target.netloc
        sent.setdefault("User-Agent", "project-service")
        _check_headers(sent)
        with _failures(target, deadline):
            connection = self._connect(target, deadline)
        # The timeout of a socket starts again with every byte, and a far side that sends one now and then could
        # hold a worker for days. When the time is up the socket is shut, which ends whatever waits for it.
        over = threading.Event()
        watching = (connection.sock, deadline, self.pace, over)
        threading.Thread(target=_watch, args=watching, name="watchdog", daemon=True).start()
        with closing(connection):
            try:
                with _failures(target, deadline, self.pace):
                    response = _send(connection, method, sent, body)
                with closing(response):
                    yield response
            finally:
                over.set()

    def _connect(self, target: Target, deadline: float) -> HTTPConnection:
        failures: list[Exception] = []
        for address in target.addresses:
            connection = self._connection(target, address, min(self.connect_timeout, _remaining(deadline)))
            try:
                connection.connect()
            except (HTTPError, OSError) as error:
                connection.close()
                failures.append(error)
            else:
                connection.timeout = min(self.read_timeout, _remaining(deadline))
                return connection
        raise failures[-1]

    def _connection(self, target: Target, address: str, timeout: float) -> HTTPConnection:
        connection: _Connection
        if target.scheme == "https":
            connection = _TlsConnection(
                address,
                target.port,
                timeout=timeout,
                server_hostname=target.host,
                ssl_context=self.tls or _default_tls(),
            )
        else:
            connection = _Connection(address, target.port, timeout=timeout)
        connection.request_target = target.request_target
        return connection


class _Connection(HTTPConnection):
    """Sends ``request_target`` whatever the caller asked for.

    urllib3 quotes the address it was given when it warns of odd headers, and the query of a signed URL is a secret.
    So it is given "/" and cannot tell.
    """

    request_target = "/"

    def putrequest(self, method: str, url: str, skip_host: bool = False, skip_accept_encoding: bool = False) -> None:
        super().putrequest(method, self.request_target, skip_host, skip_accept_encoding)


class _TlsConnection(_Connection, HTTPSConnection):
    """The same over TLS; certificate and server name indication follow the name, not the address."""


@cache
def _default_tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _parse(url: str) -> Target:
    """The parts of a URL, not yet looked up; ``Blocked`` for what is wrong with its writing."""
    if not _is_printable(url):
        raise Blocked(INVALID)
    if url.partition(":")[0].lower() not in PORTS:
        raise Blocked(SCHEME)
    match = URL.fullmatch(url)
    # Decoded on their way, these would end a line of the request or of a log. A query is exempt: stores sign URLs
    # with signatures that have encoded line breaks, and nobody decodes it.
    if match is None or ENCODED_LINE_BREAK.search((match["userinfo"] or "") + (match["path"] or "")):
        raise Blocked(INVALID)
    scheme = match["scheme"].lower()
    port = int(match["port"] or PORTS[scheme])
    if not 0 < port < 65536:
        raise Blocked(INVALID)
    return Target(
        scheme=scheme,
        host=_parse_host(match["host"]),
        port=port,
        request_target=(match["path"] or "/") + (match["query"] or ""),
        authorization=_basic(unquote_to_bytes(match["userinfo"])) if match["userinfo"] else None,
    )


def _parse_host(host: str) -> str:
    """A name in lower case or an address in its usual spelling, whatever the spelling was (``0x7f.1``)."""
    if len(host) > 1024:
        raise Blocked(TOO_LONG)
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            raise Blocked(BAD_HOST) from None
    if not HOST_NAME.fullmatch(host):
        raise Blocked(BAD_HOST)
    host = host.lower().rstrip(".")
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host


def _parse_entry(entry: str) -> tuple[str | Network, int | None]:
    match = ENTRY.fullmatch(entry)
    # An IPv6 address without brackets matches nothing: all its colons belong to it.
    place = (match["bracketed"] or match["plain"]) if match else entry
    port = int(match["port"]) if match and match["port"] else None
    if port is not None and not 0 < port < 65536:
        raise _not_an_entry(entry)
    with suppress(ValueError):
        return ipaddress.ip_network(place, strict=False), port
    # What ends in a number and is no address is a slip (a lone port, an octet too many), never the name of a host.
    name = place.lower().rstrip(".")
    if len(name) > 255 or not HOST_NAME.fullmatch(place) or name.rpartition(".")[2].isdigit():
        raise _not_an_entry(entry)
    return name, port


def _not_an_entry(entry: str) -> ValueError:
    advice = "" if entry.isascii() else "; a name with such letters is written in punycode (xn--…)"
    return ValueError(f"{entry!r} is not a host, an address or a range, with or without a port{advice}")


def _addresses(target: Target, resolver: Resolver, patience: float) -> tuple[str, ...]:
    if _is_local_name(target.host):
        return ("127.0.0.1",)
    with suppress(ValueError):
        return (str(ipaddress.ip_address(target.host)),)
    # The system's resolver cannot be interrupted, only left behind.
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        found = pool.submit(resolver, target.host, target.port, 0, socket.SOCK_STREAM).result(patience)
    except (OSError, UnicodeError):  # a time-out is an OSError, a label over 63 characters a UnicodeError
        raise Blocked(UNRESOLVED) from None
    finally:
        pool.shutdown(wait=False)
    if not found:
        raise Blocked(UNRESOLVED)
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


def _is_local_name(host: str) -> bool:
    """Names that mean this machine whatever a resolver says (RFC 6761, section 6.3)."""
    return host == "localhost" or host.endswith(".localhost")


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 address carries and a gateway would turn to, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address) or int(address) < 2:  # :: and ::1 mean themselves
        return address
    for network, shift, mask in EMBEDDINGS:
        if address in network:
            return ipaddress.IPv4Address((int(address) >> shift & 0xFFFFFFFF) ^ mask)
    return address


def _rule_against(address: Address) -> str | None:
    rule = next((text for text, networks in FORBIDDEN if any(address in network for network in networks)), None)
    return LOCALHOST if rule != LOOPBACK and _is_own(address) else rule


def _is_own(address: Address) -> bool:
    """Whether the address is one of this machine's.

    The standard library cannot list them; but only to its own address does a machine go from that same address.
    Connecting a datagram socket chooses the way and sends nothing.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return bool(ipaddress.ip_address(probe.getsockname()[0]) == address)
    except OSError:
        return False


def _is_allowed(target: Target, address: Address, policy: Policy) -> bool:
    if policy.allow_local:
        return True
    if policy.own_url is not None:
        own = _parse(policy.own_url)
        if (own.host, own.port) == (target.host, target.port):
            return True
    places = [place for place, port in map(_parse_entry, policy.allowed) if port in (None, target.port)]
    return any(
        place == target.host if isinstance(place, str) else address in place or _unwrapped(address) in place
        for place in places
    )


def _send(connection: HTTPConnection, method: str, headers: HTTPHeaderDict, body: Body | None) -> BaseHTTPResponse:
    # A far side may refuse an upload before its end: what it says is still worth reading.
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.request(method, "/", body=body, headers=headers, preload_content=False, decode_content=False)
    return connection.getresponse()


def _check_headers(headers: HTTPHeaderDict) -> None:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            raise RequestFailed(f"The header {name!r} has characters that cannot be sent")


@contextmanager
def _failures(target: Target, deadline: float, pace: Pace | None = None) -> Iterator[None]:
    """Turn what the network layers raise into ``RequestFailed``, and also success that came too late."""
    try:
        yield
    except (HTTPError, HTTPException, OSError) as error:
        _check_time(deadline, pace)
        raise RequestFailed(f"Request to {target.netloc} failed: {_reason(error)}") from error
    _check_time(deadline, pace)


def _check_time(deadline: float, pace: Pace | None) -> None:
    """Raise ``RequestFailed`` when this side has ended the request, whatever came of that."""
    _remaining(deadline)
    if pace is not None:
        pace.check()


def _reason(error: BaseException | None) -> str:
    """What went wrong, in words of the operating system or ours: other texts may quote the request."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"certificate verify failed: {error.verify_message}"
        if isinstance(error, ssl.SSLError):
            return "TLS failed"
        if isinstance(error, TimeoutError):
            return "timed out"
        if isinstance(error, OSError) and error.errno is not None:
            return os.strerror(error.errno)
        error = error.__cause__ or error.__context__
    return "the answer is incomplete or not HTTP"


def _remaining(deadline: float) -> float:
    """Seconds until the deadline; ``RequestFailed`` when it is over."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise RequestFailed("The request took too long")
    return seconds


def _watch(sock: socket.socket, deadline: float, pace: Pace | None, over: threading.Event) -> None:
    """Shut a socket when the deadline comes or the pace is lost, unless the request is over before."""
    while True:
        left = deadline - time.monotonic()
        until_look = left if pace is None else pace.look()
        if left <= 0 or (pace is not None and pace.lost):
            _shut(sock)
            return
        if over.wait(min(left, until_look)):
            return


def _shut(sock: socket.socket) -> None:
    # Not sock.shutdown: that of a TLS socket also takes its TLS layer away under the thread that is reading.
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _basic(credentials: bytes) -> str:
    return "Basic " + b64encode(credentials if b":" in credentials else credentials + b":").decode()


def _is_printable(url: str) -> bool:
    """Whether a URL consists of printable ASCII without spaces, so that it can be sent as it is."""
    return all("!" <= character <= "~" for character in url)
