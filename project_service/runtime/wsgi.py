"""The factory that web servers call: ``gunicorn … "project_service.runtime.wsgi:create()"``."""

from __future__ import annotations

from project_service.areas.alerts.receivers import delivery_log
from project_service.factory import create_app
from project_service.kit.http.responses import Application
from project_service.runtime.startup import Preparation


def create() -> Application:
    """Build the application from the environment, ready for requests."""
    return start_web(create_app())


def start_web(app: Application) -> Application:
    """Let an application write in the background; wait until ``serve`` has upgraded the database."""
    delivery_log.write_behind(app)
    Preparation(app.config["SETTINGS"].runtime_dir).wait()
    return app
