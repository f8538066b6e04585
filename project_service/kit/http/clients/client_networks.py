"""The network of a client's address: what is limited and recognised in place of the single address."""

from __future__ import annotations

import ipaddress

IPV6_PREFIX_LENGTH = 64  # hosts change the rest of their address at will


def network_of(address: str | None) -> str | None:
    """Return an IPv4 address as it is, of an IPv6 address the first 64 bits; ``None`` if it is no address."""
    try:
        parsed = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    if parsed.version == 4:
        return str(parsed)
    mapped = parsed.ipv4_mapped
    return str(mapped or ipaddress.ip_network((parsed, IPV6_PREFIX_LENGTH), strict=False))


def limited_network(address: str | None) -> str:
    """Return what the calls of a client are counted under; clients without a known address share one count."""
    return network_of(address) or "unknown"
