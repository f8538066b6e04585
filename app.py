"""The WSGI application: ``gunicorn app:app``, ``flask --app app …``."""

from project_service.runtime.wsgi import app

__all__ = ["app"]
