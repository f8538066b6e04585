"""The WSGI application, made from the environment."""

from project_service.factory import create_app

app = create_app()
