"""What a page says after a form was accepted whose view says nothing itself: saving always says so."""

from __future__ import annotations

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
SILENT = frozenset({"create_session", "delete_session"})  # signing in and out


def init_app(app: Flask) -> None:
    """Note which requests flash a message of their own."""
    message_flashed.connect(_on_flash, app)


def _on_flash(_app: Flask, **_message: Any) -> None:
    g.has_flashed = True


def say_saved(view_name: str, status: int) -> None:
    """Flash what a view has done, such as "The issue was created.", if it redirects and has flashed nothing."""
    verb, _, noun = view_name.partition("_")
    if status != 302 or view_name in SILENT or verb not in PARTICIPLES or g.get("has_flashed"):
        return
    words = noun.replace("_", " ")
    flash(f"The {words} {'were' if words.endswith('s') and not words.endswith('ss') else 'was'} {PARTICIPLES[verb]}.")
