"""JSON whose integers keep every digit.

orjson turns integers of more than 64 bits into inexact numbers, and writes none; a value that is compared or shown as
its text has to keep all of it. What has no long number, which is nearly everything, is left to orjson.
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

# steps of reading a text: names, values, and both ends of what holds others. Two of them may be written in two bytes
# and take a hundred in memory. A long text may have more, as sparsely as exports have them: a merge request with ten
# thousand notes takes a million, in nine megabytes
MOST_STEPS, MOST_SPARSE_STEPS = 1_000_000, 2_000_000
BYTES_OF_FURTHER = 8
_BLANKS = (b" ", b"\t", b"\r", b"\n")
MOST_DIGITS = 4300  # what Python reads; reading more takes time that grows with their square
# found by looking for a text among digits that are all alike, behind what may stand before a number, which is alike too
# (a text has a quotation mark there): a fifteenth of the time of a pattern
_ALIKE = bytes.maketrans(b"123456789,[- \t\r\n", b"0" * 9 + b":" * 7)
_LONG = b"0" * 19
_DIGITS = re.compile(rb"([0-9]{17})[0-9]+")  # the first are left, for they may be those of an escape in a text
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def loads(raw: bytes | str, *, too_long: Callable[[str], Any] = int) -> Any:
    """The value of a JSON text, with every digit of its integers; ``ValueError`` when it is none.

    ``too_long`` makes something of the text of an integer of more than ``MOST_DIGITS`` digits, else it is refused.
    """
    encoded = raw.encode() if isinstance(raw, str) else raw
    alike = encoded.translate(_ALIKE)
    if b":" + _LONG not in alike and not alike.startswith(_LONG):
        return orjson.loads(encoded)

    def whole(text: str) -> Any:
        return int(text) if len(text) <= MOST_DIGITS else too_long(text)

    text = encoded.decode()
    try:
        loaded = json.JSONDecoder(parse_float=_finite, parse_constant=_finite, parse_int=whole).decode(text)
        if _SURROGATE.search(text):  # half a character, which could not be written
            json.dumps(loaded, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError from error
    return loaded


def most_steps(size: int) -> int:
    """How many steps of reading a text of so many bytes may take."""
    return min(MOST_STEPS + size // BYTES_OF_FURTHER, MOST_SPARSE_STEPS)


def has_too_many_values(raw: bytes) -> bool:
    """Whether there is more in a JSON text than may be in memory at once, however short the text is."""
    if len(raw) <= MOST_STEPS:
        return False
    most = most_steps(len(raw) - sum(map(raw.count, _BLANKS)))  # which may be gone when it is written again
    # numbers that do not fit into those of C are none to whoever counts here, and may be some to whoever reads it
    steps = ijson.basic_parse(io.BytesIO(_DIGITS.sub(rb"\1", raw)), use_float=True)
    try:
        return next(itertools.islice(steps, most, None), None) is not None
    except (ijson.JSONError, UnicodeError):  # reading it ends there, too
        return False


def dumps(value: Any, *, sort_keys: bool = False) -> bytes:
    """A value as JSON, integers of any length included.

    Beside something that orjson does not write, ``NaN`` and infinity are a ``ValueError``; it makes ``null`` of them.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else None)
    except orjson.JSONEncodeError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)
        return text.encode()


def _finite(text: str) -> float:
    """The number of a JSON text; ``NaN``, ``Infinity`` and what is too large for any number are a ``ValueError``."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
