"""Identifiers of findings, and the keys by which a finding is recognised.

Scanner formats reference, sections 4 and 12.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from project_service.areas.vulnerabilities.formats.shapes import MAX_VALUES, Data, collapsed, obj, text, web
from project_service.areas.vulnerabilities.locations import image_without_tag, resource_of
from project_service.areas.vulnerabilities.report_types import CONTAINER_SCANNING, DAST

MAX_IDENTIFIERS = 50
MAX_ID_LENGTH = 1_024
MAX_INDEXED_BYTES = 1_024
CVE = re.compile(r"CVE-[0-9]{4}-[0-9]+", re.IGNORECASE)
GHSA = re.compile(r"GHSA(-[0-9a-z]{4}){3}", re.IGNORECASE)
PREFIX = re.compile(r"(PYSEC|GO|RUSTSEC|OSV|MAL|SNYK|TEMP|DSA|USN|RHSA|ALAS|BIT)-.+", re.IGNORECASE)
ADVISORY = re.compile(
    r"(?<![A-Za-z0-9])(?:CVE-[0-9]{4}-[0-9]+|GHSA(?:-[0-9a-z]{4}){3}|(?:PYSEC|GO|RUSTSEC|OSV|MAL|BIT)-[0-9]{4}-[0-9]+"
    r"|SNYK-[A-Z]+-[A-Z0-9]+-[0-9]+)(?![A-Za-z0-9-])",
    re.IGNORECASE,
)
WEAKNESS = re.compile(r"(?<![a-z0-9])cwe[-:_ ]*0*([0-9]{1,6})(?![0-9])", re.IGNORECASE)
NUMBER = re.compile(r"0*([0-9]{1,6})")
OWASP = re.compile(r"(?:owasp)[-:_ ]*(A[0-9]{1,2})[:_-]([0-9]{4})(?:\s*-\s*(.+))?", re.IGNORECASE | re.DOTALL)
VERSION_OF_NAME = re.compile(r"/v([0-9]{1,9})\Z")
WITHHELD_FINGERPRINT = "requires login"  # semgrep's fingerprint for people without an account
OF_THE_COMMIT = frozenset({"commitSha", "email", "author", "date", "commitMessage"})
MARK_LENGTH = 20
LINE_HASH = "primaryLocationLineHash"


def identifier(kind: str, value: str, name: str | None = None, url: str | None = None) -> Data:
    """Return an identifier in the form of the API."""
    return {"external_type": kind, "external_id": value, "name": name or value, "url": url}


def known_id(value: str, url: str | None = None) -> Data | None:
    """Return the identifier of an id that is a CVE or GHSA one."""
    if CVE.fullmatch(value):
        return identifier("cve", value.upper(), url=url)
    if GHSA.fullmatch(value):
        return identifier("ghsa", f"GHSA{value[4:].lower()}", url=url)
    return None


def advisory_in(value: str) -> str:
    """Return the first id of an advisory in a text; empty without any."""
    match = ADVISORY.search(value)
    return match[0] if match else ""


def advisory(value: str, source: str, url: str | None = None) -> Data:
    """Return the identifier of an advisory; ``source`` is the id of who issued it, for ids without a known form."""
    value = value.strip()[:MAX_ID_LENGTH]
    advisory_identifier = known_id(value, url)
    if advisory_identifier is None:
        prefix = PREFIX.fullmatch(value)
        advisory_identifier = identifier(prefix[1].lower() if prefix else f"{source}_id", value, url=url)
    return advisory_identifier


def advisories(values: Iterable[tuple[Any, Any]], source: str) -> list[Data]:
    """Return identifiers from pairs of id and url, each once."""
    identifiers: dict[tuple[str, str], Data] = {}
    for value, url in islice(values, MAX_VALUES):
        if id_ := text(value).strip():
            entry = advisory(id_, source, web(url))
            identifiers.setdefault((entry["external_type"], entry["external_id"]), entry)
    return list(identifiers.values())


def weaknesses(values: Iterable[Any]) -> list[Data]:
    """Return CWE identifiers from numbers and texts, each once."""
    numbers: dict[str, None] = {}
    for value in islice(values, MAX_VALUES):
        if type(value) is int and 0 < value < 10**6:
            numbers[str(value)] = None
        elif isinstance(value, str):
            shortened = value[:MAX_ID_LENGTH]  # every finding repeats this
            whole = NUMBER.fullmatch(shortened.strip())
            numbers.update(dict.fromkeys([whole[1]] if whole else WEAKNESS.findall(shortened)))
    return [
        identifier("cwe", number, f"CWE-{number}", f"https://cwe.mitre.org/data/definitions/{number}.html")
        for number in numbers
    ]


def owasp(tags: Iterable[str]) -> list[Data]:
    """Return OWASP identifiers from tags, each once."""
    identifiers: dict[str, Data] = {}
    for tag in islice(tags, MAX_VALUES):
        if match := OWASP.match(tag.strip()):
            value = f"{match[1].upper()}:{match[2]}"
            name = f"{value} - {collapsed(match[3])}" if match[3] else value
            identifiers.setdefault(value, identifier("owasp", value, name[:255]))
    return list(identifiers.values())


def package_title(identifiers: list[Data], package: str, version: str) -> str:
    """Return the name of a finding about a package."""
    first = next((identifier for identifier in identifiers if identifier["external_type"] == "cve"), identifiers[0])
    return f"{first['external_id']} in {package}" + (f" {version}" if version else "")


def package_location(package: str, version: str, *, file: str = "", image: str = "", system: str = "") -> Data:
    """Return the location of a finding about a package; parts that are empty are left out."""
    parts = {"file": file, "image": image, "operating_system": system}
    location: Data = {name: value for name, value in parts.items() if value}
    location["dependency"] = {"package": {"name": package}, "version": version or None}
    return location


def package_of(location: Data) -> str | None:
    """Return the package of a location as ``name@version``; ``None`` without one."""
    dependency = obj(location.get("dependency"))
    name = text(obj(dependency.get("package")).get("name"))
    return f"{name}@{text(dependency.get('version'))}" if name else None


def fits_index(package: str) -> bool:
    """Whether a name and version are short enough for an index of PostgreSQL, which takes 2,704 bytes."""
    return len(package.encode()) <= MAX_INDEXED_BYTES


def indexed_package_of(location: Data) -> str | None:
    """Return the package of a location for ``Finding.package``; ``None`` also for one that is too long."""
    package = package_of(location)
    return package if package is not None and fits_index(package) else None


def package_key(report_type: str, location: Data, primary: Data) -> str:
    """Return the key of a finding about a package."""
    file_or_image = location.get("file", "")
    if report_type == CONTAINER_SCANNING:
        file_or_image = image_without_tag(location.get("image", ""))
    advisory_id = f"{primary['external_type']}:{primary['external_id']}"
    return f"{resource_of(location)}{file_or_image}:{package_of(location)}:{advisory_id}"


def key_of(
    report_type: str,
    location: Data,
    primary: Data,
    *,
    message: str,
    snippet: str = "",
    fingerprints: Any = None,
    partial: Any = None,
) -> str:
    """Return the key of a finding: the most stable value that its scanner gives."""
    kind = f"{primary['external_type']}:{primary['external_id']}"
    if "dependency" in location:
        return package_key(report_type, location, primary)
    if report_type == DAST and "path" in location:
        return ":".join(text(location.get(name)) for name in ("path", "method", "param")) + f":{kind}"
    begin = f"{resource_of(location)}{location.get('file', '')}:{kind}"
    partial = obj(partial)
    candidates = (
        ("fingerprint", _newest(obj(fingerprints))),
        ("linehash", _usable(partial.get(LINE_HASH))),
        ("snippet", collapsed(snippet)),
        ("partial", _joined(partial)),
    )
    for name, value in candidates:
        if value:
            return f"{begin}:{name}:{sha1(f'{begin}:{value}')}"
    if "start_line" in location:
        return f"{begin}:line:{location['start_line']}:{location['end_line']}"
    return f"{begin}:message:{sha1(f'{begin}:{collapsed(message)}')}"


def marks_of(snippet: str, fingerprints: Any, partial: Any) -> tuple[str, ...]:
    """Return digests of what recognises a finding although its lines moved: fingerprints, line hash, code."""
    named = [(f"fingerprint:{name}", _usable(value)) for name, value in islice(obj(fingerprints).items(), MAX_VALUES)]
    values = [*named, ("linehash", _usable(obj(partial).get(LINE_HASH))), ("snippet", collapsed(snippet))]
    return tuple(mark(name, value) for name, value in values if value)


def mark(name: str, value: str) -> str:
    """Return a digest that recognises a finding."""
    return sha1(f"{name}:{value}")[:MARK_LENGTH]


def sha1(value: str) -> str:
    """Return the SHA-1 of a text in hex: an identifier, not a protection."""
    return hashlib.sha1(value.encode(), usedforsecurity=False).hexdigest()


def _usable(value: Any) -> str:
    fingerprint = text(value.get("value") if isinstance(value, dict) else value)
    return "" if fingerprint.strip() == WITHHELD_FINGERPRINT or not fingerprint.strip() else fingerprint


def _newest(fingerprints: Data) -> str:
    """Join fingerprints, of each name that of the highest version."""
    newest: dict[str, tuple[int, str]] = {}
    for name, value in islice(fingerprints.items(), MAX_VALUES):
        if fingerprint := _usable(value):
            version = VERSION_OF_NAME.search(name)
            stem = name[: version.start()] if version else name
            candidate = (int(version[1]) if version else -1, fingerprint)
            newest[stem] = max(newest.get(stem, candidate), candidate)
    return "|".join(f"{name}={newest[name][1]}" for name in sorted(newest))


def _joined(partial: Data) -> str:
    return "|".join(
        f"{name}={fingerprint}"
        for name in sorted(islice(partial, MAX_VALUES))
        if name not in OF_THE_COMMIT and name != LINE_HASH and (fingerprint := _usable(partial[name]))
    )
