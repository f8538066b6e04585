"""Draw the initials of a user on a colour that follows from the id: the picture of those who have uploaded none."""

from __future__ import annotations

from markupsafe import escape

from project_service.access.page_parts.navigation import initials
from project_service.domain.accounts.users import User

# the colours of .shade-0 to .shade-7 of static/style.css, all dark enough for white letters
COLOURS = ("#5b4bc4", "#17663a", "#8a5300", "#1f6bb0", "#b3261e", "#00585e", "#6b2fb3", "#4d5660")
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="80" viewBox="0 0 32 32">'
    '<rect width="32" height="32" fill="{colour}"/>'
    '<text x="16" y="20.5" text-anchor="middle" fill="#fff" font-family="sans-serif" font-size="13" font-weight="600">'
    "{letters}</text></svg>"
)


def draw_initials(user: User) -> str:
    """Return an SVG image without scripts, styles or references."""
    return SVG.format(colour=COLOURS[user.id % len(COLOURS)], letters=escape(initials(user.name)))
