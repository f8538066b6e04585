"""Secrets that are recognised by their form, whatever stands before them: access tokens, JWTs, credentials of HTTP.

Every pattern needs time linear in the length of the text: repetitions are bounded or possessive, and a pattern begins
with a fixed text that stands at the beginning of a word.
"""

from __future__ import annotations

import re

_PREFIXES = (
    r"gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-",  # GitLab
    r"gh[pousr]_",
    r"github_pat_",
    r"xox[abeoprs]-",  # Slack
    r"[sr]k_(?:live|test)_",  # Stripe
    r"npm_(?=[A-Za-z0-9]{36})",
    r"pypi-AgE",
)
TOKEN = re.compile(rf"(?<![\w-])(?:{'|'.join(_PREFIXES)})[\w.-]{{16,}}+")
JWT = re.compile(r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)*+")
# a word behind it, such as in "bearer authentication failed", is none
CREDENTIALS = re.compile(
    r"(?<![\w-])((?:bearer|basic)[ \t]{1,8})(?=[A-Za-z]{0,1000}(?:[0-9_~+/=]|[.-]\w))[\w.~+/=-]{6,}+", re.IGNORECASE
)
# what every match contains, without regard to case
HINTS = ("gl", "gh", "xox", "k_", "npm_", "pypi-", "eyj", "bearer", "bas")
# searched in lower case: a search without regard to case takes ten times as long
_HINT = re.compile(r"gl[a-z]{2,5}-|gh[pousr]_|github_pat_|xox|[sr]k_(?:live|test)|npm_|pypi-|eyj|bearer|basic")


def without_known_secrets(text: str, replacement: str) -> str:
    """Return a text with a replacement in place of each secret that is recognised by its form."""
    if not _HINT.search(text.lower()):  # most texts: one search instead of three
        return text
    text = JWT.sub(replacement, text)
    text = TOKEN.sub(replacement, text)
    return CREDENTIALS.sub(lambda match: match[1] + replacement, text)
