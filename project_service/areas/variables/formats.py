"""Text formats for variables: dotenv, docker, shell and systemd (group and instance variables reference, section 5).

What a format cannot carry becomes a comment that says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from project_service.areas.variables.effective.precedence import EffectiveVariable

JSON = "json"
BARE = re.compile(r"[A-Za-z0-9_./:@%+,=-]*")
IN_DOUBLE_QUOTES = re.compile(r"([\\\"$`])")
MAX_DOCKER_LINE_BYTES = 65_535  # docker reads a file of variables with Go's line scanner
# noncharacters and the byte order mark, which systemd.exec(5) forbids
_LAST_OF_PLANES = "".join(chr((plane << 16) + last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
NOT_IN_SYSTEMD = re.compile(f"[\ufdd0-\ufdef\ufeff{_LAST_OF_PLANES}]")
READ_ONLY_IN_SHELLS = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"})
SET_BY_SHELLS = frozenset(
    {
        "_",
        "BASHPID",
        "BASH_ALIASES",
        "BASH_ARGC",
        "BASH_ARGV",
        "BASH_ARGV0",
        "BASH_CMDS",
        "BASH_COMMAND",
        "BASH_COMPAT",
        "BASH_LINENO",
        "BASH_REMATCH",
        "BASH_SOURCE",
        "BASH_SUBSHELL",
        "BASH_XTRACEFD",
        "COMP_WORDBREAKS",
        "DIRSTACK",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "FUNCNAME",
        "GROUPS",
        "HISTCMD",
        "LINENO",
        "OPTIND",
        "PIPESTATUS",
        "RANDOM",
        "SECONDS",
        "SRANDOM",
    }
)
Refuse = Callable[[str, str], str | None]
Quote = Callable[[str, str], str]


def render(variables: Iterable[EffectiveVariable], form: str) -> str:
    """Return the variables in one of ``TEXT_FORMATS``: each line ends with a line feed."""
    return "".join(f"{line}\n" for variable in variables for line in _lines(variable, form))


def refusal(variable: EffectiveVariable, form: str) -> str | None:
    """Return why a format cannot carry a variable; ``None`` if it can."""
    if variable.value is None:
        return variable.note or "hidden"
    if variable.is_file:
        return "a file"
    if "\0" in variable.value:
        return "has a NUL character"
    return TEXT_FORMATS[form][0](variable.key, variable.value)


def _lines(variable: EffectiveVariable, form: str) -> list[str]:
    why = refusal(variable, form)
    if why is not None:
        return [f"# {variable.key}: {why}"]
    line = TEXT_FORMATS[form][1](variable.key, variable.value or "")
    return [line] if variable.note is None else [f"# {variable.key}: {variable.note}", line]


def _no_name(key: str, _value: str) -> str | None:
    return "the name begins with a digit" if key[0].isdigit() else None


def _no_shell_name(key: str, value: str) -> str | None:
    if key in READ_ONLY_IN_SHELLS:
        return "shells do not let this variable be set"
    if key in SET_BY_SHELLS:
        return "shells set this variable themselves"
    return _no_name(key, value)


def _not_in_docker(key: str, value: str) -> str | None:
    if "\n" in value:
        return "has line feeds"
    if value.endswith("\r"):
        return "ends with a carriage return"
    is_long = len(f"{key}={value}".encode()) > MAX_DOCKER_LINE_BYTES
    return f"is longer than {MAX_DOCKER_LINE_BYTES} bytes" if is_long else None


def _not_in_systemd(key: str, value: str) -> str | None:
    if NOT_IN_SYSTEMD.search(value):
        return "has characters that systemd does not accept"
    return _no_name(key, value)


def _dotenv(key: str, value: str) -> str:
    if BARE.fullmatch(value):
        return f"{key}={value}"
    # in single quotes some readers take two backslashes, and one before the closing quote, for an escape
    if "'" in value or "\\\\" in value or value.endswith("\\"):
        escaped = IN_DOUBLE_QUOTES.sub(r"\\\1", value)
        return f'{key}="{escaped}"'
    return f"{key}='{value}'"


def _docker(key: str, value: str) -> str:
    return f"{key}={value}"


def _shell(key: str, value: str) -> str:
    quoted = value.replace("'", "'\\''")
    return f"export {key}='{quoted}'"


TEXT_FORMATS: dict[str, tuple[Refuse, Quote]] = {
    "dotenv": (_no_shell_name, _dotenv),
    "docker": (_not_in_docker, _docker),
    "shell": (_no_shell_name, _shell),
    "systemd": (_not_in_systemd, _dotenv),
}
