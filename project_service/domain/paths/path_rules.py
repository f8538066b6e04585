"""What a name or a path may look like, with the messages of the models.

Supporting resources reference, sections 3, 5 and 6.
"""

from __future__ import annotations

import re
import unicodedata

PATH = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")
PATH_MESSAGE = (
    "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-' or end in '.', '.git' or '.atom'."
)
PROJECT_PATH_MESSAGE = (
    "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', end in '.git' or end in '.atom'"
)
PROJECT_NAME_MESSAGE = (
    "can contain only letters, digits, emojis, '_', '.', dash, space. It must start with letter, digit, emoji or '_'."
)
GROUP_NAME_MESSAGE = (
    "can contain only letters, digits, emojis, '_', '.', dash, space, parenthesis. "
    "It must start with letter, digit, emoji or '_'."
)
LONGEST = 255
TOO_LONG = "is too long (maximum is 255 characters)"
BLANK = "can't be blank"
TAKEN = "has already been taken"

RESERVED_TOP_LEVEL = frozenset(
    [
        "-",
        ".well-known",
        "404.html",
        "422.html",
        "500.html",
        "502.html",
        "503.html",
        "abuse_reports",
        "admin",
        "api",
        "apple-touch-icon.png",
        "assets",
        "dashboard",
        "deploy.html",
        "explore",
        "favicon.ico",
        "favicon.png",
        "files",
        "groups",
        "health_check",
        "help",
        "import",
        "invites",
        "jwt",
        "login",
        "oauth",
        "profile",
        "projects",
        "public",
        "robots.txt",
        "s",
        "search",
        "sent_notifications",
        "sitemap",
        "sitemap.xml",
        "sitemap.xml.gz",
        "slash-command-logo.png",
        "snippets",
        "static",
        "unsubscribes",
        "uploads",
        "users",
        "v2",
    ]
)
RESERVED_IN_GROUP = frozenset({"-"})
RESERVED_PROJECT = frozenset(
    [
        "-",
        "badges",
        "blame",
        "blob",
        "builds",
        "commits",
        "create",
        "create_dir",
        "edit",
        "environments/folders",
        "files",
        "find_file",
        "gitlab-lfs/objects",
        "info/lfs/objects",
        "new",
        "preview",
        "raw",
        "refs",
        "tree",
        "update",
        "wikis",
    ]
)


def namespace_path_problems(path: str, *, top_level: bool) -> list[str]:
    """What is wrong with the path of a user or group."""
    if not path.strip():
        return [BLANK]
    problems = []
    if len(path) > LONGEST:
        problems.append(TOO_LONG)
    if len(path) < 2:
        problems.append("is too short (minimum is 2 characters)")
    if not PATH.fullmatch(path) or path.lower().endswith((".", ".git", ".atom")):
        problems.append(PATH_MESSAGE)
    if path.lower() in (RESERVED_TOP_LEVEL if top_level else RESERVED_IN_GROUP | RESERVED_PROJECT):
        problems.append(f"{path} is a reserved name")
    return problems


def project_path_problems(path: str) -> list[str]:
    """What is wrong with the path of a project."""
    if not path.strip():
        return [BLANK]
    problems = []
    if len(path) > LONGEST:
        problems.append(TOO_LONG)
    if not PATH.fullmatch(path) or not path.strip(".") or path.lower().endswith((".git", ".atom")):
        problems.append(PROJECT_PATH_MESSAGE)
    if path.lower() in RESERVED_PROJECT:
        problems.append(f"{path} is a reserved name")
    return problems


def name_problems(name: str, *, also: str, message: str) -> list[str]:
    """What is wrong with the name of a group or project; ``also`` are characters allowed after the first."""
    if not name.strip():
        return [BLANK]
    problems = []
    if len(name) > LONGEST:
        problems.append(TOO_LONG)
    if not _starts_well(name[0]) or not all(_starts_well(letter) or letter in also for letter in name):
        problems.append(message)
    return problems


def project_name_problems(name: str) -> list[str]:
    """What is wrong with the name of a project."""
    return name_problems(name, also="-. +\u200d\ufe0f", message=PROJECT_NAME_MESSAGE)


def group_name_problems(name: str) -> list[str]:
    """What is wrong with the name of a group."""
    return name_problems(name, also="-. ()+\u200d\ufe0f", message=GROUP_NAME_MESSAGE)


def slug(name: str) -> str:
    """A legal path made from a name: lower case, everything else a dash."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    text = re.sub(r"[^a-z0-9_.-]+", "-", plain).strip("-.")
    return text.removesuffix(".git").removesuffix(".atom").strip("-.")


def _starts_well(letter: str) -> bool:
    return letter == "_" or unicodedata.category(letter) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "So", "Sk")
