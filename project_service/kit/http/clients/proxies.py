"""Forwarded headers, which are accepted from configured proxies only."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.middleware.proxy_fix import ProxyFix

from project_service.settings import Network

FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PORT")
# headers that are not read, but show that there is a proxy
PROXY_HEADERS = ("HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA")
WAS_FORWARDED = "project_service.forwarded"
IPV6_NETWORK_BITS = 64  # the smallest network that is assigned to a client


class TrustedProxies:
    """WSGI middleware that takes client address, scheme and host from the headers of trusted proxies only."""

    def __init__(self, app: WSGIApplication, networks: tuple[Network, ...]) -> None:
        self.app = app
        self.networks = networks
        self.fixed = ProxyFix(self._with_plain_address, x_for=1, x_proto=1, x_host=1, x_port=1)
        self.trusts = functools.lru_cache(maxsize=1024)(self._trusts)  # few addresses connect

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Apply or remove forwarded headers, depending on the address that connected."""
        environ[WAS_FORWARDED] = any(name in environ for name in (*FORWARDED, *PROXY_HEADERS))
        if self.trusts(environ.get("REMOTE_ADDR", "")):
            return self.fixed(environ, start_response)
        for name in FORWARDED:
            environ.pop(name, None)
        return self._with_plain_address(environ, start_response)

    def _with_plain_address(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Show clients of IPv4 by that address: a socket for both families shows them as ``::ffff:10.0.0.1``."""
        address = environ.get("REMOTE_ADDR", "")
        if ":" in address and (client := _address_of(address)) is not None:
            environ["REMOTE_ADDR"] = str(client)
        return self.app(environ, start_response)

    def client_address(self, environ: WSGIEnvironment) -> str:
        """Return the address of the client: the one that connected, or the one that a trusted proxy names."""
        address: str = environ.get("REMOTE_ADDR", "")
        forwarded = environ.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
        return forwarded if forwarded and self.trusts(address) else address

    def share_of(self, environ: WSGIEnvironment) -> str | None:
        """Return what the requests of a client's address are counted under: the address, or a network of IPv6.

        ``None`` if they are not counted: those of this machine as long as no proxy is trusted, since there may be one.
        """
        return network_of(self.client_address(environ), counts_loopback=bool(self.networks))

    def _trusts(self, address: str) -> bool:
        """Whether an address is one of the configured proxies."""
        proxy = _address_of(address)
        if proxy is None:
            return False
        return any(proxy in network for network in self.networks if network.version == proxy.version)


def network_of(address: str, *, counts_loopback: bool) -> str | None:
    """Return the address or the IPv6 network that an address belongs to; ``None`` without one."""
    client = _address_of(address)
    if client is None:
        return None
    if client.is_loopback and not counts_loopback:
        return None
    if client.version == 4:
        return str(client)
    return str(ipaddress.ip_network((client, IPV6_NETWORK_BITS), strict=False))


def _address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address, one of IPv4 also where it is written as one of IPv6; ``None`` if it is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
