"""The shipped configuration of the web server, with half a second of patience in place of ten."""

from __future__ import annotations

from project_service.runtime import web_server

web_server.GRACE = 0.5

globals().update({name: value for name, value in vars(web_server).items() if name.islower()})
