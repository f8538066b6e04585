"""A program that looks up places in source maps: hostile files may crash the parser, and must not crash a worker.

It is started as a file, with a JSON object as input: ``files`` with the paths of a ``map`` and perhaps a ``script``,
both compressed with zlib, and ``lookups`` of ``[file, line, column]``. It writes ``results`` and, by file, ``errors``.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import zlib
from pathlib import Path
from typing import Any

from symbolic.exceptions import SymbolicError
from symbolic.sourcemapcache import SourceMapCache

MAX_MEMORY_BYTES = 1536 << 20
MAX_CPU_SECONDS = 20
MAX_FILE_BYTES = 64 << 20
CONTEXT_LINES = 5
MAX_NAME_LENGTH = 1024
MAX_LINE_LENGTH = 100_000
PREFIX = b")]}'"
SURROGATE = re.compile(  # begins with a literal text, which is found fast in large maps
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)


def main() -> None:
    """Read the questions, write the answers."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    questions = json.load(sys.stdin)
    caches: dict[int, Any] = {}
    errors: dict[int, str] = {}
    for number, files in enumerate(questions["files"]):
        try:
            caches[number] = _cache_of(files)
        except (SymbolicError, OverflowError, ValueError, zlib.error) as error:
            errors[number] = str(error)[:200] or type(error).__name__
    results = [_look_up(caches.get(number), line, column) for number, line, column in questions["lookups"]]
    json.dump({"results": results, "errors": errors}, sys.stdout)


def _cache_of(files: dict[str, str | None]) -> tuple[SourceMapCache, tuple[str, ...]]:
    """Parse a map; return it with the sources that it calls those of third parties."""
    raw = _read(files["map"])
    if raw.startswith(PREFIX):
        raw = raw.partition(b"\n")[2]
    raw = SURROGATE.sub(rb"\\ufffd", raw)
    script = b"" if files.get("script") is None else _read(files["script"])
    return SourceMapCache.from_bytes(script, raw), _ignored(raw)


def _ignored(raw: bytes) -> tuple[str, ...]:
    if b"gnoreList" not in raw:
        return ()
    source_map = json.loads(raw)
    sources = source_map.get("sources") or []
    numbers = source_map.get("ignoreList", source_map.get("x_google_ignoreList")) or []
    return tuple(sources[n] for n in numbers if isinstance(n, int) and 0 <= n < len(sources) and sources[n])


def _read(path: str | None) -> bytes:
    decompressor = zlib.decompressobj()
    content = decompressor.decompress(Path(str(path)).read_bytes(), MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES} bytes")
    return content


def _look_up(cache: tuple[SourceMapCache, tuple[str, ...]] | None, line: int, column: int) -> dict[str, Any] | None:
    if cache is None:
        return None
    try:
        token = cache[0].lookup(line, column, CONTEXT_LINES)
    except (SymbolicError, OverflowError):
        return None
    if token is None:
        return None
    return {
        "line": token.line,
        "column": token.col,
        "source": (token.src or "")[:MAX_NAME_LENGTH],
        "name": (token.name or "")[:MAX_NAME_LENGTH],
        "function": (token.function_name or "")[:MAX_NAME_LENGTH],
        "text": None if token.context_line is None else token.context_line[:MAX_LINE_LENGTH],
        "before": [text[:MAX_LINE_LENGTH] for text in token.pre_context],
        "after": [text[:MAX_LINE_LENGTH] for text in token.post_context],
        "ignored": str(token.src).endswith(cache[1]),
    }


if __name__ == "__main__":
    main()
