"""Addresses in exports: schemas take nothing but valid URIs."""

from __future__ import annotations

import re
from urllib.parse import quote

NOT_IN_URI = re.compile(r"%(?![0-9A-Fa-f]{2})|[^!$&'()*+,;=:@/?%A-Za-z0-9._~-]")


def uri_of(address: str) -> str:
    """Return an address with everything percent-encoded that may not be in a URI."""
    before, mark, fragment = address.partition("#")
    return _encoded(before) + mark + _encoded(fragment.replace("#", "%23"))


def _encoded(part: str) -> str:
    return NOT_IN_URI.sub(lambda match: quote(match[0], safe=""), part)
