"""Run the program that looks up places in source maps, with bounds of time and memory (``resolver``)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import structlog

from project_service.areas.error_tracking.releases.models import SourceMapArtifact
from project_service.areas.error_tracking.releases.storage_names import content_name
from project_service.areas.error_tracking.source_maps.lookup import ScriptFiles
from project_service.kit.storage import storage

RESOLVER = Path(__file__).with_name("resolver.py")
MAX_SECONDS = 20
TOO_MUCH = "the parser needed too much time or memory, or could not be run"
MAX_ANSWER_BYTES = 64 << 20

log = structlog.get_logger(__name__)
Lookup = tuple[int, int, int]
"""The number of a script, a line and a column, both from 1."""


def look_up(files: Sequence[ScriptFiles], lookups: Sequence[Lookup]) -> tuple[list[Any], dict[int, str]]:
    """Return what is found for each place (``None``: nothing), and by script why its map could not be used.

    A script that ends the program is left out the second time: names of functions are lost then, places are not.
    """
    with tempfile.TemporaryDirectory() as folder:
        for with_scripts in (True, False):
            questions = [_provided(Path(folder), script_files, with_script=with_scripts) for script_files in files]
            answer = _run({"files": questions, "lookups": lookups})
            if answer is not None:
                return answer["results"], {int(number): text for number, text in answer["errors"].items()}
    return [None] * len(lookups), dict.fromkeys(range(len(files)), TOO_MUCH)


def _provided(folder: Path, files: ScriptFiles, *, with_script: bool) -> dict[str, str | None]:
    script = files.script if with_script else None
    return {"map": _path_of(folder, files.source_map), "script": None if script is None else _path_of(folder, script)}


def _path_of(folder: Path, artifact: SourceMapArtifact) -> str:
    path = folder / artifact.sha256
    if not path.exists():
        storage().provide_file(content_name(artifact.project_id, artifact.sha256), path)
    return str(path)


def _run(questions: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answers of the program; ``None`` if it was ended by a signal or its time was over."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(RESOLVER)],
            input=orjson.dumps(questions),
            capture_output=True,
            timeout=MAX_SECONDS,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired:
        log.warning("a source map was not resolved: the parser needed too much time")
        return None
    if done.returncode != 0 or len(done.stdout) > MAX_ANSWER_BYTES:
        log.warning(
            "a source map was not resolved", code=done.returncode, error=done.stderr[-500:].decode(errors="replace")
        )
        return None
    answer: dict[str, Any] = orjson.loads(done.stdout)
    return answer
