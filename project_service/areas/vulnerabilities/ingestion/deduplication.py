"""Deduplication of the findings of a pipeline (findings reference, section 16).

The reports of one type are processed in the order of their scanners; a finding is dropped if an earlier one has one of
its digests. A digest combines the location with an identifier, except those that name only a class of weaknesses.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from project_service.areas.vulnerabilities.locations import package_place_of, place_of, resource_of, text
from project_service.areas.vulnerabilities.report_types import API_FUZZING, DAST, DEPENDENCY_SCANNING, SAST

WEAKNESS_CLASSES = ("cwe", "wasc")
MORE_CLASSES = (*WEAKNESS_CLASSES, "owasp")  # in other formats than GitLab's
ON_SITES = (DAST, API_FUZZING)
NUMBER_OF_KEY = re.compile(r"#[0-9]+\Z")
UNKNOWN_SCANNER_ORDER = 99
SCANNER_ORDER: dict[str, dict[str, int]] = {
    DEPENDENCY_SCANNING: {
        "bundler_audit": 1,
        "retire.js": 2,
        "gemnasium": 3,
        "gemnasium-maven": 3,
        "gemnasium-python": 3,
    },
    SAST: {"bandit": 1, "semgrep": 2},
}


class MatchKeys(NamedTuple):
    """The keys by which a finding is compared with others: SHA-1 digests, and the compare key of its report."""

    compare_key: str
    location: bytes
    identifier: bytes | None
    digests: tuple[bytes, ...]


def order_of_scanner(report_type: str, scanner: str | None) -> int:
    """Return the position of a scanner's reports; those with equal positions are in the order of upload."""
    return SCANNER_ORDER.get(report_type, {}).get(scanner or "", UNKNOWN_SCANNER_ORDER)


def match_keys_of(report_type: str, vulnerability: dict[str, Any]) -> MatchKeys:
    """Return the match keys of an entry of a report."""
    location, raw_identifiers = vulnerability.get("location"), vulnerability.get("identifiers")
    identifiers = (
        [identifier for identifier in raw_identifiers if isinstance(identifier, dict)]
        if isinstance(raw_identifiers, list)
        else []
    )
    return match_keys(
        report_type,
        text(vulnerability.get("cve")),
        location if isinstance(location, dict) else {},
        [(text(identifier.get("type")), text(identifier.get("value"))) for identifier in identifiers],
    )


def match_keys(
    report_type: str,
    compare_key: str,
    location: dict[str, Any],
    identifiers: list[tuple[str, str]],
    *,
    foreign_text: str | None = None,
) -> MatchKeys:
    """Return the match keys of a finding; each identifier is a type and a value.

    ``foreign_text`` is the text of a finding in another format than GitLab's: there the place of a package has its
    version, and a place without lines has what else distinguishes findings.
    """
    is_foreign = foreign_text is not None
    compared_location = (package_place_of(report_type, location) if is_foreign else "") or place_of(
        report_type, location
    )
    if foreign_text is not None and _is_vague(report_type, location):
        details = (
            resource_of(location),
            text(location.get("method")),
            NUMBER_OF_KEY.sub("", compare_key),
            foreign_text,
        )
        compared_location = "\0".join((compared_location, *details))
    classes = MORE_CLASSES if is_foreign else WEAKNESS_CLASSES
    location_digest = _digest(compared_location)
    digests = [_digest(f"{kind}:{value}") for kind, value in identifiers]
    specific = (digest for (kind, _), digest in zip(identifiers, digests, strict=True) if kind.lower() not in classes)
    return MatchKeys(
        compare_key,
        location_digest,
        digests[0] if digests else None,
        tuple(location_digest + digest for digest in specific),
    )


def tracked_digest(scanner: str, category: str, key: str) -> bytes:
    """Return the digest of a tracked finding, by which the results of an export are compared.

    Reports of their own pipelines may have had the same finding, for example in two categories: it is tracked in each.
    """
    return _digest("\0".join((scanner, category, key)))


def text_of(data: dict[str, Any]) -> str:
    """Return the text of a finding in another format than GitLab's."""
    return f"{data['name']}\0{data['description'] or ''}"


def _is_vague(report_type: str, location: dict[str, Any]) -> bool:
    """Whether a location is a whole file, or nothing: it can have several findings of one rule."""
    is_exact = ("start_line", "dependency", *(("path",) if report_type in ON_SITES else ()))
    return not any(name in location for name in is_exact)


def first_occurrences(digests: Iterable[Sequence[bytes]], suppressed: Sequence[bool] | None = None) -> Iterator[bool]:
    """Return for the digests of each finding whether it is the first with any of them.

    Those that a report dismissed (``suppressed``) are after all others: an open finding is not hidden by them.
    """
    if suppressed is not None and any(suppressed):
        return _first_open_occurrences(list(digests), suppressed)
    return _first_occurrences(digests)


def _first_open_occurrences(digests: list[Sequence[bytes]], suppressed: Sequence[bool]) -> Iterator[bool]:
    order = sorted(range(len(digests)), key=suppressed.__getitem__)
    first = dict(zip(order, _first_occurrences(digests[index] for index in order), strict=True))
    return (first[index] for index in range(len(digests)))


def _first_occurrences(digests: Iterable[Sequence[bytes]]) -> Iterator[bool]:
    digests_so_far: set[bytes] = set()
    for of_finding in digests:
        is_first = digests_so_far.isdisjoint(of_finding)
        if is_first:
            digests_so_far.update(of_finding)
        yield is_first


def ranks(compare_keys: Sequence[str]) -> list[int]:
    """Return the rank of each finding in a stable bytewise order of their compare keys."""
    ordered = sorted(range(len(compare_keys)), key=compare_keys.__getitem__)  # code points order as their UTF-8 does
    ranks = [0] * len(compare_keys)
    for rank, position in enumerate(ordered):
        ranks[position] = rank
    return ranks


def _digest(name: str) -> bytes:
    return hashlib.sha1(name.encode(), usedforsecurity=False).digest()
