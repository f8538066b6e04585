"""Which findings of a pipeline are the same (findings reference, section 16).

All reports of one kind are gone through in an order; a finding one of whose keys was seen before is dropped. The keys
are the place with each identifier that names more than a class of weaknesses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from project_service.areas.vulnerabilities.locations import place_of, text
from project_service.areas.vulnerabilities.report_types import DEPENDENCY_SCANNING, SAST

CLASSES = ("cwe", "wasc")
LAST = 99
ANALYZERS: dict[str, dict[str, int]] = {
    DEPENDENCY_SCANNING: {
        "bundler_audit": 1,
        "retire.js": 2,
        "gemnasium": 3,
        "gemnasium-maven": 3,
        "gemnasium-python": 3,
    },
    SAST: {"bandit": 1, "semgrep": 2},
}


class Outline(NamedTuple):
    """What decides about a finding among others."""

    compare_key: str
    place: bytes
    identifier: bytes | None
    keys: tuple[bytes, ...]


def turn_of(report_type: str, scanner: str | None) -> int:
    """When a report's turn comes, by who wrote it; equal ones come as they were uploaded."""
    return ANALYZERS.get(report_type, {}).get(scanner or "", LAST)


def outline(report_type: str, vulnerability: dict[str, Any]) -> Outline:
    """The outline of one entry of a report."""
    location, found = vulnerability.get("location"), vulnerability.get("identifiers")
    identifiers = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return outline_of(
        report_type,
        text(vulnerability.get("cve")),
        location if isinstance(location, dict) else {},
        [(text(one.get("type")), text(one.get("value"))) for one in identifiers],
    )


def outline_of(
    report_type: str, compare_key: str, location: dict[str, Any], identifiers: list[tuple[str, str]]
) -> Outline:
    """The outline of a finding with these identifiers, each a type and a value."""
    place = _digest(place_of(report_type, location))
    digests = [_digest(f"{kind}:{value}") for kind, value in identifiers]
    telling = (digest for (kind, _), digest in zip(identifiers, digests, strict=True) if kind.lower() not in CLASSES)
    return Outline(compare_key, place, digests[0] if digests else None, tuple(place + digest for digest in telling))


def kept(keys: Iterable[Sequence[bytes]]) -> Iterator[bool]:
    """For the keys of one finding after the other: whether it stays."""
    seen: set[bytes] = set()
    for some in keys:
        stays = seen.isdisjoint(some)
        if stays:
            seen.update(some)
        yield stays


def places(compare_keys: Sequence[str]) -> list[int]:
    """The place of each finding in the order of their compare keys, bytewise; equal ones stay as they are."""
    ordered = sorted(range(len(compare_keys)), key=compare_keys.__getitem__)  # code points order as their UTF-8 does
    found = [0] * len(compare_keys)
    for place, position in enumerate(ordered):
        found[position] = place
    return found


def _digest(name: str) -> bytes:
    return hashlib.sha1(name.encode(), usedforsecurity=False).digest()
