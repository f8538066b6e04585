"""JSON with integers of arbitrary size, without loss of digits.

orjson reads integers of more than 64 bits as floats and does not write them; values that are compared or displayed must
keep all digits. Documents without long numbers, nearly all, are left to orjson.
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
import orjson

# Parse events: keys, values, and starts and ends of arrays and objects. Two bytes of text may be two events and take a
# hundred bytes of memory. A long text may have more events if they are as sparse as in exports: a merge request with
# ten thousand notes has a million in nine megabytes.
MAX_EVENTS, MAX_SPARSE_EVENTS = 1_000_000, 2_000_000
BYTES_PER_FURTHER_EVENT = 8
_BLANKS = (b" ", b"\t", b"\r", b"\n")
MAX_DIGITS = 4300  # of an integer, the limit of Python: the time to parse grows with the square
# Long numbers are found by a search for bytes, after mapping all digits to 0 and all that may precede a number to a
# colon (a string has a quotation mark there): 15 times faster than a regular expression.
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789,[- \t\r\n", b"0" * 9 + b":" * 7)
_LONG = b"0" * 19
_DIGITS = re.compile(rb"([0-9]{17})[0-9]+")  # the first 17 are kept, because they may belong to an escape in a string
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def loads(raw: bytes | str, *, too_long: Callable[[str], Any] = int, lenient: bool = False) -> Any:
    """Parse JSON with exact integers.

    ``too_long`` converts the text of an integer of more than ``MAX_DIGITS`` digits; by default it is refused.
    ``lenient``: raw control characters in strings are accepted, and half a surrogate pair becomes U+FFFD, as templates
    of monitoring tools produce them.

    Raises:
        ValueError: it is not JSON, or an integer is too long.

    """
    encoded = raw.encode("utf-8", "surrogatepass" if lenient else "strict") if isinstance(raw, str) else raw
    mapped = encoded.translate(_DIGITS_AS_ZERO)
    if b":" + _LONG not in mapped and not mapped.startswith(_LONG):
        try:
            return orjson.loads(encoded)
        except ValueError:
            if not lenient:
                raise
    return _load_exactly(encoded.decode(), too_long, lenient)


def _load_exactly(text: str, too_long: Callable[[str], Any], lenient: bool) -> Any:
    """Parse with the parser of the standard library, which can be told how to read integers."""

    def whole(text: str) -> Any:
        return int(text) if len(text) <= MAX_DIGITS else too_long(text)

    decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_finite, parse_int=whole, strict=not lenient)
    try:
        loaded = decoder.decode(text)
        if _SURROGATE.search(text):  # a lone surrogate, which could not be encoded
            if lenient:
                return _without_surrogates(loaded)
            json.dumps(loaded, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError from error
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
    """Serialize a value with integers of any size.

    ``NaN`` and infinity become ``null``; in a value with an integer of more than 64 bits they are a ``ValueError``.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else None)
    except orjson.JSONEncodeError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)
        return text.encode()


def _finite(text: str) -> float:
    """Parse a number; ``NaN``, ``Infinity`` and overflow are a ``ValueError``."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
