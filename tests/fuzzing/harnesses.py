"""What bytes of all kinds are tried on: readers that take what they are given or refuse it in words of their own.

A harness returns why its input was refused, or nothing if it was read; whatever else it raises is a fault. What was
read has to fit where it goes: into a folder of its own, into the columns of the tables, and through the other parser.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import orjson

from project_service.areas.vulnerabilities.formats import detection, shapes
from project_service.areas.vulnerabilities.formats.documents import report_json, splitting, unpacking
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.gitlab import normalising, reports
from project_service.areas.vulnerabilities.ingestion import deduplication, gathering
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.kit import clock
from project_service.transfers.archive import extraction, json_stream, layout, legacy, reader, tar_reader
from project_service.transfers.archive.contents import BadArchive, Unpacked
from project_service.transfers.archive.extraction import Limits
from project_service.transfers.importing.mapping import map_row
from project_service.transfers.importing.mapping.context import ImportContext, ProjectState
from project_service.transfers.importing.mapping.parsing import parse_row as read_row
from project_service.transfers.importing.mapping.tables import COLUMNS
from project_service.transfers.importing.refusals import RowRefused
from project_service.transfers.importing.user_mapping import UserMapping

LIMITS = Limits(size=256 << 10, ratio=100, ratio_from=64 << 10, members=40)
IN_LITTLE = {
    tar_reader: {"MAX_HEADER_BYTES": 4096},
    extraction: {"MAX_RELATIONS": 12},
    legacy: {"MAX_RELATIONS": 12, "MAX_OBJECT_BYTES": 2048},
    json_stream: {"MAX_LINE_BYTES": 4096},
    reader: {"MAX_LINE_BYTES": 4096, "MAX_OBJECT_BYTES": 2048},
}
NO_REPORT = "no report"
LARGEST_INTEGER = 2**63 - 1
UNCLEAR = {f"{name}.item" for name in (report_json.VULNERABILITIES, report_json.REMEDIATIONS)}
AT_ONCE, STREAMED = 1 << 30, -1  # what MAX_PARSED_BYTES has to be for one parser or the other


def read_archive(raw: bytes) -> str | None:
    """Take an archive apart and make rows of it, as an import and ``archive inspect`` do."""
    with TemporaryDirectory(prefix="fuzzing-") as place, contextlib.ExitStack() as stack:
        for module, limits in IN_LITTLE.items():
            stack.enter_context(mock.patch.multiple(module, **limits))
        archive, folder = Path(place, "archive.tar.gz"), Path(place, "unpacked")
        archive.write_bytes(raw)
        try:
            unpacked = extraction.unpack(archive, folder, LIMITS)
            unpacked.check()
            legacy.convert_legacy(unpacked)
            reader.project_of(unpacked)
            reader.count_rows(unpacked)
            _translate(unpacked)
        except BadArchive as refused:
            return str(refused)
        finally:
            _look_around(Path(place))
    return None


def _translate(unpacked: Unpacked) -> None:
    numbers = {model: itertools.count(1) for model in COLUMNS}
    context = ImportContext(1, UserMapping(5, accounts={7: 8}), ProjectState(), clock.now(), numbers.__getitem__)
    for relation in reader.relations_of(unpacked):
        for line, raw in reader.rows_of(unpacked, relation):
            row = read_row(raw)
            if isinstance(row, RowRefused):
                context.record_failure(relation, line, row)
            elif relation not in layout.IMPORTED_AT_THE_END:
                map_row(context, relation, line, row)
    for model, rows in context.batch.rows.items():
        for stored in rows:
            assert len(stored) == len(COLUMNS[model])
            for value in stored:
                _fits(value)


def _fits(value: Any) -> None:
    """A value that both databases take."""
    if isinstance(value, int):
        assert abs(value) <= LARGEST_INTEGER
    elif isinstance(value, str):
        assert "\0" not in value
        value.encode()
    elif isinstance(value, dict | list):
        assert b"\\u0000" not in orjson.dumps(value).replace(b"\\\\", b"")


def _look_around(place: Path) -> None:
    """Only files, right below the folder, and no more of them than the limits allow."""
    assert {path.name for path in place.iterdir()} <= {"archive.tar.gz", "unpacked"}
    files = list((place / "unpacked").iterdir()) if (place / "unpacked").exists() else []
    assert all(path.is_file() and not path.is_symlink() for path in files)
    assert sum(path.stat().st_size for path in files) <= 3 * LIMITS.size


def read_report(raw: bytes) -> str | None:
    """Read a report of every kind with both parsers, which have to say the same; the first refusal."""
    found = [_read_both(raw, kind) for kind in REPORT_TYPES]
    return next((refusal for refusal in found if refusal is not None), None)


def _read_both(raw: bytes, kind: str) -> str | None:
    at_once, streamed = _said(raw, kind, AT_ONCE), _said(raw, kind, STREAMED)
    if at_once != streamed:
        assert _is_ambiguous(raw), f"{kind}: {at_once} is not {streamed}"
    return at_once if isinstance(at_once, str) else None


def _said(raw: bytes, kind: str, limit: int) -> Any:
    """What a report says to one of the parsers, or why it is none."""
    try:
        with (
            mock.patch.object(report_json, "MAX_PARSED_BYTES", limit),
            reports.open_report(io.BytesIO(raw), kind) as report,
        ):
            return [*_outlined(kind, report)], list(report.remediations), report.version, report.scan
    except BrokenReport as refused:
        # where it is no JSON, or nothing but a text or a number, each parser has words of its own
        return str(refused) if refused.pointer else NO_REPORT


def _outlined(kind: str, report: reports.Report) -> Iterator[Any]:
    """Every finding with all that decides about it, and what of it can be stored."""
    scanners, remedies = normalising.Scanners(report.scan), normalising.Remedies(report.remediations)
    normalising.scan_of(report.scan)
    for entry in report.vulnerabilities:
        summary = remedies.summary(remedies.position_of(entry))
        data = normalising.finding_data(kind, entry, scanners.of(entry), summary)
        assert data["name"].strip()
        _fits(data)
        yield deduplication.match_keys_of(kind, entry), normalising.rank_of(kind, entry), data


def _is_ambiguous(raw: bytes) -> bool:
    """Whether parsers may differ about a text: the streaming one cannot tell ``{"a.item": 1}`` from ``{"a": [1]}``."""
    try:
        found = json.loads(raw.removeprefix(report_json.BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and not UNCLEAR.isdisjoint(found)


def read_scanner_report(raw: bytes) -> str | None:
    """Recognise a report of a scanner and read it, in pieces of any size; every entry is a finding or is left out."""
    at_once, in_pieces = _recognised(raw, 1 << 20), _recognised(raw, 7)
    assert at_once == in_pieces, f"{at_once} is not {in_pieces}"
    return at_once if isinstance(at_once, str) else None


def _recognised(raw: bytes, block: int) -> Any:
    """What a report of a scanner says when it is read in blocks of so many bytes, or why it is refused."""
    try:
        with (
            mock.patch.object(splitting, "BLOCK_BYTES", block),
            mock.patch.object(splitting, "MAX_PART_BYTES", 1 << 20),
            unpacking.unpacked(io.BytesIO(raw)) as plain,
        ):
            splitting.refuse_xml(plain)
            top = splitting.Document(plain).top
            found = detection.format_of(top, None)
            if found.reader is None:
                return [found.name, found.types or detection.type_of_gitlab_report(top)]
            reading = shapes.Reading(shapes.Options())
            with gathering.gathered(found.reader(top, reading), reading) as read:
                rows = list(read.rows(1))
                _counts_agree(rows, read.groups)
            for row in (*rows, *((tuple(one.values())) for one in reading.components)):
                for value in row:
                    _fits(value)
            return [*map(str, rows)], reading.components, reading.warnings, found.version(top)
    except BrokenReport as refused:
        return NO_REPORT if refused.message == splitting.NOT_JSON else str(refused)


def _counts_agree(rows: list[Any], groups: list[Any]) -> None:
    parts = [part for group in groups for part in group.parts]
    assert sum(part.found for part in parts) == len(rows)
    assert all(group.parts for group in groups)
    for index, *row in rows:
        data = row[-2]  # before what tracking compares
        assert 0 <= index < len(parts)
        assert data["name"]
        assert len(data["name"]) <= shapes.MAX_NAME_LENGTH
        assert len(data["description"] or "") <= shapes.MAX_DESCRIPTION_LENGTH
        assert data["identifiers"]
        assert len(data["location"].get("file", "")) <= shapes.MAX_PATH_LENGTH


HARNESSES: dict[str, Callable[[bytes], str | None]] = {
    "archives": read_archive,
    "reports": read_report,
    "scanners": read_scanner_report,
}
