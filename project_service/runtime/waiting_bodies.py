"""A limit of the request bodies that one client address may be sending at the same time."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from wsgiref.types import WSGIEnvironment

from werkzeug.exceptions import TooManyRequests

IPV6_NETWORK_BITS = 64  # the smallest network that is assigned to a client


def remote_address(environ: WSGIEnvironment) -> str:
    """Return the address that connected."""
    address: str = environ.get("REMOTE_ADDR", "")
    return address


class WaitingBodies:
    """Counts the bodies that are being received by one process, by client address.

    ``limit`` is the number for one IPv4 address or IPv6 network of 64 bits; 0 is unlimited. Loopback addresses, and
    clients of unix sockets, which have none, are not limited. ``address_of`` returns the address of the client that
    sent a request.
    """

    def __init__(self, limit: int = 0, address_of: Callable[[WSGIEnvironment], str] = remote_address) -> None:
        self._limit = limit
        self._address_of = address_of
        self._counts: Counter[str] = Counter()

    @contextmanager
    def count(self, environ: WSGIEnvironment) -> Iterator[None]:
        """Count a body until the block ends.

        Raises:
            TooManyRequests: the client is sending as many as it may.

        """
        client = self._client_of(environ) if self._limit else None
        if client is None:
            yield
            return
        if self._counts[client] >= self._limit:
            raise TooManyRequests
        self._counts[client] += 1
        try:
            yield
        finally:
            self._counts[client] -= 1
            if not self._counts[client]:
                del self._counts[client]

    def _client_of(self, environ: WSGIEnvironment) -> str | None:
        """Return what the bodies of a client are counted under; ``None`` if they are not."""
        try:
            address = ipaddress.ip_address(self._address_of(environ))
        except ValueError:
            return None
        address = getattr(address, "ipv4_mapped", None) or address
        if address.is_loopback:
            return None
        if address.version == 4:
            return str(address)
        return str(ipaddress.ip_network((address, IPV6_NETWORK_BITS), strict=False))
