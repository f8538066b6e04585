"""Fingerprints, by which repetitions and recoveries find their alert (alert ingestion reference, section 6)."""

from __future__ import annotations

import hashlib
from typing import Any

from project_service.areas.alerts.payloads.payload_values import exact_text, is_blank, items, label_of
from project_service.kit import exact_json

# repetitions of an alert differ in these keys, so a generated fingerprint excludes them
VOLATILE = ("start_time", "end_time", "hosts")
OF_BATCHES = "Alerts of Alertmanager and Grafana are grouped by their own fingerprint, else by their labels."
Mapping = dict[str, dict[str, Any]]


def fingerprint_of(value: Any, payload: dict[str, Any], mapping: Mapping) -> str | None:
    """Return the digest of a given fingerprint; of a blank one, the digest of the fields that identify an alert."""
    return given_fingerprint(value) or digest_of_object(_without(payload, excluded_paths(mapping)))


def given_fingerprint(value: Any) -> str | None:
    """Return the digest of a given fingerprint; ``None`` if it is blank."""
    if isinstance(value, dict):
        return digest_of_object(value)
    text = "".join(exact_text(item) for item in items(value))
    return None if is_blank(text) else sha1(text)


def joined(values: list[Any]) -> str | None:
    """Return the digest of several values, which are told apart; ``None`` if all are blank."""
    texts = [exact_text(value) for value in values]
    return None if all(is_blank(text) for text in texts) else sha1(exact_json.dumps(texts).decode())


def excluded_paths(mapping: Mapping) -> list[list[Any]]:
    """Return the paths that a generated fingerprint excludes: the volatile keys, and what is mapped to them."""
    mapped = [mapping[name].get("path") or [] for name in VOLATILE if name in mapping]
    return [[name] for name in VOLATILE] + [path for path in mapped if path]


def description_of(mapping: Mapping, *, is_given: bool | None = None) -> str:
    """Say in one sentence how the alerts of an integration are grouped.

    ``is_given``: whether a sample has a fingerprint; ``None`` without a sample.
    """
    *labels, last = dict.fromkeys(label_of(path) for path in excluded_paths(mapping))
    rest = f"all fields except {', '.join(labels)} and {last}"
    names = [label_of(mapping["fingerprint"].get("path") or [])] if "fingerprint" in mapping else []
    if names or is_given is not False:
        names = list(dict.fromkeys([*names, "fingerprint"]))
        return f"Alerts are grouped by {' or '.join(names)}; without it, by {rest}."
    return f"Alerts are grouped by {rest}."


def sha1(text: str) -> str:
    """Return the digest stored as a fingerprint; it identifies, it does not protect."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def flatten(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Return dotted keys and their values; arrays are one value."""
    if not isinstance(value, dict):
        return [(prefix, value)]
    return [
        pair for key, inner in value.items() for pair in flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    ] or [(prefix, {})]


def digest_of_object(value: dict[str, Any]) -> str | None:
    """Return the digest of an object, in which the order of keys does not matter; ``None`` if all of it is blank."""
    pairs = sorted(flatten(value), key=lambda pair: pair[0])
    if all(is_blank(inner) for _, inner in pairs):
        return None
    return hashlib.sha1(exact_json.dumps(pairs, sort_keys=True), usedforsecurity=False).hexdigest()


def _without(payload: dict[str, Any], paths: list[list[Any]]) -> dict[str, Any]:
    for path in paths:
        payload = _pruned(payload, path) or {}
    return payload


def _pruned(value: Any, path: list[Any]) -> Any:
    """Return a value without what is at a path; ``None`` if nothing is left of it.

    Objects and arrays that become empty are left out as well: whether a source sends an empty one when there is no
    time makes no other alert. Items of arrays are replaced by ``None``, so that the others keep their positions.
    """
    if not path or value is None:
        return None
    step, *rest = path
    if isinstance(value, dict) and isinstance(step, str):
        inner = _pruned(value.get(step), rest)
        others = {key: other for key, other in value.items() if key != step}
        return (others if inner is None else {**value, step: inner}) or None
    if isinstance(value, list) and isinstance(step, int):
        pruned = [_pruned(item, rest) if position == step else item for position, item in enumerate(value)]
        while pruned and pruned[-1] is None:
            pruned.pop()
        return pruned or None
    return value
