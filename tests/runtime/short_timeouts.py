"""The shipped configuration of the web server, with time limits of half a second instead of ten."""

from __future__ import annotations

from project_service.runtime import request_bodies, web_server

web_server.GRACE_SECONDS = request_bodies.GRACE_SECONDS = 0.5

globals().update({name: value for name, value in vars(web_server).items() if name.islower()})
