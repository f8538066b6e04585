"""What an archive holds, and what it would become here, without anything being imported."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from project_service.domain.access_levels import Visibility
from project_service.domain.repositories.bundles import check_head
from project_service.domain.repositories.git import BadBundle
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.transfers.archive import layout, legacy, reader
from project_service.transfers.archive.contents import BadArchive, Unpacked
from project_service.transfers.archive.extraction import unpack
from project_service.transfers.importing.files import bad_snippet_bundles, bundle_of_snippet
from project_service.transfers.importing.finalization import attributes_of
from project_service.transfers.importing.mapping import map_row
from project_service.transfers.importing.mapping.context import ImportContext, ProjectState
from project_service.transfers.importing.mapping.parsing import parse_row as read_row
from project_service.transfers.importing.mapping.tables import COLUMNS
from project_service.transfers.importing.protected_refs import ALL as PROTECTED_REFS
from project_service.transfers.importing.protected_refs import protected_refs_in
from project_service.transfers.importing.refusals import RowRefused
from project_service.transfers.importing.single_rows import single_rows
from project_service.transfers.importing.user_mapping import UserMapping, is_invitation
from project_service.transfers.models import ArchivedRow, ImportFailure

NO_ID = 0


@dataclass(slots=True)
class Inspection:
    """What was found in an archive."""

    version: str
    release: str | None
    legacy: bool
    project: dict[str, Any]
    rows: dict[str, int] = field(default_factory=dict)
    becomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """The findings for people, a line each."""
        form = "one object (legacy)" if self.legacy else "ndjson"
        yield f"format        {self.version}, {form}, written by release {self.release or 'unknown'}"
        level = self.project.get("visibility_level")
        visibility = Visibility(level).text if level in tuple(Visibility) else "private"
        yield f"project       {visibility}, {str(self.project.get('description') or 'without a description')[:60]!r}"
        yield "rows"
        for relation, count in self.rows.items():
            yield f"  {relation:<28}{count:>9}"
        yield "files"
        for name, size in self.files.items():
            yield f"  {name:<60}{size:>14} bytes"
        yield "would become"
        for name, count in sorted(self.becomes.items()):
            yield f"  {name:<28}{count:>9}"
        yield f"would be left out: {len(self.failures)}"
        for text in self.failures[:100]:
            yield f"  {text}"


def inspect(archive: Path) -> Inspection:
    """Read an archive to its end; ``BadArchive`` when it would not be imported."""
    with TemporaryDirectory() as folder:
        unpacked = unpack(archive, Path(folder) / "unpacked")
        unpacked.check()
        is_legacy = unpacked.project is None
        legacy.convert_legacy(unpacked)
        inspection = Inspection(
            version=unpacked.texts["VERSION"].strip(),
            release=(unpacked.texts.get("GITLAB_VERSION") or "").strip() or None,
            legacy=is_legacy,
            project=attributes_of(unpacked),
        )
        for bundle in unpacked.bundles.values():
            _check_bundle(bundle)
        reader.lfs_types_of(unpacked)
        bad_bundles = bad_snippet_bundles(unpacked)
        ids = {model: itertools.count(1) for model in COLUMNS}
        context = ImportContext(NO_ID, UserMapping(NO_ID), ProjectState(), dt.datetime.now(dt.UTC), ids.__getitem__)
        for relation in reader.relations_of(unpacked):
            inspection.rows[relation] = 0
            context.state.start_relation()
            if relation in PROTECTED_REFS:
                _count_protected(inspection, unpacked, relation)
                continue
            for line, row in _rows_of(unpacked, relation):
                inspection.rows[relation] += 1
                _translate(inspection, context, relation, line, row, bad_bundles)
        inspection.files |= {f"{name}.bundle": path.stat().st_size for name, path in unpacked.bundles.items()}
        inspection.failures += [f"{name!r}: the name cannot be kept" for name in unpacked.left_out]
        inspection.files |= {name: carried.size for name, carried in unpacked.carried.items()}
    return inspection


def _count_protected(inspection: Inspection, unpacked: Unpacked, relation: str) -> None:
    for line, row in protected_refs_in(unpacked, set(), PROTECTED_REFS[relation]):
        inspection.rows[relation] += 1
        if isinstance(row, RowRefused):
            inspection.failures.append(f"{relation}, line {line}: {row}")
        else:
            inspection.becomes[relation.replace("_", " ")] += 1


def _rows_of(unpacked: Unpacked, relation: str) -> Iterator[tuple[int, Any]]:
    if relation in layout.OBJECTS:
        return single_rows(unpacked, relation)
    return ((line, read_row(raw)) for line, raw in reader.rows_of(unpacked, relation))


def _check_bundle(bundle: Path) -> None:
    try:
        check_head(bundle)
    except BadBundle as error:
        raise BadArchive(str(error)) from error


def _translate(
    inspection: Inspection, context: ImportContext, relation: str, line: int, row: Any, bad_bundles: set[str]
) -> None:
    if isinstance(row, RowRefused):
        context.record_failure(relation, line, row)
    elif relation in layout.IMPORTED_AT_THE_END:
        inspection.becomes[relation.replace("_", " ")] += 1
        return
    elif relation == layout.MEMBERS and not is_invitation(row):
        inspection.becomes["members, where known"] += 1
        return
    else:
        map_row(context, relation, line, row)
    for model, rows in context.take_batch().rows.items():
        if model is ImportFailure:
            inspection.failures += [f"{relation}, line {row[-1]}: {row[3]}" for row in rows]
        else:
            name = "rows kept as they are" if model is ArchivedRow else str(model.__tablename__).replace("_", " ")
            inspection.becomes[name] += len(rows)
        if model is Snippet and bad_bundles:
            for _, _, title, *_, extra, created_at, updated_at in rows:
                if bundle_of_snippet(title, extra, created_at, updated_at) in bad_bundles:
                    raise BadArchive(f"Invalid repository bundle for snippet {title!r}")

    inspection.becomes = +inspection.becomes
