"""URL rules: which addresses users may have this server request.

A name is resolved once, every address it has is checked, and the client connects to exactly those addresses, so that a
name that resolves differently a moment later changes nothing. ``docs/decisions/outgoing-requests.md`` has the reasons.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from base64 import b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote_to_bytes

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
Resolver = Callable[[str, int, int, int], Sequence[AddressInfo]]  # host, port, family, type; as socket.getaddrinfo

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
ENCODED_LINE_BREAK = re.compile(r"%0[0ad]", re.IGNORECASE)

DEFAULT_PORTS = {"http": 80, "https": 443}


class Blocked(Exception):
    """The URL may not be requested; the text is that of the broken URL rule and may be shown."""


@dataclass(frozen=True)
class Policy:
    """What may be reached beyond the public Internet."""

    allow_local: bool = False  # lifts every rule about addresses
    allowed: tuple[str, ...] = ()  # entries that check_allow_list_entry accepts
    own_url: str | None = None  # the URL of this instance: its host and port are exempt


@dataclass(frozen=True)
class Target:
    """A URL that passed the rules, and the checked addresses, the only ones to connect to."""

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
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: what credentials belong to."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def url(self) -> str:
        """The URL without user information and fragment; ``redact`` it before it goes to a log."""
        return self.origin + self.request_target


def validate(
    url: str, policy: Policy, resolver: Resolver = socket.getaddrinfo, *, resolve_seconds: float = 10.0
) -> Target:
    """Check a URL against the URL rules and resolve it; ``Blocked`` with the rule's text when it may not be used.

    A name is resolved once, for at most ``resolve_seconds``, and every address it has must be permitted.
    """
    target = _parse(url)
    target = replace(target, addresses=_addresses(target, resolver, resolve_seconds))
    for address in map(ipaddress.ip_address, target.addresses):
        rule = LOCALHOST if _is_local_name(target.host) else _rule_against(_unwrapped(address))
        if rule is not None and not _is_allowed(target, address, policy):
            raise Blocked(rule)
    return target


def check_link(url: str, policy: Policy) -> None:
    """Check a link that browsers follow and this server does not; ``Blocked`` with the text of the broken rule.

    Names are not resolved: the resolver of the browser may answer differently.
    """
    host = _parse(url).host
    if _is_local_name(host) or _is_address(host):
        validate(url, policy)


def spelling_problem(url: str) -> str | None:
    """The text of the syntax rule that a URL breaks, or ``None``; the host is not resolved."""
    try:
        _parse(url)
    except Blocked as error:
        return str(error)
    return None


def check_allow_list_entry(entry: str) -> None:
    """Raise ``ValueError`` unless an entry is a host, an address or a range, each with or without a port.

    ``example.com``, ``example.com:8080``, ``10.0.0.1``, ``10.0.0.0/8:443``, ``fd00::/8``, ``[fd00::1]:8080``.
    """
    host, _ = _parse_entry(entry)
    # checked only here: such an entry matches nothing, and must not fail every request
    if isinstance(host, str) and HEXADECIMAL.fullmatch(host.rpartition(".")[2]):
        raise _not_an_entry(entry)


def redact(url: str) -> str:
    """The URL for a log: without user information and fragment, the query replaced."""
    match = URL.fullmatch(url)
    if match is None or not _is_printable(url):
        return "[unreadable URL]"
    port = f":{match['port']}" if match["port"] else ""
    query = "?[FILTERED]" if match["query"] else ""
    return f"{match['scheme']}://{match['host']}{port}{match['path'] or ''}{query}"


def _parse(url: str) -> Target:
    """The parts of a URL, not yet resolved; ``Blocked`` for a syntax error."""
    if not _is_printable(url):
        raise Blocked(INVALID)
    if url.partition(":")[0].lower() not in DEFAULT_PORTS:
        raise Blocked(SCHEME)
    match = URL.fullmatch(url)
    # Decoded on their way, these would end a line of the request or of a log. A query is exempt: stores sign URLs
    # with signatures that have encoded line breaks, and servers do not decode it.
    if match is None or ENCODED_LINE_BREAK.search((match["userinfo"] or "") + (match["path"] or "")):
        raise Blocked(INVALID)
    scheme = match["scheme"].lower()
    port = int(match["port"] or DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise Blocked(INVALID)
    return Target(
        scheme=scheme,
        host=_parse_host(match["host"]),
        port=port,
        request_target=(match["path"] or "/") + (match["query"] or ""),
        authorization=basic_authorization(unquote_to_bytes(match["userinfo"])) if match["userinfo"] else None,
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
    host = (match["bracketed"] or match["plain"]) if match else entry
    port = int(match["port"]) if match and match["port"] else None
    if port is not None and not 0 < port < 65536:
        raise _not_an_entry(entry)
    with suppress(ValueError):
        return ipaddress.ip_network(host, strict=False), port
    # A text that ends in a number and is no address is a typing error (a lone port, an octet too many).
    name = host.lower().rstrip(".")
    if len(name) > 255 or not HOST_NAME.fullmatch(host) or name.rpartition(".")[2].isdigit():
        raise _not_an_entry(entry)
    return name, port


def _not_an_entry(entry: str) -> ValueError:
    advice = "" if entry.isascii() else "; a name with such letters is written in punycode (xn--…)"
    return ValueError(f"{entry!r} is not a host, an address or a range, with or without a port{advice}")


def _addresses(target: Target, resolver: Resolver, resolve_seconds: float) -> tuple[str, ...]:
    if _is_local_name(target.host):
        return ("127.0.0.1",)
    with suppress(ValueError):
        return (str(ipaddress.ip_address(target.host)),)
    # The system's resolver cannot be interrupted, only abandoned.
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        resolved = pool.submit(resolver, target.host, target.port, 0, socket.SOCK_STREAM).result(resolve_seconds)
    except (OSError, UnicodeError):  # a time-out is an OSError, a label over 63 characters a UnicodeError
        raise Blocked(UNRESOLVED) from None
    finally:
        pool.shutdown(wait=False)
    if not resolved:
        raise Blocked(UNRESOLVED)
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in resolved))


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


def _is_local_name(host: str) -> bool:
    """Names that always mean this machine (RFC 6761, section 6.3)."""
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
    hosts = [host for host, port in map(_parse_entry, policy.allowed) if port in (None, target.port)]
    return any(
        host == target.host if isinstance(host, str) else address in host or _unwrapped(address) in host
        for host in hosts
    )


def basic_authorization(credentials: bytes) -> str:
    """The Authorization header for ``name:password``; the colon may be missing."""
    return "Basic " + b64encode(credentials if b":" in credentials else credentials + b":").decode()


def _is_printable(url: str) -> bool:
    """Whether a URL consists of printable ASCII without spaces, so that it can be sent as it is."""
    return all("!" <= character <= "~" for character in url)
