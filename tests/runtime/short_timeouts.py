"""The shipped configuration of the web server, with time limits of half a second instead of ten."""

from __future__ import annotations

from project_service.runtime import web_server, wsgi_adapter

web_server.GRACE_SECONDS = wsgi_adapter.GRACE_SECONDS = 0.5

globals().update({name: value for name, value in vars(web_server).items() if name.islower()})
