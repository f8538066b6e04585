"""Headers of raw content, which is never run in the origin of the service (repositories reference, section 5.2)."""

from __future__ import annotations

import re
from urllib.parse import quote

SNIFFED_BYTES = 512
TEXT, BINARY, SVG = "text/plain; charset=utf-8", "application/octet-stream", "image/svg+xml"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_SIGNATURES: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"BM.{4}\0", re.DOTALL), "image/bmp"),
    (re.compile(rb"\x1a\x45\xdf\xa3"), "video/webm"),
    (re.compile(rb"....ftyp", re.DOTALL), "video/mp4"),
    (re.compile(rb"%PDF-"), "application/pdf"),
)
# bytes that are in no text of a usual encoding
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SVG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,300}?-->\s*|<![^>]*>\s*)*<svg[\s>]", re.DOTALL)
_MARKUP_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:[!?a-z])", re.IGNORECASE)
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")


def type_of(start: bytes) -> str:
    """The content type by the first bytes: text, a type that browsers show without running it, or binary."""
    start = start[:SNIFFED_BYTES]
    for signature, kind in _SIGNATURES:
        if signature.match(start):
            return kind
    if _CONTROLS.search(start):
        return BINARY
    return SVG if _SVG.match(start) else TEXT


def is_text(content: bytes) -> bool:
    """Whether content can be shown as text."""
    return type_of(content) in (TEXT, SVG)


def headers(start: bytes, name: str, *, inline: bool = True) -> dict[str, str]:
    """The headers of raw content that begins with some bytes; ``inline=False`` makes browsers store it."""
    kind = type_of(start)
    is_shown = inline and kind not in (SVG, BINARY)
    if not is_shown and kind != SVG:
        kind = BINARY
    # browsers guess by the name of a file: what is markup gets one that says nothing
    shown_name = "blob" if is_shown and kind == TEXT and _MARKUP_START.match(start) else name
    return {
        "Content-Type": kind,
        "Content-Disposition": disposition("inline" if is_shown else "attachment", shown_name),
        "Content-Security-Policy": POLICY,
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }


def disposition(kind: str, name: str) -> str:
    """The value of ``Content-Disposition`` with a file name of any characters (RFC 6266)."""
    plain = re.sub(r'[^\x20-\x7e]|["\\%;]', "_", name)
    encoded = "" if plain == name else f"; filename*=UTF-8''{quote(name, safe='')}"
    return f'{kind}; filename="{plain}"{encoded}'
