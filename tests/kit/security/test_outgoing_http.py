"""What requests to addresses that users chose may reach, and what of them the far side and the logs get to see."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from unittest.mock import Mock

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from project_service.kit.security.outgoing_http import rules
from project_service.kit.security.outgoing_http.client import Client, MinimumRate, RequestFailed
from project_service.kit.security.outgoing_http.rules import (
    Blocked,
    Policy,
    Target,
    check_allow_list_entry,
    redact,
    validate,
)
from tests.support.remote_servers import RemoteServer, raw, reply, serving

PUBLIC = "203.0.113.7"
FAR_SIDE = Policy(allowed=("127.0.0.1",))
LOCALHOST = "Requests to localhost are not allowed"
LOOPBACK = "Requests to loopback addresses are not allowed"
LOCAL_NETWORK = "Requests to the local network are not allowed"
LINK_LOCAL = "Requests to the link local network are not allowed"
SHARED = "Requests to the shared address space are not allowed"
BROADCAST = "Requests to the limited broadcast address are not allowed"
INVALID = "URI is invalid"
UNRESOLVED = "Host cannot be resolved or invalid"


class Names:
    """A resolver: each name has its answers one after the other, the last one for ever; others do not exist."""

    def __init__(self, **responses: list[list[str]]) -> None:
        self.responses = {name.replace("_", "."): list(rounds) for name, rounds in responses.items()}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, family: int = 0, type: int = 0) -> list[rules.AddressInfo]:
        self.asked.append(host)
        if host not in self.responses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        rounds = self.responses[host]
        addresses = rounds.pop(0) if len(rounds) > 1 else rounds[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]


def everything_is_public(host: str, port: int, family: int = 0, type: int = 0) -> list[rules.AddressInfo]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (PUBLIC, port))]


@pytest.fixture
def names() -> Names:
    return Names(far_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]], intern_test=[["10.0.0.1"]])


@pytest.fixture
def client(names: Names) -> Client:
    return Client(FAR_SIDE, connect_timeout=20, read_timeout=20, total_timeout=60, resolver=names)


def get(client: Client, url: str, **options: object) -> bytes:
    with client.request("GET", url, **options) as response:  # type: ignore[arg-type]  # passed on as they are
        return response.read(1_000_000)


def verdict(url: str, policy: Policy | None = None, resolver: rules.Resolver = everything_is_public) -> str | None:
    """The text of the rule that blocks the URL, if any does."""
    try:
        validate(url, policy or Policy(), resolver)
    except Blocked as blocked:
        return str(blocked)
    return None


# How a URL is written


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("ftp://example.com/a", "Only allowed schemes are http, https"),
        ("file:///etc/passwd", "Only allowed schemes are http, https"),
        ("gopher://example.com:70/_x", "Only allowed schemes are http, https"),
        ("javascript:alert(1)", "Only allowed schemes are http, https"),
        ("example.com/a", "Only allowed schemes are http, https"),
        ("//example.com/a", "Only allowed schemes are http, https"),
        ("localhost:3000", "Only allowed schemes are http, https"),
        ("", "Only allowed schemes are http, https"),
        ("http:example.com", INVALID),
        ("http:/example.com", INVALID),
        ("http:\\\\example.com", INVALID),
        ("http://example.com\\@10.0.0.1/", INVALID),
        ("http://a@b@example.com/", INVALID),
        ("http://example.com:99999/", INVALID),
        ("http://example.com:0/", INVALID),
        ("http://example.com:-1/", INVALID),
        ("http://example.com:8o/", INVALID),
        ("http://exam ple.com/", INVALID),
        ("http://example.com/a b", INVALID),
        (" http://example.com/", INVALID),
        ("http://example.com/\r\nHost: evil", INVALID),
        ("http://example.com/\n", INVALID),
        ("http://exa\tmple.com/", INVALID),
        ("http://example.com/\0", INVALID),
        ("http://example.com/\x7f", INVALID),
        ("http://example.com/%0d%0aHost:%20evil", INVALID),
        ("http://example.com/%0A", INVALID),
        ("http://example.com/%00", INVALID),
        ("http://user%0a:secret@example.com/", INVALID),
        ("http://example.com/ä", INVALID),
        ("http://①②⑦.0.0.1/", INVALID),
        ("http://[::1/", INVALID),
        ("http://[fe80::1%25eth0]/", INVALID),
        ("http://-example.com/", "Hostname or IP address invalid"),
        ("http://.example.com/", "Hostname or IP address invalid"),
        ("http://_x/", "Hostname or IP address invalid"),
        ("http://exam%70le.com/", "Hostname or IP address invalid"),
        ("http://", "Hostname or IP address invalid"),
        ("http:///a", "Hostname or IP address invalid"),
        ("http://:8080", "Hostname or IP address invalid"),
        ("http://[1::2::3]/", "Hostname or IP address invalid"),
        (f"http://{'a' * 1025}/", "Host is too long (maximum is 1024 characters)"),
    ],
)
def test_a_malformed_url_is_refused_with_the_message_of_its_rule(url: str, text: str) -> None:
    assert verdict(url) == text


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "HTTPS://EXAMPLE.com:443/",
        "https://example.com:/a",
        "https://user:secret@example.com/a",
        "https://a_b.example.com./",
        "https://xn--exmple-cua.com/",
        "https://example.com?only=query",
        "https://example.com/a%20b?signature=one%0Atwo",
        "http://8.8.8.8/",
        "http://172.15.255.255/",
        "http://172.32.0.0/",
        "http://100.63.255.255/",
        "http://[2606:4700::1111]/",
        "http://[2002:808:808::1]/",
        "http://[64:ff9b::808:808]/",
    ],
)
def test_an_ordinary_url_is_accepted(url: str) -> None:
    assert verdict(url) is None


def test_a_host_without_an_address_cannot_be_resolved() -> None:
    assert verdict("http://nowhere.test/", resolver=Names()) == UNRESOLVED
    assert verdict("http://empty.test/", resolver=Names(empty_test=[[]])) == UNRESOLVED


@pytest.mark.parametrize("host", ["a" * 64 + ".test", "a..test"])
def test_a_name_that_is_invalid_for_dns_cannot_be_resolved(host: str) -> None:
    assert verdict(f"http://{host}/", resolver=socket.getaddrinfo) == UNRESOLVED


def test_a_slow_dns_request_times_out() -> None:
    released, returned = threading.Event(), []

    def never(host: str, port: int, family: int, type: int) -> list[rules.AddressInfo]:
        released.wait(30)
        returned.append(host)
        return []

    with pytest.raises(Blocked, match=UNRESOLVED):
        validate("http://slow.test/", Policy(), never, resolve_seconds=0.05)
    waited_for = list(returned)
    released.set()

    assert waited_for == []


# Which addresses are refused

FORBIDDEN = [
    ("0.0.0.0", LOCALHOST),
    ("0.1.2.3", LOCALHOST),
    ("::", LOCALHOST),
    ("127.0.0.1", LOOPBACK),
    ("127.255.255.254", LOOPBACK),
    ("::1", LOOPBACK),
    ("10.0.0.1", LOCAL_NETWORK),
    ("10.255.255.255", LOCAL_NETWORK),
    ("172.16.0.1", LOCAL_NETWORK),
    ("172.31.255.254", LOCAL_NETWORK),
    ("192.168.1.1", LOCAL_NETWORK),
    ("192.0.0.192", LOCAL_NETWORK),
    ("198.18.0.1", LOCAL_NETWORK),
    ("fc00::1", LOCAL_NETWORK),
    ("fd00:ec2::254", LOCAL_NETWORK),
    ("fec0::1", LOCAL_NETWORK),
    ("feef::1", LOCAL_NETWORK),
    ("64:ff9b:1::a00:1", LOCAL_NETWORK),
    ("100::1", LOCAL_NETWORK),
    ("4000::1", LOCAL_NETWORK),
    ("169.254.169.254", LINK_LOCAL),
    ("168.63.129.16", LINK_LOCAL),
    ("fe80::1", LINK_LOCAL),
    ("febf::1", LINK_LOCAL),
    ("100.64.0.1", SHARED),
    ("100.100.100.200", SHARED),
    ("255.255.255.255", BROADCAST),
    ("240.0.0.1", BROADCAST),
    ("224.0.0.1", BROADCAST),
    ("239.255.255.255", BROADCAST),
    ("ff02::1", BROADCAST),
    ("::ffff:127.0.0.1", LOOPBACK),
    ("::ffff:a9fe:a9fe", LINK_LOCAL),
    ("::127.0.0.1", LOOPBACK),
    ("::10.0.0.1", LOCAL_NETWORK),
    ("::ffff:0:10.0.0.1", LOCAL_NETWORK),
    ("64:ff9b::127.0.0.1", LOOPBACK),
    ("64:ff9b::a9fe:a9fe", LINK_LOCAL),
    ("2002:7f00:1::", LOOPBACK),
    ("2002:c0a8:101::1", LOCAL_NETWORK),
    ("2001:0:808:808::80ff:fffe", LOOPBACK),
]


@pytest.mark.parametrize(("address", "text"), FORBIDDEN)
def test_a_private_address_is_refused(address: str, text: str) -> None:
    host = f"[{address}]" if ":" in address else address

    assert verdict(f"http://{host}/") == text


@pytest.mark.parametrize(("address", "text"), FORBIDDEN)
def test_a_name_with_a_private_address_is_refused(address: str, text: str) -> None:
    assert verdict("https://trap.test/", resolver=Names(trap_test=[[address]])) == text


@pytest.mark.parametrize("addresses", [[PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], [PUBLIC, "::ffff:10.0.0.1"]])
def test_one_private_address_among_public_ones_is_refused(addresses: list[str]) -> None:
    assert verdict("http://mixed.test/", resolver=Names(mixed_test=[addresses])) == LOCAL_NETWORK


def test_a_link_local_address_with_a_zone_is_refused() -> None:
    assert verdict("http://near.test/", resolver=Names(near_test=[["fe80::1%1"]])) == LINK_LOCAL


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "localhost.", "a.localhost", "a.b.LOCALHOST:8080"])
def test_names_under_localhost_are_always_refused(host: str) -> None:
    assert verdict(f"http://{host}/") == LOCALHOST


@pytest.mark.parametrize(
    "host",
    ["0x7f000001", "0X7F.1", "2130706433", "127.1", "127.0.1", "0177.0.0.1", "0177.1", "017700000001", "127.0.0.1."]
    + ["127.000.000.001", "0x7f.0x0.0x0.0x1", "[0:0:0:0:0:ffff:127.0.0.1]", "[::FFFF:7F00:1]", "user@127.0.0.1"],
)
def test_spellings_of_the_loopback_address_are_refused(host: str) -> None:
    assert verdict(f"https://{host}:65535/a") == LOOPBACK


def test_the_machines_own_addresses_count_as_localhost() -> None:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect((PUBLIC, 9))
        except OSError:
            pytest.skip("this machine has no address but the loopback one")
        own = probe.getsockname()[0]

    assert verdict(f"http://{own}/") == LOCALHOST


PRIVATE = st.sampled_from(
    ["0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"]
) | st.sampled_from(["192.168.0.0/16", "100.64.0.0/10", "224.0.0.0/3"])
IN_IPV6 = ["::ffff:{0}", "::ffff:0:{0}", "::{0}", "64:ff9b::{0}", "2002:{1:x}:{2:x}::", "2002:{1:x}:{2:x}:a::b"]


@st.composite
def private_hosts(draw: st.DrawFn) -> str:
    """A private address in any of the ways to write it: one to four numbers in three bases, or inside IPv6."""
    network = ipaddress.IPv4Network(draw(PRIVATE))
    number = draw(st.integers(int(network[0]), int(network[-1])))
    if draw(st.booleans()):
        text = draw(st.sampled_from(IN_IPV6)).format(ipaddress.IPv4Address(number), number >> 16, number & 0xFFFF)
        return f"[{draw(st.sampled_from([text, text.upper(), ipaddress.IPv6Address(text).exploded]))}]"
    octets = list(number.to_bytes(4, "big"))
    whole = draw(st.integers(0, 3))
    parts = octets[:whole] + [int.from_bytes(octets[whole:], "big")]
    spelling = st.sampled_from(["{}", "0{:o}", "000{:o}", "0x{:x}", "0X{:X}", "0x0{:x}"])
    return ".".join(draw(spelling).format(part) for part in parts) + draw(st.sampled_from(["", "."]))


@settings(deadline=None, max_examples=300)
@given(private_hosts(), st.sampled_from(["", "a@", "a:b@"]), st.sampled_from(["", ":80", ":"]), st.booleans())
def test_spellings_of_private_addresses_are_refused(host: str, user: str, port: str, tls: bool) -> None:
    """The resolver would call every name public, so only an address that was understood is refused."""
    assert (verdict(f"http{'s' * tls}://{user}{host}{port}/a") or "").startswith("Requests to ")


# What an administrator can allow


def test_allowing_local_requests_disables_all_address_rules() -> None:
    policy = Policy(allow_local=True)

    assert [verdict(f"http://{host}/", policy) for host in ("localhost", "127.0.0.1", "10.0.0.1", "[fe80::1]")] == [
        None
    ] * 4
    assert verdict("file:///etc/passwd", policy) == "Only allowed schemes are http, https"


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("10.0.0.1", "http://10.0.0.1/"),
        ("10.0.0.1", "http://10.0.0.1:9000/"),
        ("10.0.0.1", "http://intern.test/"),
        ("10.0.0.1", "http://0x0a000001/"),
        ("10.0.0.1", "http://[::ffff:10.0.0.1]/"),
        ("10.0.0.1:9000", "http://intern.test:9000/"),
        ("10.0.0.0/8", "http://intern.test:1/"),
        ("10.0.0.9/8", "http://intern.test:1/"),
        ("10.0.0.0/8:443", "https://intern.test/"),
        ("intern.test", "http://intern.test/"),
        ("Intern.Test.", "http://intern.TEST./"),
        ("intern.test:80", "http://intern.test/"),
        ("::1", "http://[::1]/"),
        ("[::1]", "http://[0:0::1]:3/"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("fd00::/8", "http://[fd00::1]/"),
        ("[fd00::/8]:81", "http://[fd00::1]:81/"),
        ("localhost", "http://localhost:3000/"),
        ("127.0.0.1", "http://localhost:3000/"),
        ("127.0.0.1:3000", "http://localhost:3000/"),
    ],
)
def test_an_allowlist_entry_permits_its_address(entry: str, url: str, names: Names) -> None:
    check_allow_list_entry(entry)

    assert verdict(url, Policy(allowed=("192.0.2.1", entry)), names) is None


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("10.0.0.1", "http://10.0.0.2/"),
        ("10.0.0.1:9000", "http://10.0.0.1/"),
        ("10.0.0.0/8:443", "http://intern.test/"),
        ("intern.test:81", "http://intern.test/"),
        ("intern.test", "http://a.intern.test/"),
        ("intern.test", "http://10.0.0.1/"),
        ("[::1]:8080", "http://[::1]/"),
        ("127.0.0.1", "http://[::1]/"),
    ],
)
def test_an_allowlist_entry_permits_nothing_else(entry: str, url: str, names: Names) -> None:
    names.responses["a.intern.test"] = [["10.0.0.1"]]

    assert verdict(url, Policy(allowed=(entry,)), names) is not None


def test_every_address_of_a_name_must_be_allowed() -> None:
    resolver = Names(two_test=[["10.0.0.1", "10.0.0.2"]])

    assert verdict("http://two.test/", Policy(allowed=("10.0.0.1",)), resolver) == LOCAL_NETWORK
    assert verdict("http://two.test/", Policy(allowed=("10.0.0.1", "10.0.0.2")), resolver) is None


@pytest.mark.parametrize(
    "entry",
    ["", " ", "a b", "*.example.com", "http://example.com", "example.com/a", "example.com:", "example.com:0", "8080"]
    + ["example.com:65536", "example.com:http", "10.0.0.0/33", "10.0.0.300", "127.1", "[::1]:", "[::1", "::1::2", "-a"]
    + ["10.0.0.1,10.0.0.2", "user@example.com", "[example.com]:80", "ä.test", "a" * 2000]
    + ["0x7f000001", "0X7F000001:80", "127.0x1", "0x7f.1", "0177.0.0.1", "017700000001", "2130706433", "127.0.0.0x1."],
)
def test_invalid_allowlist_entries_are_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a host, an address or a range"):
        check_allow_list_entry(entry)


def test_a_non_ascii_name_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match=r"is written in punycode \(xn--…\)$"):
        check_allow_list_entry("bücher.example")

    check_allow_list_entry("xn--bcher-kva.example")
    check_allow_list_entry("0xdeadbeef.example")


def test_an_allowlist_entry_of_an_older_release_is_ignored(names: Names) -> None:
    policy = Policy(allowed=("0x0a000001", "10.0.0.1"))

    assert verdict("http://10.0.0.1/", policy, names) is None


@pytest.mark.parametrize(
    ("own", "url", "text"),
    [
        ("https://code.test", "https://code.test/a", None),
        ("https://code.test/", "http://CODE.test:443/", None),
        ("http://code.test:8080/prefix", "http://code.test:8080/", None),
        ("http://localhost:8080", "http://localhost:8080/a", None),
        ("https://code.test", "https://code.test:8443/", LOCAL_NETWORK),
        ("https://code.test", "https://other.test/", LOCAL_NETWORK),
        ("http://localhost:8080", "http://localhost:6379/", LOCALHOST),
    ],
)
def test_only_the_instances_own_host_and_port_are_exempt(own: str, url: str, text: str | None) -> None:
    resolver = Names(code_test=[["10.0.0.1"]], other_test=[["10.0.0.1"]])

    assert verdict(url, Policy(own_url=own), resolver) == text


# Where the connection goes


def test_the_connection_goes_to_the_address_that_was_checked(
    client: Client, remote: RemoteServer, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.responses["far.test"] = [["127.0.0.1"], ["127.0.0.2"]]
    system = Mock(side_effect=socket.getaddrinfo)
    monkeypatch.setattr(socket, "getaddrinfo", system)

    assert get(client, remote.url("/", "far.test")) == b"hello"
    assert names.asked == ["far.test"]
    assert {call.args[0] for call in system.call_args_list} <= {"127.0.0.1"}
    assert remote.received[0].headers["Host"] == f"far.test:{remote.port}"


def test_a_name_that_becomes_private_is_refused_at_the_next_lookup(
    client: Client, remote: RemoteServer, names: Names
) -> None:
    names.responses["far.test"] = [["127.0.0.1"], ["127.0.0.2"]]
    remote.redirects("/", "/again")

    with pytest.raises(Blocked, match=LOOPBACK):
        get(client, remote.url("/", "far.test"))

    assert len(remote.received) == 1


def test_the_next_address_is_tried_when_one_fails(remote: RemoteServer) -> None:
    client = Client(Policy(allowed=("127.0.0.0/8",)), resolver=Names(two_test=[["127.0.0.9", "127.0.0.1"]]))

    assert get(client, remote.url("/", "two.test")) == b"hello"


def test_no_connection_is_made_to_a_blocked_url(remote: RemoteServer) -> None:
    with pytest.raises(Blocked, match=LOOPBACK):
        get(Client(Policy()), remote.url())

    assert remote.received == []


def test_proxies_of_the_environment_are_not_used(
    client: Client, remote: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")

    assert get(client, remote.url()) == b"hello"


# What is sent


@pytest.mark.parametrize(
    "target",
    [
        "/a/../b//c/./%7Euser/%2f%2F",
        "/upload?X-Amz-Signature=a%2Bb+c%2bd/e==&X-Amz-Date=2021&empty=&&flag",
        "/upload?Signature=one%0Atwo%0D&GoogleAccessId=a@b.c",
        "/?",
        "/a?x='(y)*!~|`{z}^\"<>\\[0]",
        "/a?b?c",
    ],
)
def test_path_and_query_are_sent_unchanged(client: Client, remote: RemoteServer, target: str) -> None:
    get(client, remote.url(target))

    assert remote.received[0].line == f"GET {target} HTTP/1.1"


@pytest.mark.parametrize(("written", "sent"), [("", "/"), ("?a=b", "/?a=b"), ("/a#part?c", "/a"), ("/a?b#c", "/a?b")])
def test_a_missing_path_is_a_slash_and_the_fragment_is_not_sent(
    client: Client, remote: RemoteServer, written: str, sent: str
) -> None:
    get(client, remote.url(written))

    assert remote.received[0].line == f"GET {sent} HTTP/1.1"


def test_no_compressed_content_is_requested(client: Client, remote: RemoteServer) -> None:
    get(client, remote.url())

    assert remote.received[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("user", "decoded"), [("max:s%40cret", b"max:s@cret"), ("token", b"token:"), (":secret", b":secret")]
)
def test_user_information_of_the_url_becomes_basic_authentication(
    client: Client, remote: RemoteServer, user: str, decoded: bytes
) -> None:
    get(client, remote.url("/a", f"{user}@127.0.0.1"))

    received = remote.received[0]
    assert received.headers["Authorization"] == f"Basic {base64.b64encode(decoded).decode()}"
    assert (received.line, received.headers["Host"]) == ("GET /a HTTP/1.1", f"127.0.0.1:{remote.port}")


def test_a_header_overrides_given_credentials_and_those_override_the_url(client: Client, remote: RemoteServer) -> None:
    url = remote.url("/", "max:old@127.0.0.1")
    get(client, url, credentials=("max", "new"))
    get(client, url, credentials=("max", "new"), headers={"authorization": "Bearer token"})

    sent = [received.headers.get("Authorization") or received.headers["authorization"] for received in remote.received]
    assert sent == [f"Basic {base64.b64encode(b'max:new').decode()}", "Bearer token"]


def test_the_host_header_is_that_of_the_url(client: Client, remote: RemoteServer) -> None:
    get(client, remote.url("/", "far.test"), headers={"host": "other.test"})

    assert remote.received[0].headers["Host"] == f"far.test:{remote.port}"


@pytest.mark.parametrize(("name", "value"), [("X-Token", "a\r\nHost: b"), ("X-Token", "秘密"), ("X Token:", "s3cret")])
def test_a_header_that_would_break_the_request_is_not_sent(
    client: Client, remote: RemoteServer, name: str, value: str
) -> None:
    with pytest.raises(RequestFailed, match="characters that cannot be sent") as failure:
        get(client, remote.url(), headers={name: value})

    assert value not in str(failure.value)
    assert remote.received == []


def test_bytes_are_sent_with_their_length(client: Client, remote: RemoteServer) -> None:
    with client.request("PUT", remote.url(), body=b"content") as response:
        assert response.status == 200

    assert remote.received[0].body == b"content"
    assert remote.received[0].headers["Content-Length"] == "7"


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "300000"}])
def test_a_file_is_streamed(client: Client, remote: RemoteServer, tmp_path: Path, headers: dict[str, str]) -> None:
    path = tmp_path / "archive"
    path.write_bytes(b"abc" * 100_000)

    with path.open("rb") as file, client.request("PUT", remote.url(), body=file, headers=headers) as response:
        assert response.status == 200

    assert remote.received[0].body == path.read_bytes()
    assert ("Transfer-Encoding" in remote.received[0].headers) == (headers == {})


def test_chunks_are_streamed(client: Client, remote: RemoteServer) -> None:
    with client.request("POST", remote.url(), body=(piece for piece in (b"a", b"", b"bc"))):
        pass

    assert remote.received[0].body == b"abc"


def test_a_response_before_the_end_of_an_upload_is_read() -> None:
    refused = threading.Event()

    def refuse(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        connection.close()
        refused.set()

    def pieces() -> Iterator[bytes]:
        refused.wait(30)
        for _ in range(5):
            yield b"x" * 1000
            time.sleep(0.05)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=refuse, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with Client(FAR_SIDE).request("PUT", url, body=pieces()) as response:
            assert response.status == 413


# What comes back


def test_an_error_status_is_returned_as_a_response(client: Client, remote: RemoteServer) -> None:
    remote.responses["/"] = lambda handler: reply(handler, 503, b"later")

    with client.request("GET", remote.url()) as response:
        assert (response.status, response.read(100)) == (503, b"later")


def test_a_head_request_returns_headers_without_a_body(client: Client, remote: RemoteServer) -> None:
    remote.responses["/"] = lambda handler: reply(handler, content_type="application/gzip")

    response = client.head(remote.url())

    assert (response.status, response.headers["content-TYPE"], response.headers["Content-Length"]) == (
        200,
        "application/gzip",
        "5",
    )
    assert response.read(100) == b""
    assert [received.line for received in remote.received] == ["HEAD / HTTP/1.1"]


def test_the_body_is_read_in_chunks_of_the_given_size(client: Client, remote: RemoteServer) -> None:
    remote.responses["/"] = lambda handler: reply(handler, body=b"0123456789")

    with client.request("GET", remote.url()) as response:
        assert list(response.iter_chunks(4)) == [b"0123", b"4567", b"89"]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_chunked_body_is_decoded(client: Client, remote: RemoteServer) -> None:
    remote.responses["/"] = raw(CHUNKED + b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")

    assert get(client, remote.url()) == b"abcdefg"


def test_a_compressed_body_is_not_decompressed(client: Client, remote: RemoteServer) -> None:
    remote.responses["/"] = lambda handler: reply(handler, body=b"\x1f\x8bno gzip", content_encoding="gzip")

    assert get(client, remote.url()) == b"\x1f\x8bno gzip"


def test_the_size_of_a_body_is_limited(client: Client, remote: RemoteServer) -> None:
    with client.request("GET", remote.url()) as response:
        assert response.read(5) == b"hello"
    with client.request("GET", remote.url()) as response, pytest.raises(RequestFailed, match="more than 4 bytes"):
        response.read(4)


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        CHUNKED + b"a\r\nhalf",
        CHUNKED + b"4\r\nhalf\r\n",
        CHUNKED + b"nonsense\r\n",
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab",
    ],
)
def test_an_incomplete_response_is_an_error(client: Client, remote: RemoteServer, response: bytes) -> None:
    remote.responses["/"] = raw(response)

    with pytest.raises(RequestFailed, match=f"^Request to 127.0.0.1:{remote.port} failed: "):
        get(client, remote.url())


def test_a_refused_connection_is_reported() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(RequestFailed, match=f"^Request to 127.0.0.1:{port} failed: Connection refused$"):
        get(Client(FAR_SIDE), f"http://127.0.0.1:{port}/")


# Time


def test_a_silent_remote_server_times_out(remote: RemoteServer) -> None:
    remote.responses["/"] = raw(b"", pause=30)

    with pytest.raises(RequestFailed, match="timed out"):
        get(Client(FAR_SIDE, read_timeout=0.1), remote.url())


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        [HEAD, *[b"X-Slow: yes\r\n"] * 90],
        [HEAD + b"X-Slow: ", *[b"x"] * 90],
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * 90,
        [HEAD + b"Content-Length: 90\r\n\r\n", *[b"x"] * 90],
        [HEAD + b"Connection: close\r\n\r\n", *[b"x"] * 90],
        [CHUNKED, *[b"1\r\nx\r\n"] * 90],
        [CHUNKED + b"0", *[b"0"] * 90],
    ],
    ids=["headers", "one header", "interim answers", "body", "body without length", "chunks", "size of a chunk"],
)
def test_a_trickling_remote_server_times_out(remote: RemoteServer, pieces: list[bytes]) -> None:
    remote.responses["/"] = raw(*pieces, pause=0.3)
    started = time.monotonic()

    with pytest.raises(RequestFailed, match="took too long"):
        get(Client(FAR_SIDE, total_timeout=0.5), remote.url())

    assert time.monotonic() - started < 20  # of 27


@pytest.mark.parametrize(
    "pieces",
    [
        [HEAD + b"X-Slow: ", *[b"x"] * 90],
        [HEAD + b"Content-Length: 90\r\n\r\n", *[b"x"] * 90],
        [HEAD + b"Connection: close\r\n\r\n", *[b"x"] * 90],
    ],
    ids=["one header", "body", "body without length"],
)
def test_a_remote_server_below_the_minimum_rate_is_aborted(remote: RemoteServer, pieces: list[bytes]) -> None:
    remote.responses["/"] = raw(*pieces, pause=0.3)
    started, pace = time.monotonic(), MinimumRate(1000, 0.4)

    with pytest.raises(RequestFailed, match="too slow"):
        get(Client(FAR_SIDE, minimum_rate=pace), remote.url())

    assert time.monotonic() - started < 20  # of 27


def test_a_remote_server_above_the_minimum_rate_is_read_completely(remote: RemoteServer) -> None:
    remote.responses["/"] = raw(HEAD + b"Content-Length: 90000\r\n\r\n", *[b"x" * 10000] * 9, pause=0.3)
    pace = MinimumRate(1000, 2)

    with Client(FAR_SIDE, minimum_rate=pace).request("GET", remote.url()) as response:
        body = b"".join(response.iter_chunks(5000))

    assert (len(body), pace.too_slow) == (90000, False)


def test_redirects_share_the_time_of_one_request(remote: RemoteServer) -> None:
    def slowly(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.15)
        reply(handler, 302, location="/")

    remote.responses["/"] = slowly

    with pytest.raises(RequestFailed, match="took too long"):
        get(Client(FAR_SIDE, total_timeout=0.4, max_redirects=1000), remote.url())


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_get_and_head_requests_follow_redirects(client: Client, remote: RemoteServer, method: str, status: int) -> None:
    remote.redirects("/a/b", "../c?d=%7e", status)

    with client.request(method, remote.url("/a/b", "far.test")) as response:
        assert (response.status, response.final_url) == (200, remote.url("/c?d=%7e", "far.test"))

    assert [received.line for received in remote.received] == [
        f"{method} /a/b HTTP/1.1",
        f"{method} /c?d=%7e HTTP/1.1",
    ]


@pytest.mark.parametrize("signed", ["/a/../b;c?Signature=%2bx%2F+y%0A&", "/a/./b;?"])
def test_a_redirect_to_a_signed_url_is_followed_unchanged(client: Client, remote: RemoteServer, signed: str) -> None:
    remote.redirects("/", remote.url(signed, "other.test"))

    get(client, remote.url("/", "far.test"))

    assert remote.received[1].line == f"GET {signed} HTTP/1.1"


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("http://127.0.0.2/", LOOPBACK),
        ("http://intern.test/", LOCAL_NETWORK),
        ("//intern.test/", LOCAL_NETWORK),
        ("http://169.254.169.254/latest/meta-data", LINK_LOCAL),
        ("http://0x7f.2/", LOOPBACK),
        ("http://[::1]/", LOOPBACK),
        ("file:///etc/passwd", "Only allowed schemes are http, https"),
        ("http://nowhere.test/", UNRESOLVED),
        ("/a%0d%0ab", INVALID),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_redirect_to_a_private_address_is_blocked(
    client: Client, remote: RemoteServer, method: str, location: str, text: str
) -> None:
    remote.redirects("/", "/next")
    remote.redirects("/next", location)

    with pytest.raises(Blocked) as blocked, client.request(method, remote.url()):
        pass

    assert str(blocked.value) == text
    assert len(remote.received) == 2


def test_the_number_of_redirects_is_limited(remote: RemoteServer) -> None:
    for step in range(3):
        remote.redirects(f"/{step}", f"/{step + 1}")

    assert get(Client(FAR_SIDE, max_redirects=3), remote.url("/0")) == b"hello"
    with pytest.raises(RequestFailed, match="More than 2 redirects"):
        get(Client(FAR_SIDE, max_redirects=2), remote.url("/0"))


SECRETS = {"Authorization": "Bearer s3cret", "Cookie": "s3cret", "PRIVATE-TOKEN": "s3cret", "X-Api-Key": "s3cret"}


def test_a_redirect_to_another_origin_sends_no_credentials(client: Client, remote: RemoteServer) -> None:
    remote.redirects("/", remote.url("/next", "other.test"))
    remote.redirects("/next", remote.url("/last", "far.test"))

    get(client, remote.url("/", "far.test"), headers=SECRETS | {"Accept": "text/csv", "Range": "bytes=0-"})

    first, *others = remote.received
    assert SECRETS.items() <= first.headers.items()
    assert all("s3cret" not in str(other.headers) and other.headers["Accept"] == "text/csv" for other in others)


@pytest.mark.parametrize("options", [{}, {"credentials": ("max", "s3cret")}])
def test_a_redirect_to_another_origin_sends_no_password(
    client: Client, remote: RemoteServer, options: dict[str, object]
) -> None:
    remote.redirects("/", remote.url("/next", "other.test"))

    get(client, remote.url("/", "max:s3cret@far.test"), **options)

    assert ["Authorization" in received.headers for received in remote.received] == [True, False]


def test_a_redirect_within_the_origin_keeps_credentials(client: Client, remote: RemoteServer) -> None:
    remote.redirects("/", "/next")

    get(client, remote.url("/", "max:s3cret@far.test"), headers={"X-Api-Key": "s3cret"})

    assert [set(received.headers) >= {"Authorization", "X-Api-Key"} for received in remote.received] == [
        True,
        True,
    ]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_redirected_upload_is_not_followed(client: Client, remote: RemoteServer, method: str, status: int) -> None:
    remote.redirects("/", "/next", status)

    with (
        pytest.raises(RequestFailed, match=f"answered {method} with a redirect, which is not followed"),
        client.request(method, remote.url(), body=b"content"),
    ):
        pass

    assert len(remote.received) == 1


def test_a_redirect_without_location_is_returned(client: Client, remote: RemoteServer) -> None:
    remote.responses["/"] = lambda handler: reply(handler, 302)

    with client.request("GET", remote.url()) as response:
        assert response.status == 302


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for far.test and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "far.test")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("far.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "far.pem"
    path.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


@dataclass
class Tls:
    remote: RemoteServer
    trusting: ssl.SSLContext
    named: list[str | None]


@pytest.fixture
def tls(certificate: Path) -> Iterator[Tls]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    named: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    with serving(context) as remote:
        yield Tls(remote, ssl.create_default_context(cafile=certificate), named)


def test_certificate_and_server_name_follow_the_name_while_the_address_is_pinned(tls: Tls, names: Names) -> None:
    client = Client(FAR_SIDE, resolver=names, tls=tls.trusting)

    assert get(client, tls.remote.url("/", "far.test", "https")) == b"hello"
    assert (tls.named, names.asked) == (["far.test"], ["far.test"])


@pytest.mark.parametrize("host", ["other.test", "127.0.0.1"])
def test_a_certificate_for_another_name_is_refused(tls: Tls, names: Names, host: str) -> None:
    client = Client(FAR_SIDE, resolver=names, tls=tls.trusting)

    with pytest.raises(RequestFailed, match="certificate verify failed: .*mismatch"):
        get(client, tls.remote.url("/", host, "https"), headers=SECRETS)

    assert tls.remote.received == []


def test_an_untrusted_certificate_is_refused(tls: Tls, client: Client) -> None:
    with pytest.raises(RequestFailed, match="certificate verify failed: self.signed certificate"):
        get(client, tls.remote.url("/", "far.test", "https"))


def test_plain_http_in_place_of_tls_fails_with_a_clear_message(client: Client, remote: RemoteServer) -> None:
    with pytest.raises(RequestFailed, match="failed: TLS failed"):
        get(client, remote.url("/", "far.test", "https"))


def test_a_redirect_from_https_to_http_is_followed_without_credentials(
    tls: Tls, remote: RemoteServer, names: Names
) -> None:
    tls.remote.redirects("/", remote.url("/next", "far.test"))

    get(
        Client(FAR_SIDE, resolver=names, tls=tls.trusting),
        tls.remote.url("/", "far.test", "https"),
        headers=SECRETS,
    )

    assert "s3cret" in str(tls.remote.received[0].headers)
    assert "s3cret" not in str(remote.received[0].headers)


def test_a_trickling_body_times_out_under_tls(tls: Tls, names: Names) -> None:
    tls.remote.responses["/"] = raw(HEAD + b"Connection: close\r\n\r\n", *[b"x"] * 90, pause=0.1)
    client = Client(FAR_SIDE, total_timeout=1, resolver=names, tls=tls.trusting)

    with pytest.raises(RequestFailed, match="took too long"):
        get(client, tls.remote.url("/", "far.test", "https"))


# What logs and errors say


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://max:s3cret@example.com/a?token=s3cret#s3cret", "https://example.com/a?[FILTERED]"),
        ("http://s3cret@example.com:8080", "http://example.com:8080"),
        ("http://[::1]:80/a", "http://[::1]:80/a"),
        ("https://example.com/a/b", "https://example.com/a/b"),
        ("https://max:s3/cret@example.com/\n", "[unreadable URL]"),
        ("ftp://max:s3cret@example.com/", "[unreadable URL]"),
        ("s3cret", "[unreadable URL]"),
    ],
)
def test_a_redacted_url_has_no_secrets(url: str, text: str) -> None:
    assert redact(url) == text


@pytest.mark.parametrize(
    "response",
    [HEAD + b"not a header\r\n\r\n", HEAD + b"Content-Length: 9\r\n\r\nhalf", b"", b"nonsense\r\n\r\n"],
    ids=["odd header", "half a body", "nothing", "no HTTP"],
)
def test_logs_and_errors_contain_no_password_or_query(
    client: Client, remote: RemoteServer, response: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    remote.responses["/"] = raw(response)

    try:
        get(client, remote.url("/?signature=s3cret", "max:s3cret@127.0.0.1"), headers={"X-Api-Key": "s3cret"})
    except RequestFailed as failure:
        links: list[BaseException | None] = [failure]
        while links[-1] is not None:
            assert "s3cret" not in repr(links[-1])
            links.append(links[-1].__cause__ or links[-1].__context__)

    assert "signature=s3cret" in remote.received[0].line
    assert "s3cret" not in caplog.text


def test_the_repr_of_requests_and_responses_has_no_secrets(client: Client, remote: RemoteServer) -> None:
    url = remote.url("/a?signature=s3cret", "max:s3cret@127.0.0.1")
    target = validate(url, FAR_SIDE)
    response = client.head(url)

    assert isinstance(target, Target)
    assert "s3cret" not in repr(target)
    assert "s3cret" not in repr(response)
    assert "max" not in response.final_url
