"""Why frames are not resolved, with what to do about it (source maps reference, section 18)."""

from __future__ import annotations

from project_service.areas.error_tracking.source_maps import lookup

Problem = dict[str, str]
"""``type``, ``message``, ``path`` of the script, ``hint``."""

MAX_LENGTH = 1024


def no_source(path: str, debug_id: str | None, release: str | None, dist: str | None) -> Problem:
    """No source map was uploaded for a script."""
    if debug_id is not None:
        hint = f"Upload the build with debug id {debug_id}: sentry-cli sourcemaps upload"
        return _problem("js_no_source", f"No source map with debug id {debug_id}", path, hint)
    if release is None:
        hint = "The build was not prepared: run sentry-cli sourcemaps inject, or use the plug-in of the bundler"
        return _problem("js_no_source", "Source code was not found", path, hint)
    names = ", ".join(lookup.names_of(path))
    tried = f"Tried {names} {f'with dist {dist}' if dist else 'without a dist'}"
    hint = f"Upload the build with sentry-cli sourcemaps upload --release {release}. {tried}"
    return _problem("js_no_source", f"No source map of this file in release {release}", path, hint)


def invalid_map(path: str, reason: str) -> Problem:
    """A source map cannot be used."""
    return _problem("js_invalid_source", "Source map was invalid or not parseable", path, reason)


def no_place(path: str, line: int, column: int) -> Problem:
    """A place is not in the source map."""
    hint = f"{line}:{column} is not in the source map: it is probably that of another build"
    return _problem("js_invalid_sourcemap_location", "Invalid location in source map", path, hint)


def no_text(path: str) -> Problem:
    """A source map has no text of its sources."""
    hint = "The source map has no sourcesContent: let the bundler include it"
    return _problem("js_missing_sources_content", "Source code was not found in the source map", path, hint)


def pending() -> Problem:
    """The source maps are being applied."""
    return _problem("js_pending", "Source maps are being applied", "", "Reload this page in a few seconds")


def overdue() -> Problem:
    """No worker has applied the source maps in time."""
    hint = "They were not applied within 5 minutes, since no worker was free; this is done as soon as one is"
    return _problem("js_pending", "Source maps are being applied", "", hint)


def too_many() -> Problem:
    """A project sent more new stacks in a minute than are resolved."""
    hint = "The project sent too many new stacks within a minute: apply the source maps again for this one"
    return _problem("js_too_many", "Too many different stacks", "", hint)


def _problem(kind: str, message: str, path: str, hint: str) -> Problem:
    return {"type": kind, "message": message[:MAX_LENGTH], "path": path[:MAX_LENGTH], "hint": hint[:MAX_LENGTH]}
