"""How the fuzzer changes what it has: archives below their compression and checksums, JSON as the tree that it is.

``change`` is the fuzzer's own way with bytes; ``chance`` decides, so that the same seed gives the same input again.
"""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from project_service.transfers.archive import layout

Change = Callable[[bytes], bytes]
BLOCK = 512
NAME, SIZE, CHECKSUM, KIND = slice(0, 100), slice(124, 136), slice(148, 156), 156
LARGEST = 64 << 10  # of a tape
MEMBERS = (
    *(*layout.TEXTS, layout.LFS_TYPES, "project.json", "tree/project.json", "project.bundle", "project.wiki.bundle"),
    *(f"tree/project/{name}.ndjson" for name in (*layout.RELATIONS, "pipelines", "hooks", "whatever")),
    *(f"uploads/{'0a' * 16}/a.png", "avatar/a.png", f"lfs-objects/{'0a' * 32}", f"snippets/{'0a' * 32}.bundle", "../a"),
)
KEYS = {
    "archives": (
        *(*layout.ISSUE, *layout.ISSUE_NESTED, *layout.MERGE_REQUEST, *layout.NOTE, *layout.MILESTONE, *layout.LABEL),
        *(*layout.SNIPPET, *layout.EVENT, "label", "milestone", "author", "user", "filename", "push_event_payload"),
    ),
    "reports": (
        *(
            "version",
            "scan",
            "vulnerabilities",
            "remediations",
            "site",
            "alerts",
            "instances",
            "fixes",
            "scanner",
            "id",
        ),
        *(
            "name",
            "message",
            "cve",
            "severity",
            "confidence",
            "identifiers",
            "type",
            "value",
            "url",
            "location",
            "file",
        ),
        *("start_line", "dependency", "package", "image", "path", "method", "param", "crash_type", "crash_state"),
        *("links", "details", "assets", "evidence", "summary", "request", "headers", "solution", "tool", "riskcode"),
        *("pluginid", "reference", "cweid", "@name", "uri", "item", "vulnerabilities.item", ""),
    ),
}
SCANNER_KEYS = """
runs tool driver rules extensions results artifacts ruleId ruleIndex rule index toolComponent message text markdown
arguments locations physicalLocation artifactLocation uri uriBaseId region startLine endLine startColumn snippet
codeFlows threadFlows relatedLocations properties tags security-severity level kind suppressions fingerprints
partialFingerprints taxa fixes webRequest invocations originalUriBaseIds helpUri bomFormat specVersion metadata
component components tools purl bom-ref licenses vulnerabilities affects ref ratings score method severity analysis
state dependencies dependsOn id name version vulns aliases fix_versions skip_reason auditReportVersion via
advisories findings SchemaVersion Results Vulnerabilities Misconfigurations Secrets Licenses Target Class PkgName
matches ignoredMatches vulnerability artifact source target packages groups ids package ecosystem report_meta error
code summary site
"""
KEYS["scanners"] = tuple(SCANNER_KEYS.split())
ODD = (None, True, False, 0, -1, 2**31, 2**63, -(2**63), 1.5, 1e300, "", "\0", "a" * 300, [], {}, [[]], {"id": 1})


def mutate_archive(raw: bytes, chance: random.Random, change: Change) -> bytes:
    """Change one member of an archive, their order, or now and then the compressed bytes."""
    try:
        tape = zlib.decompressobj(wbits=31).decompress(raw, LARGEST)
    except zlib.error:
        return change(raw)
    members = split(tape)
    if not members or chance.random() < 0.05:
        return change(raw)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        _mutate_members(members, chance, change)
    return gzip.compress(join(members), 1, mtime=0)


def split(tape: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of a tar with what follows each, as far as their sizes make sense."""
    members, here = [], 0
    while here + BLOCK <= len(tape) and tape[here] != 0:
        header = tape[here : here + BLOCK]
        try:
            size = int(header[SIZE].rstrip(b"\0 ") or b"0", 8)
        except ValueError:
            size = 0
        size = min(max(size, 0), LARGEST)
        here += BLOCK
        members.append((header, tape[here : here + size]))
        here += -(-size // BLOCK) * BLOCK
    return members


def join(members: list[tuple[bytes, bytes]]) -> bytes:
    """A tar of these members, with their checksums made right."""
    parts = []
    for header, content in members:
        made = bytearray(header)
        made[CHECKSUM] = b" " * 8
        made[CHECKSUM] = b"%06o\0 " % sum(made)
        parts.append(bytes(made) + content + b"\0" * (-len(content) % BLOCK))
    return b"".join(parts) + b"\0" * 2 * BLOCK


def _mutate_members(members: list[tuple[bytes, bytes]], chance: random.Random, change: Change) -> None:
    at = chance.randrange(len(members))
    header, content = members[at]
    what = chance.random()
    if what < 0.6:
        content = mutate_json_lines(content, chance, change) if chance.random() < 0.7 else change(content)
        members[at] = _sized(header, content), content
    elif what < 0.7:
        members[at] = (change(header) + b"\0" * BLOCK)[:BLOCK], content
    elif what < 0.8:
        members[at] = chance.choice(MEMBERS).encode()[:100].ljust(100, b"\0") + header[100:], content
    elif what < 0.88:
        kind = bytearray(header)
        kind[KIND] = chance.choice(b"\x000123456789xgLKSX")
        members[at] = bytes(kind), content
    elif what < 0.94:
        members.insert(chance.randrange(len(members) + 1), (header, content))
    elif len(members) > 1:
        del members[at]


def _sized(header: bytes, content: bytes) -> bytes:
    return header[: SIZE.start] + b"%011o\0" % len(content) + header[SIZE.stop :]


def mutate_json_lines(raw: bytes, chance: random.Random, change: Change) -> bytes:
    """Change one line of JSON."""
    lines = raw.split(b"\n")
    at = chance.randrange(len(lines))
    lines[at] = mutate_json(lines[at], chance, change, KEYS["archives"])
    return b"\n".join(lines)


def mutate_report(raw: bytes, chance: random.Random, change: Change) -> bytes:
    """Change one value of a report."""
    return mutate_json(raw, chance, change, KEYS["reports"])


def mutate_json(raw: bytes, chance: random.Random, change: Change, names: Sequence[str]) -> bytes:
    """Change one value of a JSON text; what is none is changed as bytes, and now and then what is one."""
    if chance.random() < 0.3:
        return change(raw)
    try:
        root = {"": json.loads(raw)}
        places = list(_places(root))
        here, key = chance.choice(places)
        other, other_key = chance.choice(places)
        what = chance.random()
        if what < 0.2:
            here[key] = chance.choice(ODD)
        elif what < 0.4 and isinstance(here[key], dict):
            here[key][chance.choice(names)] = json.loads(json.dumps(chance.choice((*ODD, other[other_key]))))
        elif what < 0.6:
            here[key] = json.loads(json.dumps(other[other_key]))
        elif what < 0.7 and here is not root:
            del here[key]
        elif what < 0.8 and isinstance(here[key], list):
            here[key] *= 2
        elif what < 0.9:
            for _ in range(chance.choice((1, 3, 60, 130))):
                here[key] = [here[key]] if chance.random() < 0.5 else {"item": here[key]}
        elif isinstance(here[key], str):
            here[key] = change(here[key].encode()).decode(errors="replace")
        return json.dumps(root[""], ensure_ascii=chance.random() < 0.5).encode()
    except (ValueError, RecursionError):  # a text of halves of surrogate pairs cannot be encoded either
        return change(raw)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key in it."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def mutate_scanner_report(raw: bytes, chance: random.Random, change: Change) -> bytes:
    """Change one value of a report of a scanner."""
    return mutate_json(raw, chance, change, KEYS["scanners"])


MUTATORS = {"archives": mutate_archive, "reports": mutate_report, "scanners": mutate_scanner_report}
