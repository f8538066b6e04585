"""The program that highlights one text: ``highlighting.py`` starts it as a process of its own.

Arguments: the name of a lexer of Pygments and the limit of processor time in seconds. Standard input is the text in
UTF-8, standard output its lines in HTML. The kernel ends the process at the limit, also inside a regular expression;
what was written before is valid.
"""

from __future__ import annotations

import resource
import signal
import sys

MAX_MEMORY_BYTES = 256 << 20
CLASS_PREFIX = "hl-"


def main(language: str, seconds: float) -> None:
    """Highlight standard input."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    from pygments import formatters, lexers  # noqa: PLC0415  # imported under the limits

    lexer = lexers.get_lexer_by_name(language, stripnl=False)
    formatter = formatters.HtmlFormatter(nowrap=True, classprefix=CLASS_PREFIX, encoding="utf-8")
    text = sys.stdin.buffer.read().decode()
    formatter.format(lexer.get_tokens(text), sys.stdout.buffer)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
