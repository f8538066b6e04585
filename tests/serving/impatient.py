"""The shipped configuration of the web server, with half a second of patience in place of ten."""

from __future__ import annotations

from project_service.kit import webserver

webserver.GRACE = 0.5

globals().update({name: value for name, value in vars(webserver).items() if name.islower()})
