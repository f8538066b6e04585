"""The WSGI application: ``gunicorn app:app``, ``flask --app app …``. Importing this module builds it."""

from project_service.runtime.wsgi import create

app = create()

__all__ = ["app"]
