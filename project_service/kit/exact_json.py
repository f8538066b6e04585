"""The reader and writer of JSON: integers of any size keep all digits.

msgspec reads and writes. Receivers of monitoring tools and SDKs use ``lenient`` for what those send although it is not
JSON; only such texts are parsed by the standard library.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import re
from collections.abc import Callable
from typing import Any

import ijson
import msgspec

# Parse events: keys, values, and starts and ends of arrays and objects. Two bytes of text may be two events and take a
# hundred bytes of memory. A long text may have more events if they are as sparse as in exports: a merge request with
# ten thousand notes has a million in nine megabytes.
MAX_EVENTS, MAX_SPARSE_EVENTS = 1_000_000, 2_000_000
BYTES_PER_FURTHER_EVENT = 8
_BLANKS = (b" ", b"\t", b"\r", b"\n")
MAX_DIGITS = 4300  # of an integer, the limit of Python: the time to parse grows with the square
_DIGITS = re.compile(rb"([0-9]{17})[0-9]+")  # the first 17 are kept, because they may belong to an escape in a string
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_decoder = msgspec.json.Decoder()


def loads(
    raw: bytes | str, *, too_long: Callable[[str], Any] | None = None, lenient: bool = False, allow_nan: bool = False
) -> Any:
    """Parse JSON with exact integers.

    ``too_long`` converts the text of an integer of more than ``MAX_DIGITS`` digits, which is refused otherwise.
    ``lenient``: raw control characters in strings are accepted, and half a surrogate pair becomes U+FFFD, as templates
    of monitoring tools produce them. ``allow_nan``: ``NaN`` and infinity are accepted.

    Raises:
        ValueError: it is not JSON, nested too deeply, or an integer is too long.

    """
    encoded = raw.encode("utf-8", "surrogatepass" if lenient else "strict") if isinstance(raw, str) else raw
    try:
        return _decoder.decode(encoded)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError:
        if too_long is None and not lenient and not allow_nan:
            raise
    return _load_leniently(encoded, too_long or int, lenient, allow_nan)


def _load_leniently(encoded: bytes, too_long: Callable[[str], Any], lenient: bool, allow_nan: bool) -> Any:
    """Parse with the parser of the standard library, which can be told what to accept."""

    def whole(text: str) -> Any:
        return int(text) if len(text) <= MAX_DIGITS else too_long(text)

    number = float if allow_nan else _finite
    decoder = json.JSONDecoder(parse_float=number, parse_constant=number, parse_int=whole, strict=not lenient)
    text = encoded.decode("utf-8", "surrogatepass" if lenient else "strict")
    try:
        loaded = decoder.decode(text)
        if lenient:
            return _without_surrogates(loaded)
        json.dumps(loaded, ensure_ascii=False).encode()  # refuses half a surrogate pair
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return loaded


def _without_surrogates(value: Any) -> Any:
    """Replace halves of surrogate pairs in all texts of a value, keys included."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(inner) for key, inner in value.items()}
    return value


def max_events(size: int) -> int:
    """Return the number of parse events that a text of ``size`` bytes may have."""
    return min(MAX_EVENTS + size // BYTES_PER_FURTHER_EVENT, MAX_SPARSE_EVENTS)


def has_too_many_values(raw: bytes) -> bool:
    """Whether a JSON text has more values than may be in memory at once, however short the text is."""
    if len(raw) <= MAX_EVENTS:
        return False
    maximum = max_events(len(raw) - sum(map(raw.count, _BLANKS)))  # white space is lost when it is serialized again
    # numbers are shortened, because those that do not fit into C types would end the count
    events = ijson.basic_parse(io.BytesIO(_DIGITS.sub(rb"\1", raw)), use_float=True)
    try:
        return next(itertools.islice(events, maximum, None), None) is not None
    except (ijson.JSONError, UnicodeError):  # parsing it ends there, too
        return False


def dumps(value: Any, *, sort_keys: bool = False) -> bytes:
    """Serialize a value with integers of any size; ``NaN`` and infinity become ``null``."""
    return msgspec.json.encode(value, order="deterministic" if sort_keys else None)


def _finite(text: str) -> float:
    """Parse a number; ``NaN``, ``Infinity`` and overflow are a ``ValueError``."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
