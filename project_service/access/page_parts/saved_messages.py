"""What a page says after a form was accepted whose view says nothing itself: saving always says so."""

from __future__ import annotations

import re
from typing import Any

from flask import Flask, flash, g, message_flashed

PARTICIPLES = {  # of the verb that a view's name begins with
    "change": "changed",
    "create": "created",
    "delete": "deleted",
    "dismiss": "dismissed",
    "replace": "replaced",
    "reset": "reset",
    "revoke": "revoked",
    "save": "saved",
    "start": "started",
    "update": "saved",
}
# words of views of which there are several, such as ``update_group_label`` and ``delete_hook_of_project``
OWNER_WORDS = re.compile(r"^(?:project|group|user|instance|own) (?=\S)| of (?:project|group|system)$")
NOUNS = {  # where the name of the view says it differently
    "avatar": "picture",
    "error comment": "comment",
    "error ignore rule": "rule",
    "error key": "client key",
    "error status": "status of the error",
    "error tracking": "configuration of error tracking",
    "hook": "webhook",
    "note": "comment",
    "note task": "task",
    "starter rule": "rule",
    "todo": "to-do item",
    "todo item": "to-do item",
}
SENTENCES = {  # of views whose names are no participle and noun
    "archive": "The project was archived.",
    "assign": "The assignee was saved.",
    "assign_error": "The assignee was saved.",
    "create_error_issue": "An issue was created for the error.",
    "delete_error_issue": "The link to the issue was removed.",
    "finish_all_todos": "All to-do items were marked as done.",
    "restore_finding": "The dismissal was undone.",
    "separate_error": "The error is separate again.",
    "toggle_group_rule": "The rule was changed.",
    "toggle_project_rule": "The rule was changed.",
    "unarchive": "The project is no longer archived.",
    "upload_file": "The file was uploaded.",
}
SILENT = frozenset({"create_session", "delete_session"})  # signing in and out


def init_app(app: Flask) -> None:
    """Note which requests flash a message of their own."""
    message_flashed.connect(_on_flash, app)


def _on_flash(_app: Flask, **_message: Any) -> None:
    g.has_flashed = True


def say_saved(view_name: str, status: int) -> None:
    """Flash what a view has done, such as "The issue was created.", if it redirects and has flashed nothing."""
    if status != 302 or view_name in SILENT or g.get("has_flashed"):
        return
    if sentence := sentence_of(view_name):
        flash(sentence)


def sentence_of(view_name: str) -> str | None:
    """Return what a view has done, in the words of its name."""
    if view_name in SENTENCES:
        return SENTENCES[view_name]
    verb, _, noun = view_name.partition("_")
    if verb not in PARTICIPLES:
        return None
    noun = OWNER_WORDS.sub("", noun.replace("_", " "))
    noun = NOUNS.get(noun, noun)
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us"))
    return f"The {noun} {'were' if is_plural else 'was'} {PARTICIPLES[verb]}."
