"""Responses with pictures of users, groups and projects."""

from __future__ import annotations

from flask import Response, request

from project_service.domain.accounts import avatars
from project_service.domain.accounts.avatars import Owner
from project_service.kit.http import raw_content

POLICY = "default-src 'none'; sandbox"
PUBLIC = "public, max-age=300"
PRIVATE = "private, max-age=300, must-revalidate"


DAY = "public, max-age=86400"


def respond_drawn(svg: str) -> Response:
    """Return a picture that this server has drawn."""
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": DAY, "X-Content-Type-Options": "nosniff"}
    response = Response(svg, mimetype="image/svg+xml", headers=headers)
    response.add_etag()
    response.make_conditional(request)
    return response


def respond(owner: Owner, *, cache: str = PRIVATE, inline: bool = True) -> Response:
    """Return the picture of an owner; ``NotFound`` without one."""
    name, content = avatars.read_avatar(owner)
    headers = raw_content.headers(content, name, inline=inline)
    response = Response(content, headers=headers | {"Content-Security-Policy": POLICY, "Cache-Control": cache})
    response.add_etag()
    response.make_conditional(request)
    return response
